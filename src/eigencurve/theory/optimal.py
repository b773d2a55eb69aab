"""The numerically best schedule: L-BFGS over the rates at knots that are dense near the end of the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from eigencurve._arrays import Array, IntArray
from eigencurve._process import on_one_blas_thread
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.piecewise import piecewise
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory.certificate import certificate
from eigencurve.theory.evaluators import Evaluator, LongRunEvaluator
from eigencurve.theory.short_runs import SHORT_RUN, low_minima, reliable
from eigencurve.theory.starting_points import starting_points
from eigencurve.theory.tuning import tune

# Number of knots in each of three passes; each pass starts from the result of the one before.
LEVELS = (32, 128, 512)
# The blocks of a long run are cheap, so there is a second round of passes: the coarse ones leave shallow minima, which
# momentum has, and lower the loss by up to 0.1 %.
CHEAP_ROUNDS = 2
# Most iterations of a pass. On the blocks of a long run they are cheap, so that search runs until it converges.
MAX_ITERATIONS, MAX_CHEAP_ITERATIONS = 300, 2000
LBFGS = {"maxcor": 30, "gtol": 1e-9}
# A pass ends when an iteration lowers the loss by less than this fraction. With QUICK, the loss is up to 0.04 % higher
# than with EXACT, after a quarter of the time (with momentum, on the spectra of the zoo).
EXACT, QUICK = 1e-12, 1e-7
# If steps times nodes is at most this, the search starts from several schedules: short runs can have a second minimum.
CHEAP = 1 << 19
NUM_STARTS = 3
# Another minimum of a short run counts if its loss is lower by more than this fraction.
CLEAR = 1e-6
STATUS = {True: "optimised", False: "not converged"}
# Above this multiple of the initial loss the line search has to step back; L-BFGS cannot handle infinity.
DIVERGED = 1e6
# A smaller loss has lost digits to underflow: there is nothing left to lower.
LEAST_LOSS = 1e-290
# The search is over ln(rate), because rates span orders of magnitude towards the end. This fraction of max_lr is zero.
SMALLEST_RATE = 1e-12


@dataclass(frozen=True, eq=False)
class Search:
    """The result of a search for the best schedule.

    Attributes:
        schedule: Best schedule of the search.
        loss: Expected loss of ``schedule``.
        lower_bound: The certificate; no schedule has a lower expected loss. None with momentum, for which there is no
            certificate.
        start: Name of the starting point that led to ``schedule``, such as ``"cosine"``. In a short run also
            ``"minimum 1"``, ``"minimum 2"`` …, the lowest local minima of a search from many starts.
        status: ``"optimised"``, ``"not converged"``, or ``"classic"`` if a starting point itself was best.
    """

    schedule: Schedule
    loss: float
    lower_bound: float | None
    start: str
    status: str

    @property
    def gap(self) -> float | None:
        """The loss relative to the certificate, minus 1; infinite if the certificate is 0 and the loss is not.

        It is None if there is no certificate.
        """
        if self.lower_bound is None:
            return None
        if self.lower_bound == 0:
            return 0.0 if self.loss == 0 else math.inf
        return self.loss / self.lower_bound - 1


@on_one_blas_thread
def search(
    evaluator: Evaluator, spectrum: Spectrum, total_steps: int, max_lr: float, tolerance: float = EXACT
) -> Search:
    """Search for the schedule of T steps with 0 <= lr <= max_lr that has the least expected loss.

    Every starting point is tuned to its best scale. From the best of them (the best three, if the problem is small)
    L-BFGS optimises the rates. A short run is also searched from many other rates, because its loss has many minima:
    see :func:`~eigencurve.theory.short_runs.low_minima`. The result is the best schedule among all of these, so it is
    never worse than a tuned classic one.

    Args:
        evaluator: How losses are computed: exactly (:class:`StepEvaluator`) or by blocks (:class:`BlockEvaluator`).
        spectrum: Spectrum of the problem, for Eigencurve.
        total_steps: Number of steps T.
        max_lr: Largest rate allowed.
        tolerance: A pass of L-BFGS ends when an iteration lowers the loss by less than this fraction.
    """
    few = evaluator.few
    results = [
        Search(tuned := tune(evaluator, schedule, max_lr), evaluator.loss(tuned), None, name, "classic")
        for name, schedule in starting_points(spectrum, few, total_steps, max_lr).items()
    ]
    num_starts = NUM_STARTS if total_steps * len(few) <= CHEAP else 1
    for start in sorted(results, key=_loss)[:num_starts]:
        schedule, converged = descend(evaluator, start.schedule, max_lr, tolerance)
        results.append(Search(schedule, evaluator.loss(schedule), None, start.start, STATUS[converged]))
    if total_steps <= SHORT_RUN:
        results += _lower_minima(evaluator, results, max_lr, tolerance)
        results = [result for result in results if reliable(few, result.schedule.values())] or results
    bound = None if evaluator.nodes.momentum else certificate(evaluator.nodes, total_steps, max_lr)
    return replace(min(results, key=_loss), lower_bound=bound)


def _lower_minima(evaluator: Evaluator, results: list[Search], max_lr: float, tolerance: float) -> list[Search]:
    """The optimised :func:`~eigencurve.theory.short_runs.low_minima` whose losses are clearly below ``results``."""
    minima = []
    for i, rates in enumerate(low_minima(evaluator.few, max_lr, [result.schedule.values() for result in results]), 1):
        schedule, converged = polish(evaluator, rates, max_lr, tolerance)
        minima.append(Search(schedule, evaluator.loss(schedule), None, f"minimum {i}", STATUS[converged]))
    lowest = min(map(_loss, results))
    return [minimum for minimum in minima if minimum.loss < (1 - CLEAR) * lowest]


def _loss(result: Search) -> float:
    return result.loss


def knots_for(total_steps: int, num_knots: int) -> IntArray:
    """About ``num_knots`` steps from 0 to T-1: half evenly spaced, half geometric in the number of steps left."""
    if total_steps <= num_knots:
        return np.arange(total_steps)
    last, half = total_steps - 1, num_knots // 2
    even = np.linspace(0, last, half).round()
    late = last - np.geomspace(1, last, num_knots - half).round()
    return np.unique(np.concatenate((even, late))).astype(np.int64)


def descend(evaluator: Evaluator, schedule: Schedule, max_lr: float, tolerance: float = EXACT) -> tuple[Schedule, bool]:
    """Lower the loss of ``schedule`` in passes with more and more knots.

    Returns:
        Straight lines through the knots of the last pass, and whether that pass converged. If there are several rounds
        of passes, each starts from the result of the one before, and the best result counts.
    """
    cheap, lowest, best = isinstance(evaluator, LongRunEvaluator), math.inf, (schedule, False)
    for _ in range(CHEAP_ROUNDS if cheap else 1):
        schedule, loss, converged = _refined(evaluator, schedule, max_lr, tolerance)
        if loss < lowest:
            lowest, best = loss, (schedule, converged)
    return best


def polish(evaluator: Evaluator, rates: Array, max_lr: float, tolerance: float = EXACT) -> tuple[Schedule, bool]:
    """Lower the loss of a short run from the ``rates`` of its steps in one pass, and whether that converged."""
    steps = np.arange(len(rates))
    objective = evaluator.loss_at_knots(len(rates), steps)
    polished, _, converged = _minimise(objective, rates, max_lr, tolerance, MAX_CHEAP_ITERATIONS)
    return piecewise(len(rates), steps.astype(np.float64), polished), converged


def _refined(evaluator: Evaluator, schedule: Schedule, max_lr: float, tolerance: float) -> tuple[Schedule, float, bool]:
    """One round of passes: its result, the loss that the last pass ended with, and whether it converged."""
    total_steps = schedule.total_steps
    most = MAX_CHEAP_ITERATIONS if isinstance(evaluator, LongRunEvaluator) else MAX_ITERATIONS
    for level in LEVELS:
        knots = knots_for(total_steps, level)
        rates, loss, converged = _minimise(
            evaluator.loss_at_knots(total_steps, knots), schedule(knots), max_lr, tolerance, most
        )
        schedule = piecewise(total_steps, knots.astype(np.float64), rates)
        if len(knots) == total_steps:
            break
    return schedule, loss, converged


def _minimise(
    loss_and_gradient: Callable[[Array], tuple[float, Array]],
    rates: Array,
    max_lr: float,
    tolerance: float,
    max_iterations: int,
) -> tuple[Array, float, bool]:
    """L-BFGS over the logarithms of ``rates``: its rates, their loss, and whether it converged."""
    begin = np.log(np.clip(rates / max_lr, SMALLEST_RATE, 1.0))
    scale = loss_and_gradient(max_lr * np.exp(begin))[0]
    if scale < LEAST_LOSS:
        return max_lr * np.exp(begin), scale, True

    def objective(logs: Array) -> tuple[float, Array]:
        now = max_lr * np.exp(logs)
        loss, gradient = loss_and_gradient(now)
        if not loss < DIVERGED * scale:
            return DIVERGED, np.zeros(len(now))
        return loss / scale, gradient * now / scale

    limits = [(math.log(SMALLEST_RATE), 0.0)] * len(rates)
    options = {**LBFGS, "ftol": tolerance, "maxiter": max_iterations, "maxfun": 2 * max_iterations}
    minimum = minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return np.minimum(max_lr * np.exp(minimum.x), max_lr), scale * float(minimum.fun), bool(minimum.success)
