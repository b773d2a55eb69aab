"""The array types of the core, and read-only arrays."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


# Copying fewer knots takes less time than choosing some of them.
FEW_KNOTS = 4096


def frozen(values: Array) -> Array:
    """A read-only float64 copy of ``values``."""
    copy = np.array(values, dtype=np.float64)
    copy.flags.writeable = False
    return copy


def interpolated(x: Array | IntArray, knots: Array, values: Array) -> Array:
    """``np.interp``, without its cost for a few numbers among many knots: it copies all knots that are read-only."""
    if x.size == 0 or len(knots) <= max(x.size, FEW_KNOTS):
        return np.interp(x, knots, values)
    first = max(int(np.searchsorted(knots, x.min(), side="right")) - 1, 0)
    around = slice(first, int(np.searchsorted(knots, x.max())) + 1)
    return np.interp(x, knots[around], values[around])
