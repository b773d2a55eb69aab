"""The matplotlib figure that the static drawings share, and figures as file contents."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from eigencurve import _check
from eigencurve.figures import FIGURE_SUFFIXES

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure as Figure
except ImportError as error:
    raise ImportError("eigencurve.figures needs matplotlib: pip install eigencurve[plot]") from error


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """Encode a matplotlib figure as PNG, SVG or PDF. The same figure always yields the same bytes."""
    kind = _check.choice("figure_bytes", "suffix", suffix, FIGURE_SUFFIXES)[1:]
    dates: Mapping[str, Any] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "eigencurve", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata=dates[kind])
    return buffer.getvalue()
