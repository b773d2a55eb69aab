"""The HTML page about a forecast: the verdict, the table, the curves, the schedule, and what it is based on."""

from __future__ import annotations

from collections.abc import Sequence

from eigencurve.planning.answer import Plan
from eigencurve.planning.forecasts import ForecastView
from eigencurve.report.page import page
from eigencurve.report.sections.forecast import (
    basis_section,
    best_schedule_section,
    curves_section,
    table_section,
)
from eigencurve.report.sections.plan import plan_section
from eigencurve.report.sections.settings import settings_section
from eigencurve.runs.origin import origin_here


def forecast_page(view: ForecastView, plan: Plan, warnings: Sequence[str] = (), command: str = "") -> str:
    """Build the page as self-contained HTML.

    Args:
        view: The forecast.
        plan: Answer to which schedule the run should use; the page opens with it.
        warnings: Warnings about the logs.
        command: Command line that created the page, to be shown on it.
    """
    sections = [table_section(view), curves_section(view)]
    if view.best is not None:
        sections.append(best_schedule_section(view))
    settings = {
        **({"command": command} if command else {}),
        "steps": f"{view.total_steps:,}",
        "peak rate": f"{view.peak_lr:.4g}",
        "warmup steps": f"{view.warmup_steps:,}",
    }
    sections += [basis_section(view, warnings), settings_section(settings, origin_here())]
    return page(f"A forecast for {view.total_steps:,} steps", [], sections, lead=plan_section(plan))
