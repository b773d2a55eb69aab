"""The best schedule for the fitted noisy quadratic, and its certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array
from eigencurve.forecast.fitted import EnsembleMember, FittedRuns
from eigencurve.forecast.model import FLOOR, effective_schedule, noise_power
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import after_warmup, warmup
from eigencurve.schedules.decays import constant
from eigencurve.schedules.piecewise import piecewise
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.optimal import knots_for, search
from eigencurve.theory.quadratic import NoisyQuadratic
from eigencurve.theory.recursion import states

NUM_KNOTS = 512


@dataclass(frozen=True, eq=False)
class BestSchedule:
    """The best schedule that a search in the fitted model finds.

    Attributes:
        schedule: The schedule, including its warmup.
        loss: Forecast loss at its end.
        low: Lower end of the 80 % interval.
        high: Upper end of the 80 % interval.
        lower_bound: Loss that no schedule with this warmup and these rates has in the likeliest fitted model.
        model_loss: Loss of ``schedule`` in that model, to compare with ``lower_bound``.
        status: How the search ended; see :class:`eigencurve.theory.optimal.Search`.
        beyond: Where the schedule goes beyond the logged runs, one sentence each.
    """

    schedule: Schedule
    loss: float
    low: float
    high: float
    lower_bound: float
    model_loss: float
    status: str
    beyond: tuple[str, ...]

    @property
    def gap(self) -> float:
        """How far ``schedule`` can be from the best one in the likeliest fitted model, in units of the loss."""
        return self.model_loss - self.lower_bound

    def __repr__(self) -> str:
        interval = f"{self.loss:.4f} in [{self.low:.4f}, {self.high:.4f}]"
        return f"BestSchedule({self.schedule!r}, loss {interval}, within {self.gap:.4f} of the optimum)"


def fitted_quadratic(fitted: FittedRuns, member: EnsembleMember, peak: float) -> NoisyQuadratic:
    """The noisy quadratic of one member, in effective rates, for a run with the given peak rate.

    Its expected loss is the forecast loss above the floor.
    """
    law, count, ratio = fitted.law, len(fitted.law.lam), fitted.log_ratio(peak)
    noise = np.zeros(count)
    # Share 1/count of every node, so that ½ share (ηλ)² σ² η^p is the noise measure times λ η^(2+p).
    noise[law.first_noisy :] = 2 * count * law.noise(member.parameters, ratio) / law.noisy
    error = 2 * count * law.initial_error(member.parameters, ratio)
    return NoisyQuadratic(Spectrum(law.lam, np.ones(count)), noise, error, noise_power=noise_power(member.gamma))


def search_schedule(
    fitted: FittedRuns, total_steps: int, max_lr: float, warmup_steps: int
) -> tuple[Schedule, float, float, str]:
    """The best schedule of T steps after a linear warmup, its loss and certificate in the model, and the status."""
    member = fitted.likeliest
    power, floor = 1 - member.gamma, float(member.parameters[FLOOR])
    whole = fitted_quadratic(fitted, member, max_lr)
    error = _after_warmup(whole, fitted, member, max_lr, warmup_steps)
    after = NoisyQuadratic(whole.spectrum, whole.noise, error, noise_power=whole.noise_power)
    limit = float((max_lr / fitted.reference) ** power)
    result = search(BlockEvaluator(after.nodes), after.spectrum, total_steps - warmup_steps, limit)
    knots = knots_for(result.schedule.total_steps, NUM_KNOTS)
    rates = fitted.reference * result.schedule(knots) ** (1 / power)
    shape = piecewise(result.schedule.total_steps, knots.astype(np.float64), np.minimum(rates, max_lr))
    bound = floor + float(result.lower_bound or 0.0)
    return after_warmup(shape, warmup_steps), floor + result.loss, bound, result.status


def _after_warmup(
    quadratic: NoisyQuadratic, fitted: FittedRuns, member: EnsembleMember, max_lr: float, steps: int
) -> Array:
    """The error of every node after the warmup."""
    if not steps:
        return quadratic.initial_error
    effective = effective_schedule(warmup(constant(1, max_lr), steps), fitted.reference, member.gamma)
    bias, variance = next(states(quadratic.nodes, effective, np.array([steps])))
    return bias + variance
