"""The page of the study: its tables, its sentences and its figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from eigencurve._arrays import Array
from eigencurve.experiments.page import markdown_table
from eigencurve.experiments.prediction.findings import (
    Finding,
    best_place,
    chosen_place,
    excess_ratios,
    progress_ratios,
    rank_correlation,
    typical_factor,
)
from eigencurve.experiments.prediction.scales import KINDS
from eigencurve.experiments.prediction.study import DENSE, END, START, NoiseEffect, ProblemFindings
from eigencurve.figures.prediction import PredictedCurve, limits_figure, prediction_figure

INTRODUCTION = (
    "How well does a measured `NoisyQuadratic` predict real training? Each problem below is trained by SGD without momentum,"
    " with examples drawn independently at every step, under five schedules (constant, cosine, linear, WSD and Eigencurve)"
    " at four initial rates each: 20 pairs. The mean of the runs is compared with two predictions, which use the public"
    " tools only:\n\n"
    "- *measured at the end*: spectrum (`estimate_spectrum`) and noise (`estimate_noise`) at the minimum, or at the end of"
    " an earlier run if the minimum is unknown, and `estimate_start` for the displacement from there to the start of the"
    " run.\n"
    "- *measured at the start*: spectrum and noise at the start of the run, and `start_from_gradient`. This needs no"
    " earlier run, so it is what you could use to plan a run.\n\n"
    "For problems with at most 1,000 parameters, *dense matrices* is the first prediction with the exact H, C and Δ. It"
    " separates the error of the measurement from that of the model. All losses include weight decay and are given in"
    " excess of the loss at the end: f(w) - f(w_end)."
)
TERMS = (
    "*Ratio* is predicted over measured, the median over the 20 pairs: of the final excess loss for predictions measured at"
    " a minimum, and of the decrease of the loss for the others, which do not know the minimum. *Factor* is the typical"
    " factor by which the prediction is off in either direction, exp(mean abs ln ratio). Pairs that diverge or do not decrease"
    " the loss have no ratio. *Rank* is Spearman's correlation of the final losses of the 20 pairs; a pair that diverges ranks"
    " last. *Chosen* is the final excess loss, in the runs, of the pair that a prediction selects; *best* is that of the best"
    " pair."
)


def ratios(found: ProblemFindings, finding: Finding, model: str) -> Array:
    """Predicted over measured final excess loss of each pair, or decrease of the loss if the minimum is unknown."""
    return (excess_ratios if _knows_minimum(found, model) else progress_ratios)(finding, model)


def _knows_minimum(found: ProblemFindings, model: str) -> bool:
    return found.problem.is_minimum and model != START


def text(found: Sequence[ProblemFindings], effects: Sequence[NoiseEffect], skipped: Sequence[str]) -> str:
    """The body of the page."""
    parts = [INTRODUCTION, *skipped, problems_table(found), "## Summary", TERMS, summary_table(found)]
    parts += ["![limits](prediction_limits.png)", *limit_sentences(found)]
    for one in found:
        parts += [
            f"## {one.problem.title[0].upper()}{one.problem.title[1:]}",
            f"![{one.problem.name}]({file_name(one)})",
        ]
        parts += [verdict(one, one.findings[0]), shown_table(one), tuned_table(one)]
        if one.problem.ridge is not None and effects:
            parts += [effect_text(effects), effect_table(effects)]
    return "\n\n".join(parts)


def file_name(found: ProblemFindings) -> str:
    """Name of the file of a problem's figure."""
    return f"prediction_{found.problem.name}.png"


def figures(found: Sequence[ProblemFindings], effects: Sequence[NoiseEffect]) -> dict[str, Figure]:
    """All figures, by file name."""
    every = {file_name(one): problem_figure(one, effects if one.problem.ridge else ()) for one in found}
    return {"prediction_limits.png": _limits(found), **every}


def problem_figure(found: ProblemFindings, effects: Sequence[NoiseEffect] = ()) -> Figure:
    """The curves of the five schedules at the shown rate, and the final losses of all pairs."""
    finding, problem = found.findings[0], found.problem
    exact = {(e.pair.kind, e.pair.rate): e.curve for e in effects if e.batch_size == problem.batch_size}
    base = 0.0 if problem.is_minimum else problem.end_loss
    models = (END,) if problem.is_minimum else (END, START)
    panels = {
        f"{model}, rate {found.plan.shown_rate:g}": [
            PredictedCurve(
                finding.pairs[i].kind, finding.marks, base + finding.measured[i], finding.error[i],
                base + finding.predicted[model][i], exact.get((finding.pairs[i].kind, finding.pairs[i].rate)),
            )
            for i in finding.at_rate(found.plan.shown_rate)
        ]
        for model in models
    }  # fmt: skip
    drawn = [model for model in finding.predicted if not problem.is_minimum or _knows_minimum(found, model)]
    measured = _final(found, finding.measured)
    finals = {model: (_final(found, finding.predicted[model]), measured) for model in drawn}
    what = ("excess loss", "final excess loss") if problem.is_minimum else ("loss", "decrease of the loss")
    return prediction_figure(panels, finals, *what, log=problem.is_minimum)


