"""Forecasts of published training runs from the logs of others, and the page about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper.data.curves import published_runs
from paper.engine.progress import Progress
from paper.engine.request import Request
from paper.forecasts.best import Improvement, Rival, improve
from paper.forecasts.drawings import curves_figure, file_name, shapes_figure
from paper.forecasts.failures import CURVE_AIMS, FINAL_AIMS, coverage, failures, outside, percent, runs_of
from paper.forecasts.splits import (
    Outcome,
    Score,
    Scored,
    fewer_runs,
    fit_together,
    fixed_exponent,
    forecast_split,
    score,
    splits_of,
)
from paper.page import ResultsPage, markdown_table

# Mean absolute errors that the multi-power law's publication states, arXiv:2503.12811.
MULTI_POWER_LAW = {"GPT 25M": 0.0038, "GPT 100M": 0.0043}
# The fixed exponents γ that are compared with the average over γ.
EXPONENTS = (0.0, 0.2, 0.4, 0.6)

DATA = (
    "Three published families of language models, trained with AdamW. GPT 25M and 100M (arXiv:2503.12811): peak rate"
    " 0.0003, validation loss every 128 steps; their publication marks three runs of at most 24,000 steps to fit and"
    " six to predict. Llama 124M (arXiv:2501.18965): 50,000 steps at two peak rates, validation loss every 200 steps;"
    " fitted are a constant rate (`stable`), linear decay over the last 20 % (`lin0.2`) and cosine decay to 0 (`cos0`)."
    " Each schedule is the exact one from step 0 on, including the warmup. Errors are forecast minus logged loss, at"
    " the logged steps; the last loss is the last one logged. Each log is one run with one seed, so its own noise is"
    " part of every error."
)
TUNED = (
    "A forecast has no setting to tune, but the model has constants: the prior, the weights of the points and the"
    " widths beyond the logged runs (`forecast/model.py`, `fit.py`, `fitted.py`). They were chosen on the GPT runs."
    " With those constants the last losses of Llama had a mean absolute error of 0.0060 at the peak 0.001 and of"
    " 0.0050 at 0.0005. Then the prior of the noise's slope, the number of independent errors per run, and the widths"
    " for other peaks, longer runs and faster decays were chosen again, looking at the GPT runs and the Llama runs at"
    " 0.001. The Llama runs at 0.0005 were looked at, but nothing was chosen by them. So the errors of the runs that"
    " shaped the constants are optimistic, and the others are closer to what you can expect. All are language models"
    " under AdamW; no other kind of model was tried."
)
SCHEDULES = (
    "The search uses the horizon, the warmup and the peak rate of the fitted runs. `certificate` is a loss that no"
    " schedule with these rates has in the likeliest fitted model; the gap to it limits how much a longer search could"
    " still find. The gain is the forecast loss of a schedule minus that of the best one, with its 80 % interval, which"
    " is narrower than those of the losses because most errors are common to both. No run of these logs used the best"
    " schedule, so its gain is a forecast and nobody measured it. No GPT run of these logs decays below 10 % of the"
    " peak, so the end of the best schedule is extrapolated there."
)

CELLS = (
    "Each cell: mean absolute error of the last losses, in brackets that of the curves, and how many last losses are"
    " inside the 80 % interval."
)


@dataclass(frozen=True, eq=False)
class Study:
    """What the page reports."""

    outcomes: tuple[Outcome, ...]  # every split with its forecasts
    fewer: dict[str, dict[tuple[str, ...], Score]]  # scores of fits to fewer runs, by roles, by name of the split
    exponents: dict[str, dict[float, Score]]  # scores of fits with one γ, by γ, by name of the split
    improvements: tuple[Improvement, ...]  # the best schedule of every model
    # Scores of one model fitted to the runs at both peak rates of Llama, by name of the split.
    together: dict[str, Score]


def measure(data: Path | None, progress: bool = False) -> Study:
    """Fit and forecast every split (about a minute)."""
    splits = splits_of(published_runs(data))
    outcomes, fewer, exponents, improvements = [], {}, {}, []
    with Progress("splits", len(splits), progress) as bar:
        for done, split in enumerate(splits):
            bar.show(done)
            outcomes.append(forecast_split(split))
            if not split.transfer:
                fewer[split.name] = fewer_runs(split)
                exponents[split.name] = {gamma: fixed_exponent(split, gamma) for gamma in EXPONENTS}
                improvements.append(improve(split, outcomes[-1].forecast))
        bar.show(len(splits))
    llama = [split for split in splits if split.family == "Llama" and not split.transfer]
    together = fit_together(llama) if llama else {}
    return Study(tuple(outcomes), fewer, exponents, tuple(improvements), together)


def make(request: Request) -> ResultsPage:
    """Forecasts of published training runs, compared with what was logged."""
    study = measure(request.data, request.progress)
    figures = {file_name(outcome): curves_figure(outcome) for outcome in study.outcomes}
    figures["forecast_best.png"] = shapes_figure(study.improvements)
    return ResultsPage("forecast", "Forecasts of published training runs", text(study), figures, values=values(study))


def text(study: Study) -> str:
    """The whole page below its title, in Markdown."""
    same = [outcome for outcome in study.outcomes if not outcome.split.transfer]
    other = [outcome for outcome in study.outcomes if outcome.split.transfer]
    return "\n\n".join([
        DATA,
        "## Summary", _summary(study.outcomes),
        "`points in` is the fraction of a curve's points inside the 80 % interval, averaged over the curves; `ends in`"
        " counts the last losses inside it.",
        coverage(same, other),
        "## Where it fails", failures(same, other),
        "## What was tuned", TUNED, _halves(study.outcomes),
        "## New schedules at a logged peak rate", *(_section(outcome) for outcome in same),
        "## Other peak rates",
        "Fitted at one peak rate, forecast at the other. The forecast warns about every such run.",
        *(_section(outcome) for outcome in other),
        "## Runs at two peak rates",
        "One model fitted to the three runs at either peak rate of Llama, compared with a fit to the three runs at the"
        f" rate of the held-out ones. `fit_runs` does the latter, even if it is given all six runs. {CELLS}",
        _together(study),
        "## Longer runs",
        "Runs of these logs that are longer than every fitted one. They are also part of the tables above.",
        _longer(same),
        "## Fewer runs",
        "The same held-out runs, forecast from some of the fitted ones. `decay` is the drop to 30 % of the rate for"
        f" GPT, and linear decay over the last 20 % for Llama. {CELLS}",
        _fewer(study), _fewer_advice(study),
        "## A fixed exponent γ",
        "Curvature rises when the rate falls, λ ∝ η^-γ. The forecast averages over γ; here one γ is fixed instead. γ ="
        " 0 is the quadratic with fixed curvature. Cells as above.",
        _exponents(study),
        "## The best schedule", SCHEDULES, _improvements(study.improvements), _verdict(study.improvements),
        "![best schedules](forecast_best.png)",
    ])  # fmt: skip


def values(study: Study) -> dict[str, Any]:
    """The numbers of the page as plain values."""
    return {
        "splits": [_split_values(outcome) for outcome in study.outcomes],
        "best": [_best_values(one) for one in study.improvements],
    }


def _split_values(outcome: Outcome) -> dict[str, Any]:
    runs = [
        {
            "name": one.name, "true": one.true, "predicted": one.predicted, "interval": list(one.interval),
            "curve_error": one.curve_error, "points_inside": one.points_inside, "beyond": list(one.prediction.beyond),
        }
        for one in outcome.runs
    ]  # fmt: skip
    return {"name": outcome.split.name, **_plain(score(outcome.runs)), "runs": runs}


def _plain(found: Score) -> dict[str, Any]:
    return {**vars(found), "rank": None if math.isnan(found.rank) else found.rank}


def _best_values(one: Improvement) -> dict[str, Any]:
    best = {"loss": one.best.loss, "interval": [one.best.low, one.best.high], "lower_bound": one.best.lower_bound}
    rivals = [vars(rival) for rival in _rivals(one)]
    return {"model": one.split.model, **best, "schedule": one.best.schedule.to_dict(), "others": rivals}


def _summary(outcomes: Iterable[Outcome]) -> str:
    head = ["split", "held-out runs", "curves", "aim", "multi-power law", "last losses", "aim", "rank correlation",
            "points in", "ends in"]  # fmt: skip
    rows = []
    for outcome in outcomes:
        name, found = outcome.split.name, score(outcome.runs)
        rows.append([
            name, f"{found.count}", f"{found.curve_error:.4f}", _given(CURVE_AIMS, name), _given(MULTI_POWER_LAW, name),
            f"{found.final_error:.4f}", _given(FINAL_AIMS, name), _rank(found), percent(found.points_inside),
            f"{found.ends_inside} of {found.count}",
        ])  # fmt: skip
    note = (
        "Mean absolute errors of the loss. `curves`: over all logged points of a run, averaged over the runs; the"
        " multi-power law's value is next to it, as published in arXiv:2503.12811 and not recomputed here."
    )
    return f"{note}\n\n{markdown_table(head, rows)}"


def _halves(outcomes: Sequence[Outcome]) -> str:
    head = ["runs", "held-out runs", "curves", "last losses", "points in", "ends in"]
    rows = []
    for transfer, place in ((False, "at a logged peak rate"), (True, "at another peak rate")):
        for shaped, kind in ((True, "shaped the constants"), (False, "did not shape the constants")):
            chosen = [o for o in outcomes if o.split.transfer == transfer and o.split.shaped == shaped]
            found = score(runs_of(chosen))
            rows.append([
                f"{kind}, {place}", f"{found.count}", f"{found.curve_error:.4f}", f"{found.final_error:.4f}",
                percent(found.points_inside), f"{found.ends_inside} of {found.count}",
            ])  # fmt: skip
    return markdown_table(head, rows)


def _section(outcome: Outcome) -> str:
    name = outcome.split.name
    fitted = ", ".join(run.name for run in outcome.split.fitted.values())
    gamma = sum(member.weight * member.gamma for member in outcome.forecast.fitted.members)
    facts = f"Fitted: {fitted}. Mean γ {gamma:.2f}; error of the model {outcome.forecast.fitted.misfit:.4f}."
    return f"### {name}\n\n{facts}\n\n{_table(outcome.runs)}\n\n![{name}]({file_name(outcome)})"


def _table(runs: Sequence[Scored]) -> str:
    head = ["run", "last step", "logged", "forecast", "80 % interval", "error", "inside", "curve", "points in",
            "beyond"]  # fmt: skip
    rows = [
        [
            one.name, f"{one.run.steps[-1]:,}", f"{one.true:.4f}", f"{one.predicted:.4f}", _interval(*one.interval),
            f"{one.final_error:+.4f}", "yes" if one.end_inside else "no", f"{one.curve_error:.4f}",
            percent(one.points_inside), "; ".join(one.prediction.beyond),
        ]
        for one in runs
    ]  # fmt: skip
    return markdown_table(head, rows)


def _longer(outcomes: Sequence[Outcome]) -> str:
    head = ["model", "run", "times longer", "logged", "forecast", "80 % interval", "error", "curve", "points in"]
    rows = [
        [
            outcome.split.model, one.name, f"{one.run.total_steps / outcome.split.longest:.1f}", f"{one.true:.4f}",
            f"{one.predicted:.4f}", _interval(*one.interval), f"{one.final_error:+.4f}{outside(one)}",
            f"{one.curve_error:.4f}", percent(one.points_inside),
        ]
        for outcome in outcomes
        for one in outcome.longer
    ]  # fmt: skip
    return markdown_table(head, rows)


def _together(study: Study) -> str:
    alone = {outcome.split.name: score(outcome.runs) for outcome in study.outcomes}
    rows = [[name, _cell(alone[name]), _cell(found)] for name, found in study.together.items()]
    return markdown_table(["held-out runs", "fitted to the runs at their rate", "fitted to all six runs"], rows)


def _fewer(study: Study) -> str:
    names = list(study.fewer)
    rows = [
        [" + ".join(roles), *(_cell(study.fewer[name][roles]) for name in names)] for roles in study.fewer[names[0]]
    ]
    return markdown_table(["fitted", *names], rows)


def _fewer_advice(study: Study) -> str:
    def mean(*roles: str) -> float:
        return sum(found[roles].final_error for found in study.fewer.values()) / len(study.fewer)

    ends = [found["constant",] for found in study.fewer.values()]
    inside, count = sum(one.ends_inside for one in ends), sum(one.count for one in ends)
    return (
        f"On average over the models, the last losses are off by {mean('constant', 'cosine', 'decay'):.4f} with all"
        f" three runs, {mean('constant', 'cosine'):.4f} with a constant rate and cosine decay,"
        f" {mean('constant', 'decay'):.4f} with a constant rate and one decay, {mean('cosine'):.4f} with cosine decay"
        f" alone, and {mean('constant'):.4f} with a constant rate alone. A constant rate contains no information about"
        f" decay: the intervals contain {inside} of {count} last losses then, and `warnings` of the forecast says so."
        " Log at least one run that decays."
    )


def _exponents(study: Study) -> str:
    names = list(study.exponents)
    rows = [
        [f"γ = {gamma:g}", *(_cell(study.exponents[name][gamma]) for name in names)]
        for gamma in study.exponents[names[0]]
    ]
    averaged = {outcome.split.name: score(outcome.runs) for outcome in study.outcomes}
    return markdown_table(["fit", *names], [*rows, ["averaged", *(_cell(averaged[name]) for name in names)]])


def _improvements(improvements: Iterable[Improvement]) -> str:
    head = ["model", "schedule", "forecast", "80 % interval", "logged", "gain of the best", "certificate", "gap"]
    rows = []
    for one in improvements:
        best = one.best
        rows.append([
            one.split.model, "**best**", f"{best.loss:.4f}", _interval(best.low, best.high), "", "",
            f"{best.lower_bound:.4f}", f"{best.gap:.4f}",
        ])  # fmt: skip
        rows += [_rival_row(rival) for rival in _rivals(one)]
    return markdown_table(head, rows)


def _rivals(one: Improvement) -> list[Rival]:
    return [one.cosine, one.logged, *one.others]


def _rival_row(rival: Rival) -> list[str]:
    measured = "" if rival.measured is None else f"{rival.measured:.4f}"
    return ["", rival.name, f"{rival.loss:.4f}", "", measured, _gain(rival), "", ""]


def _verdict(improvements: Iterable[Improvement]) -> str:
    sentences = []
    for one in improvements:
        logged, wsd = one.logged, one.others[-1]
        beyond = f" It goes beyond the fitted runs: {'; '.join(one.best.beyond)}." if one.best.beyond else ""
        sentences.append(
            f"- {one.split.model}: the gain over cosine decay is {_gain(one.cosine)}, over the best logged run,"
            f" {logged.name}, {_gain(logged)}{_doubtful(logged)}, and over WSD {_gain(wsd)}{_doubtful(wsd)}. It begins"
            f" to decay after {percent(one.hold)} of the steps.{beyond}"
        )
    return "\n".join(sentences)


def _doubtful(rival: Rival) -> str:
    return ", which may be nothing" if rival.gain_low <= 0 else ""


def _gain(rival: Rival) -> str:
    return f"{rival.gain:.4f} ({rival.gain_low:+.4f} to {rival.gain_high:+.4f})"


def _cell(found: Score) -> str:
    return f"{found.final_error:.4f} ({found.curve_error:.4f}), {found.ends_inside} of {found.count}"


def _interval(low: float, high: float) -> str:
    return f"{low:.4f} to {high:.4f}"


def _rank(found: Score) -> str:
    return "" if math.isnan(found.rank) else f"{found.rank:.2f}"


def _given(numbers: dict[str, float], name: str) -> str:
    return f"{numbers[name]:.4f}" if name in numbers else ""
