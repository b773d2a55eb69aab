"""Schedules as bytes for files: JSON and CSV."""

from __future__ import annotations

import json
from typing import Any

from eigencurve.schedules.base import Schedule

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
