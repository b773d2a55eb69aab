"""The array types of the core, and read-only arrays."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


def frozen(values: Array) -> Array:
    """A read-only float64 copy of ``values``."""
    copy = np.array(values, dtype=np.float64)
    copy.flags.writeable = False
    return copy
