"""``python -m paper prediction``: predicted and real losses on problems from quadratic to far from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paper.arrays import Array
from paper.engine.request import Request
from paper.page import ResultsPage, markdown_table
from paper.prediction.findings import Finding, best_place, chosen_place, rank_correlation, typical_factor
from paper.prediction.plots import LIMITS, figures, file_name
from paper.prediction.scales import KINDS, SCALES
from paper.prediction.study import (
    DENSE,
    END,
    START,
    NoiseEffect,
    ProblemFindings,
    knows_minimum,
    noise_effects,
    problem_makers,
    ratios,
    study_problem,
)
from paper.training.devices import threads

INTRODUCTION = """How well does a measured `NoisyQuadratic` predict real training? Each problem below is trained by \
SGD without momentum, with examples drawn independently at every step, under five schedules (constant, cosine, \
linear, WSD and Eigencurve) at several initial rates. A schedule at a rate is a *pair*. The mean of the runs is \
compared with two predictions, which use only the public tools:

- *measured at the end*: spectrum (`estimate_spectrum`) and noise (`estimate_noise`) at the minimum, or at the end of \
an earlier run if the minimum is unknown, and `estimate_start` for the displacement from there to the start of the runs.
- *measured at the start*: spectrum and noise at the start of the runs, and `start_from_gradient`. This needs no \
earlier run, so it is what you could plan a run with.