def problems_table(found: Sequence[ProblemFindings]) -> str:
    """What was run, in Markdown."""
    columns = [
        "problem", "parameters", "examples", "batch size", "weight decay", "steps", "runs per pair",
        "largest eigenvalue at the start", "at the end",
    ]  # fmt: skip
    rows = [
        [
            one.problem.title, f"{one.problem.dim:,}", f"{len(one.problem.labels):,}", f"{one.problem.batch_size}",
            f"{one.problem.weight_decay:g}", f"{one.plan.total_steps:,}", f"{one.plan.num_seeds}",
            f"{one.findings[0].top:.3g}", f"{one.end.prepared.L:.3g}",
        ]
        for one in found
    ]  # fmt: skip
    return markdown_table(columns, rows)


def summary_table(found: Sequence[ProblemFindings]) -> str:
    """How well each prediction does from each start, in Markdown."""
    numbers = ("ratio", "factor", "rank", "chosen")
    columns = ["problem", "start", "its excess loss", "best"]
    columns += [f"{number}, {model}" for model in ("at the end", "at the start") for number in numbers]
    rows = []
    for one in found:
        for finding in one.findings:
            cells = [
                one.problem.name,
                finding.start,
                f"{finding.excess:.3g}",
                _number(_last(finding, best_place(finding))),
            ]
            for model in (END, START):
                values = ratios(one, finding, model)
                cells += [
                    _number(_median(values)), _number(typical_factor(values)), f"{rank_correlation(finding, model):.2f}",
                    _number(_last(finding, chosen_place(finding, model))),
                ]  # fmt: skip
            rows.append(cells)
    return markdown_table(columns, rows)


def verdict(found: ProblemFindings, finding: Finding) -> str:
    """What the predictions got right and wrong from one start."""
    sentences = []
    for model in finding.predicted:
        what = "final excess loss" if _knows_minimum(found, model) else "decrease of the loss"
        values = ratios(found, finding, model)
        known = values[np.isfinite(values)]
        span = f"{known.min():.2g} to {known.max():.2g} times" if len(known) else "no multiple of"
        five = rank_correlation(finding, model, finding.at_rate(found.plan.shown_rate))
        sentences.append(
            f"*{model.capitalize()}*: the predicted {what} is {span} that of the runs; the rank correlation is"
            f" {five:.2f} over the five schedules at rate {found.plan.shown_rate:g} and"
            f" {rank_correlation(finding, model):.2f} over all pairs."
        )
    if DENSE in finding.predicted:
        off = typical_factor(finding.predicted[END][:, -1] / finding.predicted[DENSE][:, -1])
        sentences.append(f"Measuring instead of computing H, C and Δ changes the predictions by a factor of {off:.2f}.")
    return " ".join(sentences)


def shown_table(found: ProblemFindings) -> str:
    """The five schedules at the same rate, in Markdown: the runs, and the ratio of every prediction to them."""
    finding, rate = found.findings[0], found.plan.shown_rate
    columns = [
        f"schedule at rate {rate:g}",
        "final excess loss, runs",
        *(f"ratio, {model}" for model in finding.predicted),
    ]
    every = {model: ratios(found, finding, model) for model in finding.predicted}
    rows = [
        [
            finding.pairs[i].kind, f"{finding.measured[i, -1]:.4g} ± {finding.error[i, -1]:.1g}",
            *(_number(values[i]) for values in every.values()),
        ]
        for i in finding.at_rate(rate)
    ]  # fmt: skip
    return markdown_table(columns, rows)


def tuned_table(found: ProblemFindings) -> str:
    """Each schedule at the rate that a prediction selects, and at the best rate of the runs, in Markdown."""
    finding = found.findings[0]
    columns = ["schedule", "best rate", "final excess loss, runs"]
    for model in (END, START):
        columns += [f"rate chosen, {model}", "final excess loss, runs"]
    rows = []
    for kind in KINDS:
        places = [i for i, pair in enumerate(finding.pairs) if pair.kind == kind]
        best = min(places, key=lambda i: finding.measured[i, -1])
        chosen = [min(places, key=lambda i, m=model: finding.predicted[m][i, -1]) for model in (END, START)]
        cells = [
            text
            for i in (best, *chosen)
            for text in (f"{finding.pairs[i].rate:g}", _number(float(finding.measured[i, -1])))
        ]
        rows.append([kind, *cells])
    return markdown_table(columns, rows)


