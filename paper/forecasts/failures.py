"""Sentences about where the forecasts fail, from the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paper.forecasts.splits import Outcome, Scored, score

# Mean absolute errors that were aimed at, of the curves or of the last losses.
CURVE_AIMS = {"GPT 25M": 0.0030, "GPT 100M": 0.0026}
FINAL_AIMS = {"Llama 124M, peak 0.001": 0.005}
# The 80 % intervals should contain between these fractions of the points, and of the last losses.
COVERAGE_AIM = (0.7, 0.9)
# Number of listed errors, and the rank correlation below which the order is called wrong.
NUM_WORST = 4
GOOD_RANK = 0.8


def coverage(same: Sequence[Outcome], other: Sequence[Outcome]) -> str:
    """How much the intervals contain, at a logged peak rate and at another one."""
    scores, elsewhere = score(runs_of(same)), score(runs_of(other))
    share = scores.ends_inside / scores.count
    reached = all(COVERAGE_AIM[0] <= part <= COVERAGE_AIM[1] for part in (scores.points_inside, share))
    aim = "both within" if reached else "not both within"
    return (
        f"At a logged peak rate, the 80 % intervals contain {percent(scores.points_inside)} of the points and"
        f" {percent(share)} of the last losses ({scores.ends_inside} of {scores.count}), {aim} the aim of"
        f" {percent(COVERAGE_AIM[0])} to {percent(COVERAGE_AIM[1])}. At another peak rate they contain"
        f" {percent(elsewhere.points_inside)} of the points and {elsewhere.ends_inside} of {elsewhere.count} last"
        " losses."
    )


def failures(same: Sequence[Outcome], other: Sequence[Outcome]) -> str:
    """Every failure as an item of a list."""
    sentences = [*_missed(same), *_uneven(same), _worst(same), *_disorder(same), *_other_rates(other)]
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _missed(outcomes: Sequence[Outcome]) -> list[str]:
    """The aims that were missed."""
    sentences = []
    for outcome in outcomes:
        name, scores = outcome.split.name, score(outcome.runs)
        for aims, error, part in ((CURVE_AIMS, scores.curve_error, "curves"), (FINAL_AIMS, scores.final_error, "ends")):
            if name in aims and error > aims[name]:
                sentences.append(f"{name} misses its aim: {part} {error:.4f} instead of {aims[name]:.4f}.")
    return sentences


def _uneven(outcomes: Sequence[Outcome]) -> list[str]:
    """How far the intervals are from 80 % for each family of models, and for single curves."""
    sentences = []
    for family in dict.fromkeys(outcome.split.family for outcome in outcomes):
        scores = score(runs_of(outcome for outcome in outcomes if outcome.split.family == family))
        share = scores.ends_inside / scores.count
        if not COVERAGE_AIM[0] <= share <= COVERAGE_AIM[1]:
            width = "narrow" if share < COVERAGE_AIM[0] else "wide"
            counts = f"{scores.ends_inside} of {scores.count} last losses"
            sentences.append(f"{family}: the 80 % intervals contain {counts}: too {width}, as far as so few runs tell.")
    runs = runs_of(outcomes)
    lowest = min(one.points_inside for one in runs)
    few = sum(one.points_inside < COVERAGE_AIM[0] for one in runs)
    sentences.append(
        f"Single curves differ: in {few} of {len(runs)} the intervals contain less than {percent(COVERAGE_AIM[0])} of"
        f" the points, at worst {percent(lowest)}. Errors persist along a curve."
    )
    return sentences


def _worst(outcomes: Sequence[Outcome]) -> str:
    pairs = [(outcome.split.name, one) for outcome in outcomes for one in outcome.runs]
    worst = sorted(pairs, key=lambda pair: -abs(pair[1].final_error))[:NUM_WORST]
    listed = "; ".join(f"{one.name} of {name} {one.final_error:+.4f}{outside(one)}" for name, one in worst)
    return f"The largest errors of a last loss at a logged peak rate: {listed}."


def outside(one: Scored) -> str:
    """A note if the last loss is outside its interval."""
    return "" if one.end_inside else " (outside its interval)"


def _disorder(outcomes: Sequence[Outcome]) -> list[str]:
    """Splits whose order of the last losses is forecast badly."""
    sentences = []
    for outcome in outcomes:
        scores = score(outcome.runs)
        if scores.rank < GOOD_RANK:
            first = min(outcome.runs, key=lambda one: one.predicted)
            truth = sorted(one.true for one in outcome.runs)
            place = truth.index(first.true) + 1
            close = truth[len(truth) // 2] - truth[0]
            sentences.append(
                f"{outcome.split.name}: the ranks correlate by only {scores.rank:.2f}. The run with the best forecast,"
                f" {first.name}, is in truth number {place} of {scores.count}; the best half of these runs is within"
                f" {close:.4f}, close to the errors of the forecast. Do not choose between schedules this close by it."
            )
    return sentences


def _other_rates(outcomes: Sequence[Outcome]) -> list[str]:
    sentences = []
    for outcome in outcomes:
        scores = score(outcome.runs)
        worst = max(outcome.runs, key=lambda one: abs(one.final_error))
        wide = max(one.interval[1] - one.interval[0] for one in outcome.runs)
        sentences.append(
            f"{outcome.split.name}: the curves are off by {scores.curve_error:.4f} on average, the last loss of"
            f" {worst.name} by {worst.final_error:+.4f}. The intervals contain {percent(scores.points_inside)} of the"
            f" points, so they are too wide (up to {wide:.2f}). Log a run at the peak rate that you ask about."
        )
    return sentences


def runs_of(outcomes: Iterable[Outcome]) -> list[Scored]:
    """All held-out runs."""
    return [one for outcome in outcomes for one in outcome.runs]


def percent(part: float) -> str:
    """A fraction in percent.

    >>> percent(0.816)
    '82 %'
    """
    return f"{100 * part:.0f} %"
