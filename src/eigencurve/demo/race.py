"""The demo's race: the recommendation as planned, against every schedule at the rate that suits it best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from eigencurve._arrays import Array
from eigencurve.demo.training import Digits, train_together
from eigencurve.schedules.base import Schedule
from eigencurve.theory.tuning import rescaled

RECOMMENDATION = "the recommendation"
# Two schedules differ if the mean difference is larger than this many standard errors.
CLEAR = 2.0
# A rate is too high if the loss is larger than the least one by this factor.
TOO_HIGH = 2.0


@dataclass(frozen=True, eq=False)
class Tuned:
    """A schedule at many peak rates.

    Attributes:
        schedule: The schedule at the rate with the least loss.
        rates: The rates.
        losses: Mean final loss at each rate; infinite if a run diverged.
    """

    schedule: Schedule
    rates: Sequence[float]
    losses: Array

    @property
    def best_rate(self) -> float:
        """The rate with the least loss."""
        return self.rates[int(np.argmin(self.losses))]

    @property
    def highest_rate(self) -> float:
        """The largest rate whose loss, and that of all rates from the best one up, is not much above the least."""
        best = int(np.argmin(self.losses))
        too_high = np.flatnonzero(self.losses[best:] > TOO_HIGH * self.losses[best])
        return self.rates[best + int(too_high[0]) - 1] if len(too_high) else self.rates[-1]


@dataclass(frozen=True, eq=False)
class Racer:
    """A schedule in the race.

    Attributes:
        name: Name of the schedule.
        schedule: The schedule, at its rate.
        predicted: Predicted final loss; infinite if the model diverges.
        losses: Final loss on the training images, one per start.
        accuracies: Final test accuracy, one per start.
        curve: Loss of every batch, averaged over the starts.
    """

    name: str
    schedule: Schedule
    predicted: float
    losses: Array
    accuracies: Array
    curve: Array

    @property
    def loss(self) -> float:
        """Mean final loss."""
        return float(self.losses.mean())

    @property
    def peak(self) -> float:
        """Largest rate."""
        return float(self.schedule.values().max())


def at_rate(schedule: Schedule, rate: float) -> Schedule:
    """``schedule`` with the peak rate ``rate``."""
    return rescaled(schedule, rate / float(schedule.values().max()))


def tune_all(
    data: Digits, shapes: Mapping[str, Schedule], rates: Sequence[float], seeds: Sequence[int],
    after_step: Callable[[], None] = lambda: None,
) -> dict[str, Tuned]:  # fmt: skip
    """Find the best peak rate of every schedule by training with all of ``rates``."""
    found = {}
    for name, shape in shapes.items():
        tried = [at_rate(shape, rate) for rate in rates]
        means = train_together(data, tried, seeds, after_step).losses.mean(axis=1)
        losses = np.where(np.isfinite(means), means, np.inf)
        found[name] = Tuned(tried[int(np.argmin(losses))], rates, losses)
    return found


def race(
    data: Digits, schedules: Mapping[str, Schedule], predicted: Mapping[str, float], seeds: Sequence[int],
    after_step: Callable[[], None] = lambda: None,
) -> list[Racer]:  # fmt: skip
    """Train with every schedule from every start; the first schedule stays first, the others are sorted by loss."""
    found = train_together(data, list(schedules.values()), seeds, after_step)
    first, *others = (
        Racer(name, f, predicted[name], found.losses[i], found.accuracies[i], found.curves[i].mean(axis=0))
        for i, (name, f) in enumerate(schedules.items())
    )
    return [first, *sorted(others, key=lambda racer: racer.loss)]


def difference(one: Racer, other: Racer) -> tuple[float, float]:
    """Mean difference of the losses from the same starts, and its standard error."""
    return mean_and_error(one.losses - other.losses)


def mean_and_error(values: Array) -> tuple[float, float]:
    """Mean and standard error; the error of a single value is 0."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return float(values.mean()), spread / len(values) ** 0.5


def race_table(racers: Sequence[Racer]) -> str:
    """The race as text: predicted losses next to measured ones, mean ± standard error."""
    width = max(len(racer.name) for racer in racers)
    head = f"{'schedule':<{width}} {'peak lr':>8} {'predicted':>10} {'training loss':>18} {'test accuracy':>17}"
    return "\n".join([head, *(_line(racer, width) for racer in racers)])


def _line(racer: Racer, width: int) -> str:
    predicted = f"{racer.predicted:.4f}" if np.isfinite(racer.predicted) else "diverges"
    loss, accuracy = (mean_and_error(values) for values in (racer.losses, 100 * racer.accuracies))
    measured = f"{loss[0]:.4f} ± {loss[1]:.4f}"
    return (
        f"{racer.name:<{width}} {racer.peak:>8.3g} {predicted:>10} {measured:>18} "
        f"{f'{accuracy[0]:.1f} ± {accuracy[1]:.1f} %':>17}"
    )


