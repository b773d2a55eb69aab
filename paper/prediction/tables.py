"""``python -m paper prediction``: predicted and real losses on problems from quadratic to far from it."""

from __future__ import annotations

from typing import Any

from paper.engine.request import Request
from paper.page import ResultsPage
from paper.prediction.findings import rank_correlation, typical_factor
from paper.prediction.plots import figures
from paper.prediction.report import text
from paper.prediction.scales import scale_named
from paper.prediction.study import ProblemFindings, noise_effects, problem_makers, ratios, study_problem
from paper.training.devices import threads


def make(request: Request) -> ResultsPage:
    """Measure, run and compare every problem whose data is present."""
    scale = scale_named(request.scale)
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
