"""Schedules as bytes for files: JSON, CSV, figures."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def json_bytes(fields: Any) -> bytes:
    """Plain values as JSON that ends with a newline; NaN and infinities are refused."""
    return (json.dumps(fields, indent=1, allow_nan=False) + "\n").encode()


def csv_bytes(schedule: Schedule) -> bytes:
    r"""``step,lr`` and a line for every step, each rate to the last digit.

    >>> import eigencurve as ec
    >>> csv_bytes(ec.linear(2, lr=1.0))
    b'step,lr\n0,1.0\n1,0.5\n'
    """
    rows = [f"{step},{rate!r}" for step, rate in enumerate(schedule.values().tolist())]
    return ("\n".join(["step,lr", *rows]) + "\n").encode()


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """A matplotlib figure as a PNG, SVG or PDF; the same figure gives the same bytes."""
    import matplotlib as mpl  # only where a figure is there already

    kind = _check.choice("figure_bytes", "suffix", suffix, FIGURE_SUFFIXES)[1:]
    dates: Mapping[str, Any] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "eigencurve", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata=dates[kind])
    return buffer.getvalue()
