"""Compiled SGD with batch size 1 on ridge regression: many schedules at once, over sparse rows."""

from __future__ import annotations

import numba
import numpy as np

from paper.arrays import Array, IntArray

# When the factored-out scale falls below this, it is multiplied back in, long before it could underflow.
SMALLEST_SCALE = 1e-30


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})
def run_steps(
    starts: IntArray,
    columns: IntArray,
    values: Array,
    labels: Array,
    order: IntArray,
    rates: Array,
    decay: float,
    scaled: Array,
    scale: Array,
) -> None:
    r"""One SGD step per row in ``order``, for C schedules side by side.

    .. math:: w \leftarrow w - \eta\,[2(x^\top w - y)x + 2\alpha w] = (1 - 2\eta\alpha)\,w - 2\eta(x^\top w - y)\,x

    The weights are stored as :math:`w = s\,v`: weight decay only multiplies s, so the cost of a step is proportional
    to the number of entries in its row. All C schedules see the same rows, so each entry is read once.

    Args:
        starts: Start of each row in ``columns`` and ``values``, followed by their length.
        columns: Column of each entry.
        values: Value of each entry.
        labels: Label y of each row.
        order: Row number of each step.
        rates: Learning rate of each step and schedule, shape (steps, C).
        decay: Coefficient α of the L2 term.
        scaled: The vectors v, shape (columns, C); updated in place.
        scale: The scales s, shape (C,); updated in place.
    """
    num_schedules = rates.shape[1]
    error = np.empty(num_schedules)
    for step in range(len(order)):
        row = order[step]
        error[:] = 0.0
        for k in range(starts[row], starts[row + 1]):
            value, coordinate = values[k], scaled[columns[k]]
            for c in range(num_schedules):
                error[c] += value * coordinate[c]
        smallest = 1.0
        for c in range(num_schedules):
            error[c] = error[c] * scale[c] - labels[row]
            scale[c] *= 1 - 2 * rates[step, c] * decay
            error[c] *= 2 * rates[step, c] / scale[c]
            smallest = min(smallest, scale[c])
        for k in range(starts[row], starts[row + 1]):
            value, coordinate = values[k], scaled[columns[k]]
            for c in range(num_schedules):
                coordinate[c] -= error[c] * value
        if smallest < SMALLEST_SCALE:
            scaled *= scale
            scale[:] = 1.0
