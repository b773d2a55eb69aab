"""The interval lengths Δ_i of Eigencurve: how many steps each group of eigenvalues gets."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve._check import Arg


def sqrt_allocation(share: Array, total_steps: float) -> Array:
    r"""The paper's interval lengths.

    .. math:: \Delta_i = \frac{\sqrt{s_i}}{\sum_{i'} \sqrt{s_{i'}}} \, T

    Reference: arXiv:2110.14109, Eq. (delta).

    >>> sqrt_allocation(np.array([0.64, 0.36]), 70)
    array([40., 30.])
    """
    root = np.sqrt(share)
    return np.asarray(total_steps * root / root.sum())


def variance_term(share: Array, slope: Array, lengths: Array) -> float:
    r"""The part of Lemma 1's variance that depends on the interval lengths.

    .. math:: V(\Delta) = \sum_i \frac{a_i s_i}{D_i}, \qquad D_i = 1 + \sum_{j \le i} a_j \Delta_j

    where :math:`a_i = \beta^i/\kappa` is the slope of the denominator on group i.
    """
    return float(np.sum(slope * share / (1 + np.cumsum(slope * lengths))))


def optimal_allocation(share: Array, slope: Array, total_steps: float) -> Array:
    r"""The interval lengths that minimise the variance term of Lemma 1 (:func:`variance_term`) exactly.

    The budget of steps is linear in the denominators :math:`1 = D_0 \le D_1 \le \dots`:

    .. math:: \sum_j b_j D_j = T + \frac{1}{a_1}, \qquad b_j = \frac1{a_j} - \frac1{a_{j+1}},\quad b_n = \frac1{a_n},

    The objective :math:`\sum_j c_j/D_j` with :math:`c_j = a_j s_j` is separable and convex. So its minimum is
    :math:`D_j = \max(1, x\sqrt{r_j})`, where r is the isotonic regression of :math:`c_j/b_j` with weights
    :math:`b_j` and x is the number that uses up the budget.

    Args:
        share: Share s_i / d of each group, above 0.
        slope: Slope a_i of each group, increasing.
        total_steps: Total number of steps T.

    Reference: arXiv:2110.14109, Lemma 1 and the remark before it.
    """
    budget = total_steps + 1 / slope[0]
    price = np.append(-np.diff(1 / slope), 1 / slope[-1])
    root = np.sqrt(isotonic_regression(slope * share / price, weights=price).x)
    denominator = np.maximum(1.0, _spend(price, root, budget) * root)
    lengths = np.diff(denominator, prepend=1.0) / slope
    return np.asarray(lengths * (total_steps / lengths.sum()))


def round_as_released(fraction: Array, total_steps: int) -> Array:
    r"""Interval lengths in whole steps, rounded as in the paper's own runs.

    Each of the n groups gets :math:`1 + \lfloor (T - n)\,\Delta_i/T \rfloor` steps. The first groups get one more
    step each until none is left.

    Raises:
        ValueError: There are fewer steps than groups.
    """
    count = len(fraction)
    if total_steps < count:
        remedy = ("Set ", Arg("rounding"), " to exact, or pass a larger ", Arg("beta"), " or more steps.")
        _check.refuse("eigencurve", "total_steps", f">= the number of non-empty groups ({count})", total_steps, remedy)
    lengths = 1 + np.floor((total_steps - count) * fraction)
    left_over = int(total_steps - lengths.sum())
    lengths[:left_over] += 1
    return np.asarray(lengths)


def _spend(price: Array, root: Array, budget: float) -> float:
    r"""The x with :math:`\sum_j b_j \max(1, x\sqrt{r_j}) = B`; r does not decrease, so it is 1 up to some m."""
    held = np.concatenate(([0.0], np.cumsum(price)[:-1]))
    moving = np.cumsum((price * root)[::-1])[::-1]
    candidates = (budget - held) / moving
    # If the first m terms are held at 1, term m must be the first one above it.
    first = int(np.argmax(candidates * root >= 1))
    return float(candidates[first])
