"""The matplotlib figure that the static drawings share."""

from __future__ import annotations

try:
    from matplotlib.figure import Figure as Figure
except ImportError as error:
    raise ImportError("eigencurve.figures needs matplotlib: pip install eigencurve[plot]") from error

# Size of one panel in inches. Its text stays legible on a phone.
PANEL = (5.2, 3.4)
