r"""Differences between two schedules on the same seeds, and the number of seeds that resolves a difference.

Runs of the same seed share their initial weights and the order of their examples, so the difference of two schedules
is taken seed by seed. For n differences of mean m and sample standard deviation s, the two-sided interval at level α is

.. math:: m \pm t_{1-\alpha/2,\,n-1}\, s / \sqrt n

The differences are taken as independent and normal.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import integrate, special, stats

from paper import checks
from paper.engine.claims import ranked
from paper.engine.protocol import Trials
from paper.page import markdown_table

LEVEL = 0.05
POWER = 0.8
FEWEST_SEEDS, MANY_SEEDS = 2, 10_000
TINY = 1e-12  # probability that is left out of an integral at either end


@dataclass(frozen=True)
class PairedDifference:
    """One schedule minus another, seed by seed."""

    values: tuple[float, ...]  # difference at each seed that both have; at least two

    @property
    def mean(self) -> float:
        """Mean difference."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float:
        """Sample standard deviation of the differences."""
        return statistics.stdev(self.values)

    @property
    def error(self) -> float:
        """Standard error of the mean difference."""
        return self.deviation / math.sqrt(len(self.values))

    @property
    def interval(self) -> tuple[float, float]:
        """The two-sided 95 % interval of the mean difference."""
        half = float(stats.t.ppf(1 - LEVEL / 2, len(self.values) - 1)) * self.error
        return self.mean - half, self.mean + half

    @property
    def sign(self) -> int:
        """1 or -1 if the interval is above or below zero, else 0."""
        low, high = self.interval
        return (low > 0) - (high < 0)


def paired_difference(trials: Trials, reference: Trials) -> PairedDifference | None:
    """``trials`` minus ``reference`` at the seeds that both have; None for fewer than two such seeds."""
    other = dict(zip(reference.seeds, reference.values, strict=True))
    values = [value - other[seed] for seed, value in zip(trials.seeds, trials.values, strict=True) if seed in other]
    return PairedDifference(tuple(values)) if len(values) > 1 else None


def paired_differences(trials: Mapping[str, Trials], reference: str) -> dict[str, PairedDifference]:
    """Every other schedule minus ``reference``; without those that share fewer than two seeds with it."""
    if reference not in trials:
        return {}
    pairs = {name: paired_difference(one, trials[reference]) for name, one in trials.items() if name != reference}
    return {name: difference for name, difference in pairs.items() if difference is not None}


def differences_table(
    differences: Mapping[str, PairedDifference], digits: int, below: str, above: str, resolve: float | None = None
) -> str:
    """Mean difference ± its standard error, the 95 % interval, a verdict, and each seed.

    With ``resolve``, the last column is the number of seeds that detects such a difference.
    """
    columns, rows = ["schedule", "difference ± standard error", "95 % interval", "verdict", "by seed"], []
    for name, difference in differences.items():
        low, high = difference.interval
        mean = f"{difference.mean:+.{digits}f} ± {difference.error:.{digits}f}"
        verdict = {1: above, -1: below, 0: "not resolved"}[difference.sign]
        shown = ", ".join(f"{value:+.{digits}f}" for value in difference.values)
        needed = [] if resolve is None else [f"{seeds_needed(resolve, difference.deviation):,}"]
        rows.append([name, mean, f"{low:+.{digits}f} … {high:+.{digits}f}", verdict, shown, *needed])
    return markdown_table([*columns, *([] if resolve is None else [f"seeds to resolve {resolve:g}"])], rows)


def pooled_deviation(differences: Iterable[PairedDifference]) -> float:
    r"""Root of the mean variance of several differences, weighted by degrees of freedom.

    .. math:: s = \sqrt{\sum_k (n_k - 1) s_k^2 \Big/ \sum_k (n_k - 1)}
    """
    every = list(differences)
    freedom = sum(len(one.values) - 1 for one in every)
    if not freedom:
        checks.refuse("pooled_deviation", "differences", "at least one", 0)
    return math.sqrt(sum((len(one.values) - 1) * one.deviation**2 for one in every) / freedom)


def seeds_sentence(differences: Mapping[str, PairedDifference], resolve: float, digits: int, unit: str) -> str:
    """The number of seeds that resolves a difference, from all rows together."""
    deviation = pooled_deviation(differences.values())
    return (
        f"Pooled over the rows, a difference has a standard deviation of {deviation:.{digits}f} per seed; a paired"
        f" t-test (two-sided, 5 %) detects {resolve:g} {unit} with probability 80 % from"
        f" {seeds_needed(resolve, deviation):,} seeds on."
    )


