"""The part about finished runs: for every experiment and budget a figure and a table."""

from __future__ import annotations

from collections.abc import Sequence

from eigencurve.report.figures import curves_panel
from eigencurve.report.page import Markup, Section, figure, paragraph, table
from eigencurve.report.runs import BUDGET, SCHEDULE, Panel, prefers_higher, settings_text
from eigencurve.report.svg import inline_svg

INTRODUCTION = (
    "Finished runs from the store: mean ± standard deviation over the seeds, whose number stands in parentheses. Each"
    " schedule is shown with those of its settings that did best on these very runs, which flatters the schedules with"
    " more settings more. Diverged runs are counted and not averaged."
)


def runs_section(panels: Sequence[Panel]) -> Section:
    """Finished runs."""
    blocks = [block for place, panel in enumerate(panels) for block in _panel_blocks(panel, f"runs{place}")]
    return Section("Training runs", [paragraph(INTRODUCTION), *blocks])


def _panel_blocks(panel: Panel, name: str) -> list[Markup]:
    title = panel.experiment + (f", {panel.budget}" if panel.budget else "")
    curves = {trial.schedule: trial.curve for trial in panel.trials if trial.curve is not None}
    blocks = []
    if curves:
        picture = inline_svg(
            curves_panel(curves, BUDGET if panel.budget else "time", panel.metrics[0] if panel.metrics else "value"),
            name,
            f"Line chart of the training curves of {title}: {', '.join(curves)}.",
        )
        blocks.append(figure(picture, f"{title}: the mean curve of each schedule with its best settings."))
    return [*blocks, _table(panel, title)]


def _table(panel: Panel, title: str) -> Markup:
    rows = [
        [
            trial.schedule,
            settings_text({key: v for key, v in trial.settings.items() if key not in (SCHEDULE, BUDGET)}),
            *(trial.text(metric) for metric in panel.metrics),
            str(trial.num_diverged),
        ]
        for trial in panel.trials
    ]
    caption = title
    if panel.metrics:
        way = "highest" if prefers_higher(panel.metrics[0]) else "lowest"
        caption += f": of {panel.num_settings} settings tried, those with the {way} mean {panel.metrics[0]}"
    return table(caption, ["schedule", "settings", *panel.metrics, "diverged"], rows, text_columns=2)
