"""The page of ``python -m paper forecast``."""

from __future__ import annotations

from paper.engine.request import Request
from paper.forecasts.drawings import curves_figure, file_name, shapes_figure
from paper.forecasts.report import text, values
from paper.forecasts.study import measure
from paper.page import ResultsPage


def make(request: Request) -> ResultsPage:
    """Forecasts of published training runs, compared with what was logged."""
    study = measure(request.data, request.progress)
    figures = {file_name(outcome): curves_figure(outcome) for outcome in study.outcomes}
    figures["forecast_best.png"] = shapes_figure(study.improvements)
    return ResultsPage("forecast", "Forecasts of published training runs", text(study), figures, values=values(study))
