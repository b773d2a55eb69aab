"""What every figure shares: colours, dashes, the size of a panel, and matplotlib itself."""

from __future__ import annotations

from typing import Any

try:
    from matplotlib.figure import Figure as Figure
except ImportError as error:
    raise ImportError("eigencurve.figures needs matplotlib: pip install eigencurve[plot]") from error

# The palette of Okabe and Ito can be told apart by colour-blind readers; dashes help those who print in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
# The size of one panel in inches: its text is still legible on a phone.
PANEL = (5.2, 3.4)


def style(place: int) -> dict[str, Any]:
    """Colour and dashes of the ``place``-th curve: both change from one to the next, and 49 pairs are different."""
    dashes = DASHES[(place + place // len(COLOURS)) % len(DASHES)]
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": dashes}