def effect_text(effects: Sequence[NoiseEffect]) -> str:
    """What noise that depends on the weights does in ridge regression."""
    single = [
        effect.exact / effect.quadratic for effect in effects if effect.batch_size == 1 and np.isfinite(effect.exact)
    ]
    return (
        "The loss is exactly quadratic, so what is left of the difference is the noise. The gradient of a row of least squares"
        " varies more when its residual is larger, so the noise grows with the distance from the minimum; the model takes"
        " it as constant, measured at the minimum. The exact expectation, from a recursion of the mean and covariance of the"
        f" weights, is {min(single):.2f} to {max(single):.2g} times that of the noisy quadratic at batch size 1. The effect"
        " falls with the rate and with the batch size:"
    )


def effect_table(effects: Sequence[NoiseEffect]) -> str:
    """The exact expectation and that of the noisy quadratic, in Markdown."""
    columns = [
        "schedule",
        "rate",
        "batch size",
        "noisy quadratic, dense matrices",
        "exact expectation",
        "exact / quadratic",
    ]
    rows = [
        [
            effect.pair.kind, f"{effect.pair.rate:g}", f"{effect.batch_size}", _number(effect.quadratic),
            _number(effect.exact), _number(effect.exact / effect.quadratic),
        ]
        for effect in effects
    ]  # fmt: skip
    return markdown_table(columns, rows)


def limit_sentences(found: Sequence[ProblemFindings]) -> list[str]:
    """Where the prediction works and where it stops working."""
    sentences = [
        "Left: the prediction measured at the minimum, for starts at 10, 25, 50 and 100 % of the way from the minimum to zero"
        " weights. Right: the progress that is predicted for the network from several points of an earlier run; the bars"
        " span all pairs that make progress."
    ]
    for one in found:
        if len(one.findings) > 1:
            sentences.append(_limit_sentence(one))
    return sentences


def _limit_sentence(found: ProblemFindings) -> str:
    far, near = found.findings[0], found.findings[-1]
    title = found.problem.title[0].upper() + found.problem.title[1:]
    if found.problem.is_minimum:
        return (
            f"**{title}.** {near.start.capitalize()} from the minimum, the prediction is off by a factor of"
            f" {typical_factor(ratios(found, near, END)):.2f} and ranks the pairs with a correlation of"
            f" {rank_correlation(near, END):.2f}. From zero weights these are"
            f" {typical_factor(ratios(found, far, END)):.2f} and {rank_correlation(far, END):.2f}: the largest eigenvalue"
            f" is {far.top:.3g} at the start and {found.end.prepared.L:.3g} at the minimum, and the quadratic assigns to the"
            f" start an excess loss of {far.predicted[END][0, 0]:.3g} instead of {far.excess:.3g}."
        )
    points = [
        f"{finding.start}: {_number(_median(ratios(found, finding, START)))} times the measured progress, rank"
        f" {rank_correlation(finding, START):.2f}"
        for finding in found.findings
    ]
    return (
        f"**{title}.** The earlier run ends at a loss of {found.problem.end_loss:.3g}. Predictions measured at the start of"
        f" the runs (median over the pairs) - {'; '.join(points)}. The largest eigenvalue is {far.top:.3g} at the start and"
        f" {found.end.prepared.L:.3g} at the end of the earlier run."
    )


def _limits(found: Sequence[ProblemFindings]) -> Figure:
    factors = {
        one.problem.title: (
            np.array([finding.excess for finding in one.findings]),
            np.array([typical_factor(ratios(one, finding, END)) for finding in one.findings]),
        )
        for one in found
        if one.problem.is_minimum
    }
    progress = {}
    for one in found:
        if not one.problem.is_minimum:
            for model in (END, START):
                progress[model] = _progress(one, model)
    return limits_figure(factors, progress)


def _progress(found: ProblemFindings, model: str) -> tuple[Array, Array, Array, Array]:
    """Loss of each start, and the least, median and greatest ratio of the progress; without starts that have none."""
    rows = []
    for finding in found.findings:
        values = progress_ratios(finding, model)
        known = values[np.isfinite(values)]
        if len(known):
            rows.append((found.problem.end_loss + finding.excess, known.min(), np.median(known), known.max()))
    loss, low, median, high = np.array(rows).reshape(-1, 4).T
    return loss, low, median, high


def _final(found: ProblemFindings, curves: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(curves[:, -1] if found.problem.is_minimum else curves[:, 0] - curves[:, -1])


def _last(finding: Finding, place: int) -> float:
    """Final excess loss of a pair in the runs."""
    return float(finding.measured[place, -1])


def _median(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _number(value: float) -> str:
    """Three significant digits; a dash for a ratio that does not exist, words for a loss that does not."""
    if np.isnan(value):
        return "–"
    return f"{value:.3g}" if np.isfinite(value) else "diverges"