def resolved_difference(trials: Iterable[Trials]) -> float | None:
    r"""The smallest difference of two means that many schedules together resolve at 5 %.

    With k schedules on the same n seeds and :math:`y_{is} = a_i + b_s + e_{is}`, all errors of one variance, the
    residuals of this two-way analysis of variance estimate it with :math:`\nu = (k-1)(n-1)` degrees of freedom:

    .. math:: s^2 = \frac1\nu \sum_{is} (y_{is} - \bar y_i - \bar y_s + \bar y)^2, \qquad
        t_{0.975,\,\nu}\, s \sqrt{2/n}

    Three seeds of one pair have two degrees of freedom, so an interval of their own is wide. This one assumes more.
    None for fewer than two schedules or common seeds.
    """
    every = list(trials)
    common = sorted(set.intersection(*(set(one.seeds) for one in every))) if every else []
    if len(every) < 2 or len(common) < 2:
        return None
    values = np.array([[dict(zip(one.seeds, one.values, strict=True))[seed] for seed in common] for one in every])
    residuals = values - values.mean(1, keepdims=True) - values.mean(0) + values.mean()
    freedom = (len(every) - 1) * (len(common) - 1)
    deviation = math.sqrt(float((residuals**2).sum()) / freedom)
    return float(stats.t.ppf(1 - LEVEL / 2, freedom)) * deviation * math.sqrt(2 / len(common))


def together_sentence(trials: Mapping[str, Trials], reference: str, minimise: bool, digits: int, unit: str) -> str:
    """The difference that all schedules together resolve, and which schedules differ from ``reference`` by more.

    Schedules that lack a seed of the reference are left out. Empty if fewer than two schedules are left.
    """
    complete = {name: one for name, one in trials.items() if set(one.seeds) == set(trials[reference].seeds)}
    limit = resolved_difference(complete.values())
    if limit is None:
        return ""
    middle, sign = complete[reference].mean or 0.0, 1 if minimise else -1
    gains = {name: sign * (middle - (complete[name].mean or 0.0)) for name in ranked(complete, minimise)}
    ahead = [name for name, gain in gains.items() if gain > limit]
    behind = [name for name, gain in gains.items() if gain < -limit]
    return (
        f"If all {len(complete)} schedules scatter alike, they resolve differences above {limit:.{digits}f} {unit}"
        " together (two-way analysis of variance over schedules and seeds, 95 %, without a correction for the number of"
        f" comparisons). By more than that, better than {reference}: {', '.join(ahead) or 'none'}; worse:"
        f" {', '.join(behind) or 'none'}."
    )


def power_of(num_seeds: int, difference: float, deviation: float) -> float:
    r"""The probability that a two-sided paired t-test at 5 % detects a true mean difference.

    With the critical value :math:`c = t_{0.975,\,n-1}`, the shift :math:`\Delta = \delta\sqrt n / s` and
    :math:`U^2 = \chi^2_{n-1} / (n-1)`, the relative error of the estimated variance, the test detects with probability

    .. math:: \mathbb E_U\bigl[\Phi(\Delta - cU) + \Phi(-\Delta - cU)\bigr]

    SciPy's noncentral t distribution is the same in principle, but fails for few seeds and large shifts.

    Args:
        num_seeds: Number of seeds n.
        difference: True difference δ.
        deviation: Standard deviation s of the difference at one seed.
    """
    freedom = num_seeds - 1
    critical = stats.t.ppf(1 - LEVEL / 2, freedom)
    shift = difference * math.sqrt(num_seeds) / deviation
    spread = stats.chi(freedom, scale=1 / math.sqrt(freedom))

    def density(u: float) -> float:
        return float(spread.pdf(u) * (special.ndtr(shift - critical * u) + special.ndtr(-shift - critical * u)))

    power, _ = integrate.quad(density, *spread.ppf([TINY, 1 - TINY]), limit=200)
    return float(power)


def seeds_needed(difference: float, deviation: float) -> int:
    """The smallest number of seeds with which a paired t-test at 5 % detects ``difference`` with probability 80 %.

    Args:
        difference: Difference to detect, above 0.
        deviation: Standard deviation of the difference at one seed.

    >>> seeds_needed(0.5, 0.5), seeds_needed(0.5, 0.2)
    (10, 4)
    """
    checks.positive("seeds_needed", "difference", difference)
    checks.at_least("seeds_needed", "deviation", deviation, 0.0)
    if deviation == 0:
        return FEWEST_SEEDS
    # The sum of two normal quantiles gives a number that is a few seeds too small, because a t-test needs more.
    quantiles = float(special.ndtri(1 - LEVEL / 2) + special.ndtri(POWER))
    normal = (quantiles * deviation / difference) ** 2
    if normal > MANY_SEEDS:
        return math.ceil(normal)
    count = max(FEWEST_SEEDS, math.floor(normal))
    while power_of(count, difference, deviation) < POWER:
        count += 1
    return count
