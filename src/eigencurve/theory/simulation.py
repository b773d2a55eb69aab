"""Simulated SGD runs on a noisy quadratic, to check the exact expected loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve.schedules.base import Schedule
from eigencurve.theory.nodes import Nodes
from eigencurve.theory.recursion import divergence

# Largest number of replicas times eigenvalues simulated at once.
BATCH = 1 << 20


@dataclass(frozen=True, eq=False)
class Simulation:
    """The final losses of independent SGD runs.

    Attributes:
        losses: Final loss of each run.
        seed: Seed of the random numbers.
    """

    losses: Array
    seed: int

    @property
    def mean(self) -> float:
        """The sample mean: an unbiased estimate of the expected loss."""
        return float(self.losses.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean."""
        return float(self.losses.std(ddof=1)) / math.sqrt(len(self.losses))


def simulate(nodes: Nodes, schedule: Schedule, seed: int, num_replicas: int) -> Simulation:
    r"""Run SGD on :math:`f(w) = \tfrac12\sum_j\lambda_j w_j^2` from :math:`w_{0j} = \sqrt{e_j/\lambda_j}`.

    .. math:: g = \lambda w - n, \quad n \sim N(0, \sigma^2\lambda\,\eta_t^p), \qquad v \leftarrow mv + g, \qquad
              w \leftarrow w - \eta_t v \quad\text{or, with Nesterov momentum,}\quad w \leftarrow w - \eta_t(g + mv)

    Raises:
        DivergenceError: The weights overflow.
    """
    generator = np.random.default_rng(_check.whole("simulate", "seed", seed, minimum=0))
    count = _check.whole("simulate", "num_replicas", num_replicas, minimum=2)
    width = max(1, min(count, BATCH // len(nodes)))
    sizes = [min(width, count - start) for start in range(0, count, width)]
    with np.errstate(over="ignore", invalid="ignore"):
        losses = np.concatenate([_run(nodes, schedule, generator, size) for size in sizes])
    if not np.isfinite(losses).all():
        raise divergence(nodes, float(nodes.lam[-1]), schedule.total_steps)
    return Simulation(frozen(losses), seed)


def _run(nodes: Nodes, schedule: Schedule, generator: np.random.Generator, num_replicas: int) -> Array:
    lam, scale = nodes.lam, np.sqrt(nodes.noise * nodes.lam)
    w = np.tile(np.sqrt(nodes.error / lam), (num_replicas, 1))
    velocity = np.zeros_like(w)
    for step in range(schedule.total_steps):
        level = schedule(step) ** (0.5 * nodes.noise_power)
        gradient = lam * w - level * scale * generator.standard_normal(w.shape)
        velocity = nodes.momentum * velocity + gradient
        w = w - schedule(step) * (gradient + nodes.momentum * velocity if nodes.nesterov else velocity)
    return np.asarray(0.5 * (w * w) @ (nodes.weights * lam))
