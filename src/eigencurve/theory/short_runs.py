"""Starting points for the search of a short run, whose loss has many local minima."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from eigencurve._arrays import Array
from eigencurve.theory.momentum_kernels import loss_by_squares
from eigencurve.theory.nodes import Nodes, compress
from eigencurve.theory.recursion import final_loss

# Runs of up to this many steps are searched from many starts.
SHORT_RUN = 64
# Random starts, and rounds in which the best minima so far are changed at random: each of KEPT gives NUM_CHANGED.
NUM_STARTS, NUM_ROUNDS, KEPT, NUM_CHANGED = 64, 20, 6, 8
# The minima are looked for on about 32 nodes.
NUM_CELLS = 16
# The number of minima that the search follows to the end.
NUM_FINISHED = 3
# The sweeps over the steps end when one lowers the loss by less than this fraction.
SWEEP_TOLERANCE, MAX_SWEEPS = 1e-5, 60
# Two minima whose losses differ by less than this fraction count as one.
SAME = 1e-4
# Rates above the largest stable one can cancel in the moments; a loss is reliable up to this fraction of itself, or of
# the initial loss.
CANCELLED, NEGLIGIBLE = 1e-6, 1e-12
# Every search draws the same random numbers.
SEED = 0

Minimum = tuple[float, Array]


def low_minima(nodes: Nodes, max_lr: float, good: Sequence[Array]) -> list[Array]:
    """The rates of a few low local minima of the loss, roughly; the lowest first.

    Sweeps of exact minimisation over one rate at a time lower the loss from ``good`` rates and from random ones. Then
    a few rates of the best results are replaced or exchanged at random, and the loss is lowered again, in rounds.

    Args:
        nodes: The coordinates of the problem.
        max_lr: Largest rate allowed.
        good: The rates of good schedules, one array of all T steps for each.
    """
    rng, nodes = np.random.default_rng(SEED), compress(nodes, NUM_CELLS)
    starts = (max_lr * shares for shares in random_shares(rng, len(good[0]), NUM_STARTS))
    minima = _distinct(_lowered(nodes, rates, max_lr) for rates in (*good, *starts))
    for _ in range(NUM_ROUNDS):
        changed = (_changed(rng, rates, max_lr) for _, rates in minima[:KEPT] for _ in range(NUM_CHANGED))
        minima = _distinct([*minima, *(_lowered(nodes, rates, max_lr) for rates in changed)])
    return [rates for _, rates in minima[:NUM_FINISHED]]


def reliable(nodes: Nodes, rates: Array) -> bool:
    """Whether the loss from the recursion of the moments agrees with a sum of squares, in which nothing cancels."""
    if not nodes.momentum:
        return True
    exact = loss_by_squares(nodes.problem(), np.array(rates))
    initial = 0.5 * float(nodes.weights @ nodes.error)
    return abs(final_loss(nodes, np.array(rates)) - exact) <= CANCELLED * exact + NEGLIGIBLE * initial


def random_shares(rng: np.random.Generator, total_steps: int, num: int) -> Iterator[Array]:
    """Random rates as fractions of the largest: uniform or log-uniform, falling or in any order, at any scale."""
    for i in range(num):
        shares = rng.random(total_steps) if i % 2 else 10 ** rng.uniform(-3, 0, total_steps)
        shares = np.minimum(shares * 10 ** rng.uniform(-2, 1), 1.0)
        yield -np.sort(-shares) if i % 4 < 2 else shares


def _lowered(nodes: Nodes, rates: Array, max_lr: float) -> Minimum:
    lowered = np.minimum(rates, max_lr)
    loss = nodes.kernels.lower_by_steps(nodes.problem(), max_lr, lowered, SWEEP_TOLERANCE, MAX_SWEEPS)
    return (loss if reliable(nodes, lowered) else np.inf), lowered


def _changed(rng: np.random.Generator, rates: Array, max_lr: float) -> Array:
    """``rates`` with about two of them replaced at random, or with two exchanged."""
    changed = rates.copy()
    if rng.random() < 0.5:
        pair = rng.integers(0, len(rates), 2)
        changed[pair] = changed[pair[::-1]]
    replaced = rng.random(len(rates)) < min(0.5, 2 / len(rates))
    changed[replaced] = max_lr * np.minimum(10 ** rng.uniform(-3, 1, int(replaced.sum())), 1.0)
    return changed


def _distinct(minima: Iterable[Minimum]) -> list[Minimum]:
    """The minima with clearly different losses, the lowest first."""
    distinct: list[Minimum] = []
    for loss, rates in sorted(minima, key=lambda minimum: minimum[0]):
        if np.isfinite(loss) and (not distinct or loss > distinct[-1][0] * (1 + SAME)):
            distinct.append((loss, rates))
    return distinct
