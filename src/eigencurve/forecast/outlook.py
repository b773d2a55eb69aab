"""The loss of a schedule by every fitted member, with what it depends on."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen
from eigencurve.forecast.law import Law
from eigencurve.forecast.logged import Logged, reach_of
from eigencurve.forecast.measures import Grid, effective_schedule, responses
from eigencurve.schedules.base import Schedule
from eigencurve.theory.recursion import DivergenceError

# How far the loss may deviate beyond what was logged: of the power law per factor e of a longer run, relative to its
# slope, and of the noise per factor e of a faster decay, relative to the noise that the decay removes.
LONGER, FASTER = 0.1, 0.1
# If no logged run decays, the standard deviation of what a decay gains, as a fraction of the fall of the losses.
UNLOGGED = 0.25


@dataclass(frozen=True, eq=False)
class Member:
    """The fit for one exponent γ.

    Attributes:
        gamma: Exponent of the curvature's dependence on the rate.
        weight: Probability of this exponent.
        parameters: Parameters of the :class:`~.law.Law`.
        covariance: Their covariance.
    """

    gamma: float
    weight: float
    parameters: Array
    covariance: Array


@dataclass(frozen=True, eq=False)
class Outlook:
    """The loss of a schedule by every member of a forecast.

    Attributes:
        schedule: The schedule.
        steps: Numbers of steps.
        losses: Loss after each number of steps: one row per member.
        slopes: Derivatives of the loss in the parameters: one matrix per member.
        slack: Standard deviation to add because the schedule goes beyond the logged runs.
        reach: What the schedule covers.
        source: The fit.
    """

    schedule: Schedule
    steps: IntArray
    losses: Array
    slopes: list[Array]
    slack: Array
    reach: Logged
    source: FittedRuns

    @property
    def weights(self) -> Array:
        """Probability of every member."""
        return np.array([member.weight for member in self.source.members])

    @property
    def covariances(self) -> list[Array]:
        """Covariance of the parameters of every member."""
        return [member.covariance for member in self.source.members]

    @property
    def mean(self) -> Array:
        """The expected loss after each number of steps."""
        return np.asarray(self.weights @ self.losses)

    @property
    def variance(self) -> Array:
        """Its variance: of the parameters, between the members, and beyond the logged runs."""
        return _mixed_variance(self.weights, self.losses, self.slopes, self.covariances) + self.slack**2

    def minus(self, other: Outlook) -> tuple[float, float]:
        """The difference of the final losses, and its variance. The errors of two fits are independent."""
        if other.source is not self.source:
            return float(self.mean[-1] - other.mean[-1]), float(self.variance[-1] + other.variance[-1])
        losses = self.losses[:, -1:] - other.losses[:, -1:]
        slopes = [mine[-1:] - theirs[-1:] for mine, theirs in zip(self.slopes, other.slopes, strict=True)]
        variance = float(_mixed_variance(self.weights, losses, slopes, self.covariances)[0])
        return float(self.weights @ losses[:, 0]), variance + float(self.slack[-1] - other.slack[-1]) ** 2


def _mixed_variance(weights: Array, losses: Array, slopes: Sequence[Array], covariances: Sequence[Array]) -> Array:
    """The variance of a mixture: the mean of the members' variances plus the variance of their means."""
    pairs = zip(slopes, covariances, strict=True)
    inner = np.array([np.einsum("ij,jk,ik->i", slope, covariance, slope) for slope, covariance in pairs])
    return np.asarray(weights @ (inner + (losses - weights @ losses) ** 2))


