"""Contents of exported files: JSON and CSV as bytes, and the file name endings that exports accept."""

from __future__ import annotations

import json
from typing import Any

from eigencurve.schedules.base import Schedule

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
SCHEDULE_SUFFIXES = (".json", ".csv", *FIGURE_SUFFIXES)


def json_bytes(fields: Any) -> bytes:
    """Encode plain values as JSON with a final newline. NaN and infinity raise ValueError."""
    return (json.dumps(fields, indent=1, allow_nan=False) + "\n").encode()


def csv_bytes(schedule: Schedule) -> bytes:
    r"""Encode a schedule as CSV: the header ``step,lr``, then one exact rate per step.

    >>> import eigencurve as ec
    >>> csv_bytes(ec.linear(2, lr=1.0))
    b'step,lr\n0,1.0\n1,0.5\n'
    """
    rows = [f"{step},{rate!r}" for step, rate in enumerate(schedule.values().tolist())]
    return ("\n".join(["step,lr", *rows]) + "\n").encode()
