"""Eigencurve, the paper's schedule: piecewise inverse time decay with one piece per group of eigenvalues."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen, interpolated
from eigencurve._check import Arg
from eigencurve.schedules.allocation import optimal_allocation, round_as_released, sqrt_allocation
from eigencurve.schedules.base import Decay, between
from eigencurve.schedules.units import Steps, whole_steps
from eigencurve.spectrum.groups import group, log_density
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum

ALLOCATIONS = ("sqrt", "optimal")
ROUNDINGS = ("exact", "released")
# A run this many times shorter than the condition number is too short for its curve if the last rate is still at least
# this fraction of the first.
FAR_SHORTER, HARDLY_DECAYED = 10.0, 0.8
# Number of cells of ln λ for the limit beta = 1. A power law with more groups than this is sampled at as many nodes.
NUM_CELLS = 4096


@dataclass(frozen=True, eq=False, repr=False)
class Eigencurve(Decay):
    """See :func:`eigencurve`. The rate is ``lr`` divided by a piecewise linear denominator through the given knots.

    Attributes:
        times: Times at which the pieces meet, increasing from 0 to T.
        denominators: Denominator D at those times, non-decreasing from 1.
        min_lr: Rate of the last step, or None to leave the curve unchanged.
    """

    kind: ClassVar[str] = "eigencurve"
    times: Array
    denominators: Array
    min_lr: float | None = None
    last_raw: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        lr = _check.positive(self.kind, "lr", self.lr)
        self._settle(
            times=frozen(_check.vector(self.kind, "times", self.times)),
            denominators=frozen(_check.vector(self.kind, "denominators", self.denominators)),
            min_lr=None if self.min_lr is None else _check.last_rate(self.kind, self.min_lr, lr),
        )
        _check_knots(self)
        object.__setattr__(self, "last_raw", float(self._raw(np.array([self.total_steps - 1]))[0]))

    def _raw(self, steps: IntArray) -> Array:
        return np.asarray(self.lr / interpolated(steps, self.times, self.denominators))

    def _rates(self, steps: IntArray) -> Array:
        rates = self._raw(steps)
        if self.min_lr is None or self.last_raw == self.lr:
            return rates
        return between((rates - self.last_raw) / (self.lr - self.last_raw), self.lr, self.min_lr)

    def _piece(self, steps: IntArray) -> IntArray:
        return np.searchsorted(self.times, steps, side="right")

    def describe(self) -> str:
        """A description of the schedule with a row per interval, for at most the twenty longest intervals."""
        return super().describe() + "\n" + "\n".join(_interval_table(self))

    def __repr__(self) -> str:
        return (
            f"Eigencurve(total_steps={self.total_steps}, lr={self.lr:g}, min_lr={self.min_lr}, "
            f"{len(self.times) - 1} intervals)"
        )


def eigencurve(
    spectrum: Spectrum | PowerLaw,
    total_steps: Steps,
    lr: float,
    min_lr: float | None = None,
    beta: float = 2.0,
    allocation: str = "sqrt",
    rounding: str = "exact",
) -> Eigencurve:
    r"""The Eigencurve schedule of a spectrum.

    .. math:: \eta_t = \frac{\eta_0}{D(t)}, \qquad D(0) = 1, \qquad D' = \frac{\beta^i}{\kappa}
              \text{ for } \Delta_i = \frac{\sqrt{s_i}}{\sum_{i'}\sqrt{s_{i'}}}\,T \text{ steps}

    where :math:`s_i` is the number of eigenvalues in :math:`[\mu\beta^i, \mu\beta^{i+1})`. Empty groups take no
    time. In the limit ``beta=1``, :math:`dt \propto \sqrt{p(u)}\,du` and
    :math:`D(t) = 1 + \frac1L\int\lambda\,d\tau`, where p(u) is the density of u = ln λ (:func:`log_density`).

    Args:
        spectrum: Positive spectrum from :func:`prepare`, or a :class:`PowerLaw`, which needs no measurement.
        total_steps: Total number of steps T.
        lr: Initial rate η_0. The theory's own choice is 1/L.
        min_lr: Rate of the last step: the curve is mapped linearly, and the first rate stays ``lr``. None leaves the
            curve unchanged.
        beta: Ratio of the edges of a group, above 1, or 1 for the limit. The paper uses 2 for short runs and
            1.000005 for long ones.
        allocation: ``"sqrt"`` for the paper's interval lengths; ``"optimal"`` for those that minimise the variance
            term of its Lemma 1.
        rounding: ``"exact"`` for real interval lengths; ``"released"`` for whole steps, as in the paper's own runs.

    Raises:
        ValueError: An argument is out of range, the spectrum has κ = 1, or with ``"released"`` there are fewer steps
            than groups.

    Warns:
        UserWarning: The run is so much shorter than κ that the rate hardly decays; see :func:`decay_doubt`.

    Reference: arXiv:2110.14109, Eq. (eta_t), (delta) and Appendix "Basic Settings".

    >>> from eigencurve import Spectrum
    >>> f = eigencurve(Spectrum([1.0, 2.0, 4.0], [16, 4, 1]), total_steps=7, lr=1.0)
    >>> f.values()
    array([1.        , 0.8       , 0.66666667, 0.57142857, 0.5       ,
           0.4       , 0.33333333])
    """
    curve = curve_of(spectrum, total_steps, lr, min_lr, beta, allocation, rounding)
    if doubt := decay_doubt(curve, spectrum.kappa):
        warnings.warn(f"eigencurve: {doubt}", stacklevel=2)
    return curve


def decay_doubt(curve: Eigencurve, kappa: float) -> str:
    """A warning with its remedy if a run is so short that its curve hardly decays, else an empty string."""
    last, steps = curve(curve.total_steps - 1) / curve.lr, curve.total_steps
    if curve.min_lr is not None or FAR_SHORTER * steps > kappa or last < HARDLY_DECAYED:
        return ""
    return (
        f"The run of {steps:,} steps is {kappa / steps:,.0f} times shorter than the condition number, so its "
        f"Eigencurve schedule only falls to {100 * last:.0f} % of its first rate. "
        "Set a final rate (min_lr), or ask `plan`."
    )


def curve_of(
    spectrum: Spectrum | PowerLaw,
    total_steps: Steps,
    lr: float,
    min_lr: float | None = None,
    beta: float = 2.0,
    allocation: str = "sqrt",
    rounding: str = "exact",
) -> Eigencurve:
    """The schedule of :func:`eigencurve`, without its warning."""
    steps = whole_steps("eigencurve", "total_steps", total_steps, minimum=1)
    _check.choice("eigencurve", "allocation", allocation, ALLOCATIONS)
    _check.choice("eigencurve", "rounding", rounding, ROUNDINGS)
    if rounding == "released" and beta == 1:
        need = ("> 1 if ", Arg("rounding"), " is 'released'")
        _check.refuse("eigencurve", "beta", need, beta, "The limit has no groups to round.")
    share, slope = _pieces(spectrum, _check.at_least("eigencurve", "beta", beta, 1.0, "Use beta=1 for the limit."))
    lengths = sqrt_allocation(share, steps) if allocation == "sqrt" else optimal_allocation(share, slope, steps)
    if rounding == "released":
        lengths = round_as_released(lengths / steps, steps)
    return _from_pieces(steps, lr, lengths, slope, min_lr)


def _pieces(spectrum: Spectrum | PowerLaw, beta: float) -> tuple[Array, Array]:
    """The share and the slope λ/L of each group or, in the limit, of each cell."""
    if not isinstance(spectrum, Spectrum | PowerLaw):
        _check.wrong_type("eigencurve", "spectrum", "a Spectrum or a PowerLaw", spectrum)
    if spectrum.L == spectrum.mu > 0:
        remedy = "If all eigenvalues are equal, use inverse_time or step_decay."
        _check.refuse("eigencurve", "spectrum", "of condition number kappa > 1", 1.0, remedy)
    if beta == 1:
        return _limit_pieces(spectrum)
    if isinstance(spectrum, PowerLaw) and math.log(spectrum.kappa) > NUM_CELLS * math.log(beta):
        spectrum = spectrum.spectrum(num=NUM_CELLS)
    groups = group(spectrum, beta)
    return groups.share, groups.lower / spectrum.L


def _limit_pieces(spectrum: Spectrum | PowerLaw) -> tuple[Array, Array]:
    density = log_density(spectrum)
    edges = np.linspace(density.edges[0], density.edges[-1], NUM_CELLS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    share = density(middles)
    filled = share > 0
    return share[filled] / share.sum(), np.exp(middles[filled]) / spectrum.L


def _from_pieces(total_steps: int, lr: float, lengths: Array, slope: Array, min_lr: float | None) -> Eigencurve:
    times = np.concatenate(([0.0], np.cumsum(lengths)))
    times *= total_steps / times[-1]
    times[-1] = total_steps
    times = np.minimum(times, total_steps)
    denominators = 1 + np.concatenate(([0.0], np.cumsum(lengths * slope)))
    keep = np.append(np.diff(times) > 0, True)  # the last one of several knots at the same time
    return Eigencurve(total_steps, lr, times[keep], denominators[keep], min_lr)


def _check_knots(curve: Eigencurve) -> None:
    times, denominators = curve.times, curve.denominators
    if len(times) != len(denominators) or len(times) < 2:
        _check.refuse(
            "eigencurve", "times", "as long as 'denominators', at least 2", f"{len(times)} and {len(denominators)}"
        )
    if times[0] != 0 or times[-1] != curve.total_steps or (np.diff(times) <= 0).any():
        _check.refuse("eigencurve", "times", f"increasing from 0 to total_steps = {curve.total_steps}", times)
    if denominators[0] != 1 or (np.diff(denominators) < 0).any():
        _check.refuse("eigencurve", "denominators", "non-decreasing from 1", denominators)


def _interval_table(curve: Eigencurve, most: int = 20) -> list[str]:
    lengths, rises = np.diff(curve.times), np.diff(curve.denominators)
    rows = np.sort(np.argsort(-lengths, kind="stable")[:most])
    head = f"  {'interval':>8} {'from step':>12} {'length':>12} {'share of T':>10} {'slope':>11} {'lr at start':>12}"
    lines = [
        f"  {i:>8} {curve.times[i]:>12,.1f} {lengths[i]:>12,.1f} {lengths[i] / curve.total_steps:>10.2%}"
        f" {rises[i] / lengths[i]:>11.3e} {curve(math.ceil(curve.times[i])):>12.6g}"
        for i in rows
    ]
    more = [f"  ... and {len(lengths) - most} shorter intervals"] if len(lengths) > most else []
    return [head, *lines, *more]
