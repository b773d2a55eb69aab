"""RateReader: the rates of a schedule in the order of training, computed many at a time."""

from __future__ import annotations

import numpy as np

from eigencurve.schedules.base import Schedule

NUM_AHEAD = 256


class RateReader:
    """Rates of successive steps. One call of a schedule costs as much as 256 rates, so they are computed ahead.

    >>> from eigencurve.schedules.classic import linear
    >>> read = RateReader()
    >>> read(linear(4, 0.1), 1), read(linear(4, 0.2), 2)
    (0.07500000000000001, 0.1)
    """

    def __init__(self) -> None:
        self._schedule: Schedule | None = None
        self._first, self._rates = 0, list[float]()

    def __call__(self, schedule: Schedule, step: int) -> float:
        """The rate of ``schedule`` at ``step``."""
        place = step - self._first
        if schedule is not self._schedule or not 0 <= place < len(self._rates):
            self._schedule, self._first, place = schedule, step, 0
            self._rates = schedule(np.arange(step, step + NUM_AHEAD)).tolist()
        return self._rates[place]
