"""The HTML page about a forecast: the answer, the table, the curves, the schedule, and what it is based on."""

from __future__ import annotations

from collections.abc import Sequence

from eigencurve.planning.forecasts import ForecastView
from eigencurve.report.page import page, paragraph
from eigencurve.report.sections.forecast import (
    answer_section,
    basis_section,
    best_schedule_section,
    curves_section,
    table_section,
)
from eigencurve.report.sections.settings import settings_section
from eigencurve.runs.origin import origin_here


def forecast_page(view: ForecastView, warnings: Sequence[str] = (), command: str = "") -> str:
    """Build the page as self-contained HTML.

    Args:
        view: The forecast.
        warnings: Warnings about the logs.
        command: Command line that created the page, to be shown on it.
    """
    sections = [answer_section(view), table_section(view), curves_section(view)]
    if view.best is not None:
        sections.append(best_schedule_section(view))
    settings = {
        **({"command": command} if command else {}),
        "steps": f"{view.total_steps:,}",
        "peak rate": f"{view.peak_lr:.4g}",
        "warmup steps": f"{view.warmup_steps:,}",
    }
    sections += [basis_section(view, warnings), settings_section(settings, origin_here())]
    names = ", ".join(run.name for run in view.runs)
    intro = f"What the final loss of other schedules would be, according to a fit to the logs of {names}."
    return page(f"A forecast for {view.total_steps:,} steps", [paragraph(intro)], sections)
