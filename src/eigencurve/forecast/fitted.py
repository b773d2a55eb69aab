"""FittedRuns: a fit to logged runs, and the loss of any schedule by every member of its ensemble."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen
from eigencurve.forecast.coverage import LoggedRange, coverage_of
from eigencurve.forecast.model import Law
from eigencurve.schedules.base import Schedule
from eigencurve.theory.recursion import DivergenceError

# How far the loss may deviate beyond what was logged: of the power law per factor e of a longer run, relative to its
# slope, and of the noise per factor e of a faster decay, relative to the noise that the decay removes.
LONGER, FASTER = 0.1, 0.1
# If no logged run decays, the standard deviation of what a decay gains, as a fraction of the fall of the losses.
UNLOGGED = 0.25


@dataclass(frozen=True, eq=False)
class EnsembleMember:
    """The fit for one exponent γ.

    Attributes:
        gamma: Exponent of the curvature's dependence on the rate.
        weight: Probability of this exponent.
        parameters: Parameters of the :class:`~.model.Law`.
        covariance: Their covariance.
    """

    gamma: float
    weight: float
    parameters: Array
    covariance: Array


@dataclass(frozen=True, eq=False)
class ScheduleForecast:
    """The loss of a schedule by every member of a fit.

    Attributes:
        schedule: The schedule.
        steps: Numbers of steps.
        losses: Loss after each number of steps: one row per member.
        slopes: Derivatives of the loss in the parameters: one matrix per member.
        slack: Standard deviation to add because the schedule goes beyond the logged runs.
        coverage: Lengths, rates and decay of the schedule, to compare with those of the logged runs.
        source: The fit.
    """

    schedule: Schedule
    steps: IntArray
    losses: Array
    slopes: Array
    slack: Array
    coverage: LoggedRange
    source: FittedRuns

    @property
    def mean(self) -> Array:
        """The expected loss after each number of steps."""
        return np.asarray(self.source.weights @ self.losses)

    @property
    def variance(self) -> Array:
        """Its variance: of the parameters, between the members, and beyond the logged runs."""
        return self.source.mixed_variance(self.losses, self.slopes) + self.slack**2

    def minus(self, other: ScheduleForecast) -> tuple[float, float]:
        """The difference of the final losses, and its variance. The errors of two fits are independent."""
        difference = float(self.mean[-1] - other.mean[-1])
        if other.source is not self.source:
            return difference, float(self.variance[-1] + other.variance[-1])
        losses, slopes = self.losses[:, -1:] - other.losses[:, -1:], self.slopes[:, -1:] - other.slopes[:, -1:]
        variance = float(self.source.mixed_variance(losses, slopes)[0])
        return difference, variance + float(self.slack[-1] - other.slack[-1]) ** 2


@dataclass(frozen=True, eq=False)
class FittedRuns:
    """A fit to logged runs.

    Attributes:
        law: The two measures as functions of the parameters.
        reference: Rate that the relative rates refer to: the highest logged peak.
        members: One fit for each exponent γ, with its probability.
        logged: Rates, lengths and decays of the fitted runs.
        misfit: Standard deviation of the model's own error.
    """

    law: Law
    reference: float
    members: tuple[EnsembleMember, ...]
    logged: LoggedRange
    misfit: float

    @property
    def likeliest(self) -> EnsembleMember:
        """The member with the highest probability."""
        return max(self.members, key=lambda member: member.weight)

    @property
    def weights(self) -> Array:
        """Probability of every member."""
        return np.array([member.weight for member in self.members])

    def in_unit(self, unit: float) -> FittedRuns:
        """The same fit for losses that are ``unit`` times larger."""
        members = []
        for member in self.members:
            scaled = map(frozen, self.law.in_unit(member.parameters, member.covariance, unit))
            members.append(EnsembleMember(member.gamma, member.weight, *scaled))
        law = dataclasses.replace(self.law, spread=self.law.spread * unit)
        return dataclasses.replace(self, law=law, members=tuple(members), misfit=self.misfit * unit)

    def log_ratio(self, peak: float) -> float:
        """The logarithm of a peak rate relative to the reference."""
        return math.log(peak / self.reference)

    def forecast(self, schedule: Schedule, marks: IntArray | None = None) -> ScheduleForecast:
        """The loss of every member after each of ``marks`` steps (by default T), and its derivatives."""
        steps = np.array([schedule.total_steps]) if marks is None else marks
        coverage = coverage_of(schedule, self.reference)
        ratio = self.log_ratio(coverage.highest_peak)
        losses, slopes, slacks = [], [], []
        for member in self.members:
            bias, variance = self._responses(schedule, member, steps)
            losses.append(self.law.loss(member.parameters, bias, variance, ratio))
            slopes.append(self.law.slopes(member.parameters, bias, variance, ratio))
            slacks.append(self._slack(member, bias, variance, ratio, coverage))
        slack = np.average(slacks, axis=0, weights=self.weights)
        return ScheduleForecast(schedule, steps, np.array(losses), np.array(slopes), slack, coverage, self)

    def mixed_variance(self, losses: Array, slopes: Array) -> Array:
        """The variance of the mixture: the mean of the members' variances plus the variance of their means."""
        covariances = np.array([member.covariance for member in self.members])
        inner = np.array([np.einsum("ij,jk,ik->i", s, c, s) for s, c in zip(slopes, covariances, strict=True)])
        return np.asarray(self.weights @ (inner + (losses - self.weights @ losses) ** 2))

    def to_dict(self) -> dict[str, Any]:
        """The fit as a dict of plain values, for JSON."""
        grid = {"lam": self.law.lam.tolist(), "first_noisy": self.law.first_noisy}
        return {
            "law": {"grid": grid, "travel": self.law.travel, "spread": self.law.spread},
            "reference": self.reference,
            "members": [
                {name: np.asarray(value).tolist() for name, value in vars(member).items()} for member in self.members
            ],
            "logged": self.logged.to_dict(),
            "misfit": self.misfit,
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> FittedRuns:
        """The inverse of :meth:`to_dict`."""
        law, grid = entry["law"], entry["law"]["grid"]
        members = tuple(
            EnsembleMember(
                m["gamma"], m["weight"], *(frozen(np.array(m[name])) for name in ("parameters", "covariance"))
            )
            for m in entry["members"]
        )
        fitted = Law(frozen(np.array(grid["lam"])), grid["first_noisy"], law["travel"], law["spread"])
        return cls(fitted, entry["reference"], members, LoggedRange.from_dict(entry["logged"]), entry["misfit"])

    def _responses(self, schedule: Schedule, member: EnsembleMember, marks: IntArray) -> tuple[Array, Array]:
        try:
            return self.law.responses(schedule, self.reference, member.gamma, marks)
        except DivergenceError:
            limit = f"within about 4 times the highest logged rate ({self.reference:.3g})"
            highest, remedy = float(schedule.values().max()), "Log a run near that rate first."
            raise _check.ArgumentValueError("predict", "schedule", limit, highest, remedy) from None

    def _slack(
        self, member: EnsembleMember, bias: Array, variance: Array, ratio: float, coverage: LoggedRange
    ) -> Array:
        """The standard deviation to add beyond the logged horizon and the fastest logged decay."""
        logged = self.logged
        longer = max(math.log(coverage.travel / logged.travel), math.log(coverage.num_steps / logged.num_steps), 0)
        slack = LONGER * longer * self.law.progress_slope(member.parameters, bias, ratio)
        if coverage.decay < logged.decay:
            noise = self.law.noise(member.parameters, ratio)
            held = float(noise.sum()) / 2
            removed = np.clip(1 - variance @ noise / held, 0.0, 1.0)
            uncertain = UNLOGGED * self.law.spread
            if math.isfinite(logged.decay):
                uncertain = FASTER * held * math.log(logged.decay / max(coverage.decay, 1.0))
            slack = np.hypot(slack, uncertain * removed)
        return np.abs(slack)
