"""Section with finished runs: figures and a table for every experiment and budget."""

from __future__ import annotations

from collections.abc import Sequence

from eigencurve.figures.curves import curves_panel
from eigencurve.report.page import Markup, Section, figure, paragraph, side_by_side, table
from eigencurve.report.runs import TIME, Panel, Trial, prefers_higher, settings_text
from eigencurve.report.svg import inline_svg

INTRODUCTION = (
    "Results of the finished runs in the store: mean ± standard deviation over seeds, with the number of seeds in"
    " parentheses. Each schedule is shown at the settings that scored best on these same runs, which favours schedules"
    " with more settings. Diverged runs are counted but not averaged."
)


def runs_section(panels: Sequence[Panel]) -> Section:
    """Build the section with finished runs."""
    blocks = [block for place, panel in enumerate(panels) for block in _panel_blocks(panel, f"runs{place}")]
    return Section("Training runs", [paragraph(INTRODUCTION), *blocks])


def _panel_blocks(panel: Panel, name: str) -> list[Markup]:
    title = panel.experiment + (f", {panel.problem}" if panel.problem else "")
    figures = [_figure(panel, curve, f"{name}-{place}", title) for place, curve in enumerate(_shown_curves(panel))]
    return [*([side_by_side(*figures)] if figures else []), _table(panel, title)]


def _shown_curves(panel: Panel) -> list[str]:
    """At most two curves: the first one, and the one of the metric that the best settings were chosen by."""
    names = list(dict.fromkeys(name for trial in panel.trials for name in trial.curves))
    return list(dict.fromkeys([*names[:1], *(name for name in names if name in panel.metrics[:1])]))


def _figure(panel: Panel, curve: str, name: str, title: str) -> Markup:
    shown = {trial.schedule: trial.curves[curve] for trial in panel.trials if curve in trial.curves}
    label = curve.replace("_", " ") or (panel.metrics[0] if panel.metrics else "value")
    text = f"Line chart of {label} over {TIME} in {title}: {', '.join(shown)}."
    picture = inline_svg(curves_panel(shown, TIME, label), name, text)
    return figure(picture, f"{title}: mean {label} of each schedule at its best settings.")


def _table(panel: Panel, title: str) -> Markup:
    rows = [_cells(panel, trial) for trial in panel.trials]
    caption = title
    if panel.metrics:
        way = "highest" if prefers_higher(panel.metrics[0]) else "lowest"
        caption += f": settings with the {way} mean {panel.metrics[0]}, out of {panel.num_settings} tried"
    if panel.common:
        caption += f"; all runs with {settings_text(panel.common)}"
    return table(caption, ["schedule", "settings", *panel.metrics, "diverged"], rows, text_columns=2)


def _cells(panel: Panel, trial: Trial) -> list[str]:
    numbers = [trial.text(metric) for metric in panel.metrics]
    return [trial.schedule, settings_text(panel.own(trial)), *numbers, str(trial.num_diverged)]