def tuning_table(tuned: Mapping[str, Tuned]) -> str:
    """Mean losses of the tuning runs, one row per rate; a star marks the best rate of each schedule."""
    rates = next(iter(tuned.values())).rates
    widths = [max(len(name), 8) for name in tuned]
    head = "peak lr  " + "  ".join(f"{name:>{width}}" for name, width in zip(tuned, widths, strict=True))
    cells = [[_cell(one, i) for one in tuned.values()] for i in range(len(rates))]
    rows = [
        f"{rate:<7.3g}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        for rate, row in zip(rates, cells, strict=True)
    ]
    return "\n".join([head, *rows])


def _cell(tuned: Tuned, place: int) -> str:
    loss = tuned.losses[place]
    return ("*" if place == np.argmin(tuned.losses) else "") + (f"{loss:.4f}" if np.isfinite(loss) else "diverged")


def outcome_sentence(racers: Sequence[Racer]) -> str:
    """Whether the recommendation, the first of ``racers``, was the best, within noise, or beaten."""
    own, *others = racers
    pairs = [difference(own, other) for other in others]
    lower = sum(diff < -CLEAR * error for diff, error in pairs)
    higher = sum(diff > CLEAR * error for diff, error in pairs)
    best = min(others, key=lambda other: other.loss)
    ahead = f"{best.name} at {best.peak:.3g} ended {100 * abs(1 - best.loss / own.loss):.0f} %"
    if higher:
        first = f"The recommendation was beaten: {ahead} lower."
    elif lower == len(others):
        first = f"The recommendation was the best: the next one, {ahead} higher."
    else:
        side = "higher" if best.loss > own.loss else "lower"
        first = f"The recommendation was the best within noise: {ahead} {side}, which may be chance."
    return (
        f"{first} Of {len(others)} schedules at their own best rates, {lower} ended higher than the recommendation, "
        f"{len(others) - lower - higher} level with it, and {higher} lower (by more than {CLEAR:g} standard errors)."
    )


def prediction_sentence(racers: Sequence[Racer]) -> str:
    """How well the model predicted the order and the size of the losses."""
    predicted, measured = (np.array(values) for values in zip(*((r.predicted, r.loss) for r in racers), strict=True))
    rank = _rank_correlation(predicted, measured)
    known = np.isfinite(predicted)
    factor = float(np.exp(np.log(predicted[known] / measured[known]).mean()))
    size = f"{factor:.1f} times the measured ones" if factor >= 1 else f"1/{1 / factor:.1f} of the measured ones"
    return (
        f"The model predicted the order of these losses with a rank correlation of {rank:.2f} (1 is perfect). "
        f"The predicted losses are {size} on average."
    )


def _rank_correlation(predicted: Sequence[float] | Array, measured: Sequence[float] | Array) -> float:
    """Spearman's correlation; an infinite loss ranks last."""
    return float(spearmanr(predicted, measured).statistic)


def same_rate_sentence(name: str, tuned: Mapping[str, Tuned], rate: float, predicted: Mapping[str, float]) -> str:
    """How the recommended schedule compares with the others, and with the prediction, if all have the same rate.

    Args:
        name: Name of the recommended schedule.
        tuned: Every schedule at many rates, by name.
        rate: One of these rates.
        predicted: Predicted losses at this rate, by name.
    """
    losses = {other: float(one.losses[list(one.rates).index(rate)]) for other, one in tuned.items()}
    first, place = min(losses, key=losses.__getitem__), sum(loss < losses[name] for loss in losses.values())
    behind = f", {100 * (losses[name] / losses[first] - 1):.0f} % behind {first}" if place else ""
    rank = _rank_correlation([predicted[other] for other in losses], list(losses.values()))
    return (
        f"If every schedule has about the plan's rate ({rate:.3g}), {name} is number {place + 1} of {len(losses)}"
        f"{behind}, and the rank correlation with the prediction is {rank:.2f}."
    )


def nearest_rate(rates: Sequence[float], rate: float) -> float:
    """The one of ``rates`` that is closest to ``rate`` by its ratio."""
    return min(rates, key=lambda tried: abs(np.log(tried / rate)))


def rate_sentence(name: str, tuned: Tuned, planned: float, stable: float) -> str:
    """How the rates of the plan and of the quadratic compare with those that work.

    Args:
        name: Name of the recommended schedule.
        tuned: Its losses at many rates.
        planned: Peak rate of the plan.
        stable: Largest stable rate of the quadratic.
    """
    first = f"The best rate for {name} is {tuned.best_rate:.3g}; the plan used {planned:.3g}."
    if stable <= tuned.highest_rate:
        return f"{first} The limit of stability of the quadratic, {stable:.3g}, is no higher than rates that work."
    return (
        f"{first} Above {tuned.highest_rate:.3g} its loss more than doubles, although the quadratic, measured after "
        f"training, is stable up to {stable:.3g}: the curvature is higher early in training. "
        "Limit the rate by a range test, as here."
    )
