"""Sections of the page about a forecast."""

from __future__ import annotations

from collections.abc import Sequence

from eigencurve.figures.forecasts import fit_figure, forecasts_figure, intervals_figure
from eigencurve.figures.schedules import rates_figure
from eigencurve.planning.forecasts import (
    BEST_FOUND,
    ForecastView,
    best_lines,
    doubt_lines,
    fitted_curves,
    next_run_line,
    predictions,
    run_facts,
)
from eigencurve.report.page import Markup, Section, code_block, figure, note, paragraph, side_by_side, table, tag
from eigencurve.report.svg import inline_svg

# Schedules whose forecast is drawn along the run.
DRAWN = (BEST_FOUND, "WSD, last 20 %", "cosine to 0", "constant")
SAVE = "To train with it, write it with -o best.json and print the code for your framework:"


def table_section(view: ForecastView) -> Section:
    """Build the section with the forecast of every schedule."""
    text = ", ".join(f"{row.name} {row.loss:.4f}" for row in view.table.rows)
    picture = inline_svg(intervals_figure(view.table), "intervals", f"Forecast final losses: {text}.")
    columns = view.table.columns()
    rows = [list(cells) for cells in zip(*columns.values(), strict=True)]
    caption = f"Forecast loss after {view.total_steps:,} steps, peak rate {view.peak_lr:.4g}"
    notes = sorted({sentence for row in view.table.rows for sentence in row.beyond})
    return Section(
        "Schedules in comparison",
        [
            paragraph(
                "All schedules have the same length, warmup and peak rate. Most errors of the fit are common to all"
                " schedules, so the differences are known better than the losses."
            ),
            table(caption, list(columns), rows),
            *(paragraph(f"* {sentence}") for sentence in notes),
            figure(picture, f"Forecast losses at the end, with 80 % intervals, peak rate {view.peak_lr:.4g}."),
        ],
    )


def curves_section(view: ForecastView) -> Section:
    """Build the section with the logged and the forecast curves."""
    names = ", ".join(run.name for run in view.runs)
    fit = inline_svg(fit_figure(fitted_curves(view.forecast, view.runs)), "fit", f"Logged losses and the fit: {names}.")
    shown = predictions(view, DRAWN)
    bands = inline_svg(forecasts_figure(shown), "bands", f"Forecast losses along the run: {', '.join(shown)}.")
    both = side_by_side(
        figure(fit, "Logged losses (dots) and the fit to them (lines)."),
        figure(bands, f"Forecast losses along the run, peak rate {view.peak_lr:.4g}. The bands are 80 % intervals."),
    )
    return Section("The curves", [both])


def best_schedule_section(view: ForecastView) -> Section:
    """Build the section about the best schedule."""
    rows = {row.name: row.schedule for row in view.table.rows}
    shown = {name: rows[name] for name in DRAWN if name in rows}
    text = f"Line chart of the learning rate over {view.total_steps:,} steps: {', '.join(shown)}."
    picture = inline_svg(rates_figure(shown, "linear"), "rates", text)
    code = "eigencurve schedule --load best.json --code torch"
    caption = f"Learning rates of the best schedule and of usual ones, peak rate {view.peak_lr:.4g}."
    lines = [paragraph(line) for line in best_lines(view)]
    return Section("The best schedule", [*lines, figure(picture, caption), paragraph(SAVE), code_block(code)])


def basis_section(view: ForecastView, warnings: Sequence[str]) -> Section:
    """Build the section about the logs, the fit, and its doubts."""
    keys = ("name", "metric", "num_losses", "last_step", "peak_lr", "warmup_steps")
    columns = ["run", "loss", "points", "last step", "peak rate", "warmup"]
    rows = [[_text(run_facts(run)[key]) for key in keys] for run in view.runs]
    misfit = view.forecast.fit_for(view.peak_lr).misfit
    error = f"The fit follows the later halves of the curves to {misfit:.4f} (standard deviation)."
    blocks: list[Markup] = [
        table("Logged runs", columns, rows, text_columns=2),
        paragraph(
            "The loss is modelled as a noisy quadratic whose curvature adapts to the learning rate. Its two measures,"
            f" where the initial error is and where the noise is, are fitted to the logs. {error}"
        ),
        *(note(warning) for warning in warnings),
        paragraph(tag("b", "What the fit is unsure about: "), " ".join(doubt_lines(view))),
        paragraph(tag("b", "Which short run would help most: "), next_run_line(view.next_run)),
    ]
    return Section("What it is based on", blocks)


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