@dataclass(frozen=True, eq=False)
class FittedRuns:
    """What a fit found.

    Attributes:
        law: The two measures as functions of the parameters.
        reference: Rate that the relative rates refer to: the highest logged peak.
        members: One fit for each exponent γ, with its probability.
        logged: What the fitted runs cover.
        misfit: Standard deviation of the model's own error.
    """

    law: Law
    reference: float
    members: tuple[Member, ...]
    logged: Logged
    misfit: float

    @property
    def likeliest(self) -> Member:
        """The member with the highest probability."""
        return max(self.members, key=lambda member: member.weight)

    def in_unit(self, unit: float) -> FittedRuns:
        """The same fit for losses that are ``unit`` times larger."""
        members = tuple(
            dataclasses.replace(
                member,
                parameters=frozen(self.law.in_unit(member.parameters, unit)),
                covariance=frozen(self.law.covariance_in_unit(member.covariance, unit)),
            )
            for member in self.members
        )
        law = dataclasses.replace(self.law, spread=self.law.spread * unit)
        return dataclasses.replace(self, law=law, members=members, misfit=self.misfit * unit)

    def log_ratio(self, peak: float) -> float:
        """The logarithm of a peak rate relative to the reference."""
        return math.log(peak / self.reference)

    def outlook(self, schedule: Schedule, marks: IntArray | None = None) -> Outlook:
        """The loss of every member after each of ``marks`` steps (by default T), and its derivatives."""
        steps = np.array([schedule.total_steps]) if marks is None else marks
        reach = reach_of(schedule, self.reference)
        ratio = self.log_ratio(reach.highest_peak)
        losses, slopes, slacks = [], [], []
        for member in self.members:
            bias, variance = self._responses(schedule, member, steps)
            losses.append(self.law.loss(member.parameters, bias, variance, ratio))
            slopes.append(self.law.slopes(member.parameters, bias, variance, ratio))
            slacks.append(self._slack(member, bias, variance, ratio, reach))
        slack = np.average(slacks, axis=0, weights=[member.weight for member in self.members])
        return Outlook(schedule, steps, np.array(losses), slopes, slack, reach, self)

    def to_dict(self) -> dict[str, Any]:
        """The fit as a dict of plain values, for JSON."""
        grid = {"lam": self.law.grid.lam.tolist(), "first_noisy": self.law.grid.first_noisy}
        members = [
            {
                "gamma": member.gamma,
                "weight": member.weight,
                "parameters": member.parameters.tolist(),
                "covariance": member.covariance.tolist(),
            }
            for member in self.members
        ]
        return {
            "law": {"grid": grid, "travel": self.law.travel, "spread": self.law.spread},
            "reference": self.reference,
            "members": members,
            "logged": self.logged.to_dict(),
            "misfit": self.misfit,
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> FittedRuns:
        """The inverse of :meth:`to_dict`."""
        law, grid = entry["law"], entry["law"]["grid"]
        members = tuple(
            Member(m["gamma"], m["weight"], frozen(np.array(m["parameters"])), frozen(np.array(m["covariance"])))
            for m in entry["members"]
        )
        found = Law(Grid(frozen(np.array(grid["lam"])), grid["first_noisy"]), law["travel"], law["spread"])
        return cls(found, entry["reference"], members, Logged.from_dict(entry["logged"]), entry["misfit"])

    def _responses(self, schedule: Schedule, member: Member, marks: IntArray) -> tuple[Array, Array]:
        effective = effective_schedule(schedule, self.reference, member.gamma)
        try:
            return responses(self.law.grid, effective, member.gamma, marks)
        except DivergenceError:
            highest = float(schedule.values().max())
            remedy = "Log a run near that rate first."
            limit = f"within about 4 times the highest logged rate ({self.reference:.3g})"
            raise _check.ArgumentValueError("predict", "schedule", limit, highest, remedy) from None

    def _slack(self, member: Member, bias: Array, variance: Array, ratio: float, reach: Logged) -> Array:
        """The standard deviation to add beyond the logged horizon and the fastest logged decay."""
        longer = max(math.log(reach.travel / self.logged.travel), math.log(reach.num_steps / self.logged.num_steps), 0)
        slack = LONGER * longer * self.law.progress_slope(member.parameters, bias, ratio)
        if reach.decay < self.logged.decay:
            noise = self.law.noise(member.parameters, ratio)
            held = float(noise.sum()) / 2
            removed = np.clip(1 - variance @ noise / held, 0.0, 1.0)
            known = math.isfinite(self.logged.decay)
            faster = FASTER * held * math.log(self.logged.decay / max(reach.decay, 1.0)) if known else 0.0
            slack = np.hypot(slack, (faster if known else UNLOGGED * self.law.spread) * removed)
        return np.abs(slack)
