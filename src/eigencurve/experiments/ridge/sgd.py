"""SGD with batch size 1 on ridge regression: many learning-rate schedules at once, over sparse rows, compiled."""

from __future__ import annotations

import numba
import numpy as np

from eigencurve._arrays import Array, IntArray

# Below this the factored-out scale is multiplied back in, long before it could underflow.
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
    r"""A step of SGD for each row in ``order``, for C schedules side by side.

    .. math:: w \leftarrow w - \eta\,[2(x^\top w - y)x + 2\alpha w] = (1 - 2\eta\alpha)\,w - 2\eta(x^\top w - y)\,x

    The weights are kept as :math:`w = s\,v`, so that the decay of all coordinates is one product with s and a step
    costs no more than the row has entries. All C schedules see the same rows, so each entry is read once.

    Args:
        starts: of each row in ``columns`` and ``values``; one more than there are rows.
        columns: of each entry.
        values: of each entry.
        labels: y of each row.
        order: the rows' numbers, a step each.
        rates: a learning rate for each step and schedule, shape (steps, C).
        decay: α.
        scaled: v, shape (columns, C); changed in place.
        scale: s, shape (C,); changed in place.
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