For problems with at most 1,000 parameters, *dense matrices* is the first prediction with the exact H, C and Δ. It \
separates the error of the measurement from the error of the model. All losses include weight decay. The excess loss \
is f(w) - f(w_end)."""
TERMS = """- *ratio*: predicted over measured, the median over the pairs; of the final excess loss for a prediction \
that is measured at a minimum, and of the decrease of the loss for the others, which do not know the minimum. Pairs \
that diverge or do not decrease the loss have no ratio, and there is no median if fewer than half of the pairs have one.
- *factor*: the typical factor by which the prediction is off in either direction, exp(mean abs ln ratio).
- *rank*: Spearman's correlation of the predicted and the measured final losses of all pairs. A pair that diverges \
ranks last.
- *best*: the lowest final excess loss of all pairs in the runs; *chosen*: that of the pair that the prediction \
selects."""
LEGEND = """Left: the final excess loss, as predicted from a measurement at the minimum, for starts at 10, 25, 50 and \
100 % of the way from the minimum to zero weights. Right: the decrease of the loss of the network, for runs that start \
at several points of an earlier run. Bars span all pairs that have a ratio."""


def make(request: Request) -> ResultsPage:
    """Measure, run and compare every problem whose data is present."""
    scale = request.scale_of(SCALES)
    found, skipped = [], []
    with threads(1):  # all models are small, and one thread gives the same numbers on every machine
        for name, maker in problem_makers(request, scale).items():
            try:
                problem = maker()
            except FileNotFoundError as error:
                skipped.append(f"The problem {name!r} is skipped: {error}")
                continue
            found.append(study_problem(problem, scale.plans[name], request))
        effects = noise_effects(found[0], request)
    return ResultsPage(
        "prediction", "Prediction and reality", text(found, effects, skipped), figures(found, effects),
        values={one.problem.name: _values(one) for one in found},
    )  # fmt: skip


def _values(found: ProblemFindings) -> dict[str, Any]:
    return {
        finding.start: {
            "excess": finding.excess,
            "pairs": [[pair.kind, pair.rate] for pair in finding.pairs],
            "measured": finding.measured[:, -1].tolist(),
            "predicted": {model: curves[:, -1].tolist() for model, curves in finding.predicted.items()},
            "factor": {model: typical_factor(ratios(found, finding, model)) for model in finding.predicted},
            "rank": {model: rank_correlation(finding, model) for model in finding.predicted},
        }
        for finding in found.findings
    }


def text(found: Sequence[ProblemFindings], effects: Sequence[NoiseEffect], skipped: Sequence[str]) -> str:
    """The body of the page."""
    parts = [INTRODUCTION, *skipped, problems_table(found)]
    parts += ["## Summary", TERMS, summary_table(found), f"![limits]({LIMITS})", LEGEND]
    several = [one for one in found if len(one.findings) > 1]
    parts += [_distance_text(one) if one.problem.is_minimum else _earlier_text(one) for one in several]
    for one in found:
        parts += [f"## {_title(one)}", f"![{one.problem.name}]({file_name(one)})"]
        parts += [verdict(one), shown_table(one), tuned_table(one)]
        if one.problem.ridge is not None:
            parts += [effect_text(one, effects), effect_table(effects)]
    return "\n\n".join(parts)


def problems_table(found: Sequence[ProblemFindings]) -> str:
    """What was run, in Markdown."""
    columns = [
        "problem", "parameters", "examples", "batch size", "weight decay", "steps", "rates", "runs per pair",
        "largest eigenvalue at the start", "at the end", "σ² at the start", "at the end",
    ]  # fmt: skip
    rows = [
        [
            one.problem.title, f"{one.problem.dim:,}", f"{len(one.problem.labels):,}", f"{one.problem.batch_size}",
            f"{one.problem.weight_decay:g}", f"{one.plan.total_steps:,}", ", ".join(f"{r:g}" for r in one.plan.rates),
            f"{one.plan.num_seeds}", f"{one.findings[0].top:.3g}", f"{one.end.prepared.L:.3g}",
            f"{one.findings[0].noise:.3g}", f"{one.end.noise.sigma2:.3g}",
        ]
        for one in found
    ]  # fmt: skip
    return markdown_table(columns, rows)


def summary_table(found: Sequence[ProblemFindings]) -> str:
    """How well each prediction does from each start, in Markdown."""
    columns = ["problem", "start", "its excess loss", "best"]
    for where in ("at the end", "at the start"):
        columns += [f"{number}, {where}" for number in ("ratio", "factor", "rank", "chosen")]
    rows = [
        [
            one.problem.name, finding.start, _number(finding.excess), _number(_last(finding, best_place(finding))),
            *(cell for model in (END, START) for cell in _summary(one, finding, model)),
        ]
        for one in found
        for finding in one.findings
    ]  # fmt: skip
    return markdown_table(columns, rows)


def verdict(found: ProblemFindings) -> str:
    """What the predictions get right and wrong from the usual start."""
    finding, sentences = found.findings[0], []
    for model in finding.predicted:
        what = "final excess loss" if knows_minimum(found, model) else "decrease of the loss"
        known = _known(ratios(found, finding, model))
        span = f"{known.min():.2g} to {known.max():.2g} times that of the runs" if len(known) else "not comparable"
        five = rank_correlation(finding, model, finding.at_rate(found.plan.shown_rate))
        sentences.append(
            f"*{model.capitalize()}*: the predicted {what} is {span}; the rank correlation is {five:.2f} over the five"
            f" schedules at rate {found.plan.shown_rate:g} and {rank_correlation(finding, model):.2f} over all pairs."
        )
    if DENSE in finding.predicted:
        off = typical_factor(finding.predicted[END][:, -1] / finding.predicted[DENSE][:, -1])
        sentences.append(
            f"Measured instead of exact H, C and Δ change the predictions by a factor of {off:.2f}, so the rest is the"
            " error of the model."
        )
    return " ".join(sentences)


def shown_table(found: ProblemFindings) -> str:
    """The five schedules at the same rate, in Markdown: the runs, and the ratio of every prediction to them."""
    finding, rate = found.findings[0], found.plan.shown_rate
    every = {model: ratios(found, finding, model) for model in finding.predicted}
    columns = [f"schedule at rate {rate:g}", "final excess loss, runs", *(f"ratio, {model}" for model in every)]
    rows = [
        [
            finding.pairs[i].kind, f"{finding.measured[i, -1]:.4g} ± {finding.error[i, -1]:.1g}",
            *(_number(values[i]) for values in every.values()),
        ]
        for i in finding.at_rate(rate)
    ]  # fmt: skip
    return markdown_table(columns, rows)


def tuned_table(found: ProblemFindings) -> str:
    """Each schedule at its best rate in the runs, and at the rate that each prediction selects, in Markdown."""
    finding = found.findings[0]
    columns = ["schedule", "best rate", "final excess loss, runs"]
    for model in (END, START):
        columns += [f"rate chosen, {model}", "final excess loss, runs"]
    rows = []
    for kind in KINDS:
        places = [i for i, pair in enumerate(finding.pairs) if pair.kind == kind]
        finals = [finding.measured, finding.predicted[END], finding.predicted[START]]
        chosen = [places[int(np.argmin(curves[places, -1]))] for curves in finals]
        cells = [(f"{finding.pairs[i].rate:g}", _number(_last(finding, i))) for i in chosen]
        rows.append([kind, *(cell for pair in cells for cell in pair)])
    return markdown_table(columns, rows)


def effect_text(found: ProblemFindings, effects: Sequence[NoiseEffect]) -> str:
    """What noise that depends on the weights does in ridge regression."""
    shares = [effect.exact / effect.quadratic for effect in effects if effect.batch_size == 1]
    known = [share for share in shares if np.isfinite(share)]
    lost = sorted({effect.pair.rate for effect in effects if effect.batch_size == 1 and np.isinf(effect.exact)})
    limit = f"although the quadratic is stable up to 2/L = {2 / found.end.prepared.L:.2g}"
    diverging = f"; at rate {', '.join(f'{rate:g}' for rate in lost)} it diverges, {limit}" if lost else ""
    return (
        "The loss is exactly quadratic, so the model can only be wrong about the noise. In least squares, the gradient"
        " of a row is proportional to its residual, so the noise grows with the distance from the minimum. The model"
        " takes it as constant. The noise level σ² is"
        f" {found.findings[0].noise:.3g} at the start and {found.end.noise.sigma2:.3g} at the minimum, which is why the"
        " prediction measured at the start is too pessimistic. The exact expectation follows from a recursion of the"
        f" mean and the covariance of the weights. With batch size 1 it is {min(known):.3g} to {max(known):.3g} times"
        f" that of the noisy quadratic{diverging}. The effect falls with the rate and with the batch size:"
    )


def effect_table(effects: Sequence[NoiseEffect]) -> str:
    """The exact expectation and that of the noisy quadratic, in Markdown."""
    columns = ["schedule", "rate", "batch size", "noisy quadratic, dense matrices", "exact expectation", "ratio"]
    rows = [
        [
            effect.pair.kind, f"{effect.pair.rate:g}", f"{effect.batch_size}", _number(effect.quadratic),
            _number(effect.exact), _number(effect.exact / effect.quadratic),
        ]
        for effect in effects
    ]  # fmt: skip
    return markdown_table(columns, rows)


def _distance_text(found: ProblemFindings) -> str:
    far, near = found.findings[0], found.findings[-1]
    factors = [typical_factor(ratios(found, finding, END)) for finding in (near, far)]
    ranks = [rank_correlation(finding, END) for finding in (near, far)]
    return (
        f"**{_title(found)}.** From a start {near.start} from the minimum, the prediction is typically off by a factor"
        f" of {factors[0]:.2f} and ranks the pairs with a correlation of {ranks[0]:.2f}. From zero weights it is off by"
        f" a factor of {factors[1]:.2f}, and the correlation is {ranks[1]:.2f}. The curvature changes on the way: the"
        f" largest eigenvalue is {far.top:.3g} at zero weights and {found.end.prepared.L:.3g} at the minimum. The"
        f" quadratic assigns an excess loss of {far.predicted[END][0, 0]:.3g} to zero weights, and the true one is"
        f" {far.excess:.3g}."
    )


def _earlier_text(found: ProblemFindings) -> str:
    far = found.findings[0]
    sentences = []
    for model, where in ((END, "at the end of the earlier run"), (START, "at the start of the runs")):
        points = [
            f"{finding.start} {_number(_median(ratios(found, finding, model)))}"
            f" (rank {rank_correlation(finding, model):.2f})"
            for finding in found.findings
        ]
        chosen = _last(far, chosen_place(far, model))
        sentences.append(
            f"Measured {where}, the predicted decrease over the measured one is: {', '.join(points)}. From the start,"
            f" the pair that this prediction selects ends at an excess loss of {_number(chosen)}."
        )
    return (
        f"**{_title(found)}.** The earlier run goes from a loss of {found.problem.end_loss + far.excess:.3g} to"
        f" {found.problem.end_loss:.3g}, and the largest eigenvalue from {far.top:.3g} to {found.end.prepared.L:.3g}."
        f" {' '.join(sentences)} The best pair ends at {_number(_last(far, best_place(far)))}."
    )


def _summary(found: ProblemFindings, finding: Finding, model: str) -> tuple[str, str, str, str]:
    values = ratios(found, finding, model)
    if 2 * len(_known(values)) < len(values):
        values = values[:0]
    chosen = _last(finding, chosen_place(finding, model))
    rank = f"{rank_correlation(finding, model):.2f}"
    return _number(_median(values)), _number(typical_factor(values)), rank, _number(chosen)


def _title(found: ProblemFindings) -> str:
    return found.problem.title[0].upper() + found.problem.title[1:]


def _last(finding: Finding, place: int) -> float:
    """Final excess loss of a pair in the runs."""
    return float(finding.measured[place, -1])


def _known(values: Array) -> Array:
    return values[np.isfinite(values)]


def _median(values: Array) -> float:
    known = _known(values)
    return float(np.median(known)) if len(known) else float("nan")


def _number(value: float) -> str:
    """Three significant digits; a dash for a ratio that does not exist, a word for a loss that is infinite."""
    if np.isnan(value):
        return "–"
    return f"{value:.3g}" if np.isfinite(value) else "diverges"
