"""The numerically best schedule: adjoint gradient and L-BFGS over knots that are dense near the end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from eigencurve._arrays import Array, IntArray
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.piecewise import piecewise
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory.certificate import certificate
from eigencurve.theory.kernels import loss_and_gradient
from eigencurve.theory.nodes import Nodes, compress
from eigencurve.theory.recursion import final_loss
from eigencurve.theory.tuning import classic_schedules, losses_of, tuned

# Knots of the three passes, each started where the one before ended: half evenly spread, half towards the end.
LEVELS = (32, 128, 512)
MAX_ITERATIONS = 300
# A search this small (steps times nodes) begins from several schedules: short runs can have a second minimum.
CHEAP = 1 << 18
NUM_STARTS = 3
# Where the loss is this many times that at the start, the line search has to step back; it cannot use infinity.
DIVERGED = 1e6
# The search is over ln(rate): rates span orders of magnitude towards the end. Below this fraction of max_lr is zero.
SMALLEST_RATE = 1e-12


@dataclass(frozen=True, eq=False)
class Search:
    """What a search for the best schedule found.

    Attributes:
        schedule: the best schedule.
        loss: its expected loss.
        lower_bound: the certificate; no schedule is below it.
        start: the name of the classic schedule that it was reached from, or that it is.
        status: ``"optimised"``, ``"not converged"``, or ``"classic"`` where a classic schedule was best.
    """

    schedule: Schedule
    loss: float
    lower_bound: float
    start: str
    status: str

    @property
    def gap(self) -> float:
        """How far above the certificate the loss is, as a fraction of it; infinite above a certificate of 0."""
        if self.lower_bound == 0:
            return 0.0 if self.loss == 0 else math.inf
        return self.loss / self.lower_bound - 1


def search(spectrum: Spectrum, nodes: Nodes, total_steps: int, max_lr: float) -> Search:
    """Tune every classic schedule, begin with the best, optimise the rates, and keep the best of them all.

    The search runs on the compressed nodes (:func:`compress`); what is best is decided on all of them.
    """
    few = compress(nodes)
    classics = {
        name: tuned(few, schedule, max_lr)
        for name, schedule in classic_schedules(spectrum, few, total_steps, max_lr).items()
    }
    order = np.argsort(losses_of(few, classics), kind="stable")
    starts = [list(classics)[i] for i in order[: NUM_STARTS if total_steps * len(few) <= CHEAP else 1]]
    ends = {f"from {name}": descend(few, classics[name].values(), max_lr) for name in starts}
    found = {name: piecewise(total_steps, knots.astype(np.float64), rates) for name, (rates, knots, _) in ends.items()}
    finalists = {**classics, **found}
    losses = losses_of(nodes, finalists)
    winner = list(finalists)[int(np.argmin(losses))]
    status = "classic" if winner in classics else ("optimised" if ends[winner][2] else "not converged")
    bound = certificate(nodes, total_steps, max_lr)
    return Search(finalists[winner], float(losses.min()), bound, winner.removeprefix("from "), status)


def knots_for(total_steps: int, num_knots: int) -> IntArray:
    """About ``num_knots`` steps from 0 to T-1: half of them even, half geometric in the steps that are left."""
    if total_steps <= num_knots:
        return np.arange(total_steps)
    last, half = total_steps - 1, num_knots // 2
    even = np.linspace(0, last, half).round()
    late = last - np.geomspace(1, last, num_knots - half).round()
    return np.unique(np.concatenate((even, late))).astype(np.int64)


def rates_gradient(nodes: Nodes, rates: Array) -> tuple[float, Array]:
    """The expected loss after the steps of ``rates`` and its derivative in every one of them."""
    gradient = np.empty(len(rates))
    lam, weights = np.array(nodes.lam), np.array(nodes.weights)
    error, noise = np.array(nodes.error), np.array(nodes.noise)
    return loss_and_gradient(lam, weights, error, noise, np.array(rates), gradient), gradient


def descend(nodes: Nodes, rates: Array, max_lr: float) -> tuple[Array, IntArray, bool]:
    """Lower the loss from ``rates`` in passes of more and more knots.

    Returns:
        The rates at the last pass's knots, those knots, and whether that pass converged.
    """
    for level in LEVELS:
        knots = knots_for(len(rates), level)
        values, converged = _pass(nodes, knots, rates[knots], len(rates), max_lr)
        rates = np.interp(np.arange(len(rates)), knots, values)
        if len(knots) == len(rates):
            break
    return values, knots, converged


def _pass(nodes: Nodes, knots: IntArray, values: Array, total_steps: int, max_lr: float) -> tuple[Array, bool]:
    """L-BFGS over the logarithms of the rates at ``knots``; the loss counts from 1, its value at the start."""
    steps = np.arange(total_steps)
    segment = np.clip(np.searchsorted(knots, steps, side="right") - 1, 0, max(len(knots) - 2, 0))
    upper = np.minimum(segment + 1, len(knots) - 1)
    part = (steps - knots[segment]) / np.maximum(knots[upper] - knots[segment], 1)
    begin = np.log(np.clip(values / max_lr, SMALLEST_RATE, 1.0))
    scale = final_loss(nodes, np.interp(steps, knots, max_lr * np.exp(begin))) or 1.0

    def objective(logs: Array) -> tuple[float, Array]:
        rates = max_lr * np.exp(logs)
        loss, slopes = rates_gradient(nodes, np.interp(steps, knots, rates))
        if not loss < DIVERGED * scale:
            return DIVERGED, np.zeros(len(knots))
        low, high = np.bincount(segment, slopes * (1 - part), len(knots)), np.bincount(upper, slopes * part, len(knots))
        return loss / scale, (low + high) * rates / scale

    limits = [(np.log(SMALLEST_RATE), 0.0)] * len(knots)
    options = {"maxiter": MAX_ITERATIONS, "maxfun": 2 * MAX_ITERATIONS, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-9}
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return np.minimum(max_lr * np.exp(found.x), max_lr), bool(found.success)
