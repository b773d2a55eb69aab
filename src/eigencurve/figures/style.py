"""Colours and dashes of the curves."""

from __future__ import annotations

from typing import Any

# The Okabe-Ito palette is safe for colour-blind readers. Dashes help readers who print in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))


def style(place: int) -> dict[str, Any]:
    """Colour and dashes of curve number ``place``. Both change from curve to curve; the first 49 pairs differ."""
    dashes = DASHES[(place + place // len(COLOURS)) % len(DASHES)]
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": dashes}
