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

# Two schedules differ if the mean difference is larger than this many standard errors.
CLEAR = 2.0


@dataclass(frozen=True, eq=False)
class Racer:
    """A schedule in the race.

    Attributes:
        name: Name of the schedule.
        schedule: The schedule, at its rate.
        predicted: Predicted final loss; infinite if the model diverges.
        losses: Final loss on the training images, one per start.
        accuracies: Final test accuracy, one per start.
    """

    name: str
    schedule: Schedule
    predicted: float
    losses: Array
    accuracies: Array

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


def at_best_rates(
    data: Digits, shapes: Mapping[str, Schedule], rates: Sequence[float], seeds: Sequence[int],
    after_step: Callable[[], None] = lambda: None,
) -> dict[str, Schedule]:  # fmt: skip
    """Every schedule at the peak rate with the least mean loss; it is trained with all of ``rates``."""
    best = {}
    for name, shape in shapes.items():
        candidates = [at_rate(shape, rate) for rate in rates]
        losses = train_together(data, candidates, seeds, after_step)[0].mean(axis=1)
        best[name] = candidates[int(np.argmin(np.where(np.isfinite(losses), losses, np.inf)))]
    return best


def race(
    data: Digits, schedules: Mapping[str, Schedule], predicted: Mapping[str, float], seeds: Sequence[int],
    after_step: Callable[[], None] = lambda: None,
) -> list[Racer]:  # fmt: skip
    """Train with every schedule from every start; the first schedule stays first, the others are sorted by loss."""
    losses, accuracies = train_together(data, list(schedules.values()), seeds, after_step)
    first, *others = (
        Racer(name, schedule, predicted[name], losses[i], accuracies[i])
        for i, (name, schedule) in enumerate(schedules.items())
    )
    return [first, *sorted(others, key=lambda racer: racer.loss)]


def mean_and_error(values: Array) -> tuple[float, float]:
    """Mean and standard error; the error of a single value is 0."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return float(values.mean()), spread / len(values) ** 0.5


def race_table(racers: Sequence[Racer]) -> str:
    """The race as text: predicted losses next to measured ones, mean ± standard error."""
    width = max(len(racer.name) for racer in racers)
    lines = [f"{'schedule':<{width}} {'peak lr':>8} {'predicted':>10} {'training loss':>18} {'test accuracy':>17}"]
    for racer in racers:
        predicted = f"{racer.predicted:.4f}" if np.isfinite(racer.predicted) else "diverges"
        (loss, loss_error), (accuracy, error) = mean_and_error(racer.losses), mean_and_error(100 * racer.accuracies)
        measured, correct = f"{loss:.4f} ± {loss_error:.4f}", f"{accuracy:.1f} ± {error:.1f} %"
        lines.append(f"{racer.name:<{width}} {racer.peak:>8.3g} {predicted:>10} {measured:>18} {correct:>17}")
    return "\n".join(lines)


def outcome_sentence(racers: Sequence[Racer]) -> str:
    """Whether the recommendation, the first of ``racers``, was the best, within noise, or beaten."""
    own, *others = racers
    differences = [mean_and_error(own.losses - other.losses) for other in others]  # from the same starts
    lower = sum(difference < -CLEAR * error for difference, error in differences)
    higher = sum(difference > CLEAR * error for difference, error in differences)
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
    """How well the model predicted the order and the size of the losses; an infinite loss ranks last."""
    predicted, measured = (np.array(values) for values in zip(*((r.predicted, r.loss) for r in racers), strict=True))
    rank = float(spearmanr(predicted, measured).statistic)
    finite = np.isfinite(predicted)
    factor = float(np.exp(np.log(predicted[finite] / measured[finite]).mean()))
    size = f"{factor:.1f} times the measured ones" if factor >= 1 else f"1/{1 / factor:.1f} of the measured ones"
    return (
        f"The model predicted the order of these losses with a rank correlation of {rank:.2f} (1 is perfect). "
        f"The predicted losses are {size} on average."
    )
