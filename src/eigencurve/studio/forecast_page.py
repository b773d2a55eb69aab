"""The page about forecasts: logs in; the plan, the fit, and forecasts with their bands out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import streamlit as st

from eigencurve.figures.interactive import fit_chart, fitted_curves, forecasts_chart
from eigencurve.forecast.fit import fit_runs
from eigencurve.forecast.forecast import Forecast
from eigencurve.planning.code import load_schedule
from eigencurve.planning.logs import LoadedRuns, LogSettings, run_facts
from eigencurve.planning.plan import plan
from eigencurve.planning.result import Plan
from eigencurve.schedules.base import Schedule
from eigencurve.studio import texts
from eigencurve.studio.elements import MOST_STEPS, draw_plan, draw_table, label_of, message, show_chart, with_commands
from eigencurve.studio.launch import MOST_MEGABYTES
from eigencurve.studio.uploads import PLANS_KEPT, SECONDS_KEPT, uploaded_runs

Files: TypeAlias = tuple[tuple[str, bytes], ...]
# Labels of the settings, by the arguments that messages mention.
LABELS = {
    "loss": "Loss column",
    "lr": "Learning-rate column",
    "warmup_steps": "Warmup steps",
    "last_step": "Last step",
    "resumed": "Resumed run",
    "total_steps": "Steps",
}
PLAN_LABELS = {**LABELS, "lr": "Peak learning rate"}
USUALLY_SHOWN = ("wsd_20", "cosine_0", "constant")


@dataclass(frozen=True, eq=False)
class Fitted:
    """Uploaded runs, and the fit to them."""

    loaded: LoadedRuns
    forecast: Forecast


def forecast_page() -> None:
    """Draw the whole page."""
    st.title(texts.FORECAST_TITLE, anchor=False)
    st.markdown(texts.FORECAST_INTRODUCTION)
    with st.sidebar:
        files, settings = _log_controls()
    if not files:
        st.info(texts.NO_LOGS)
        return
    try:
        fitted = _fitted(files, settings)
    except (OSError, TypeError, ValueError) as error:
        st.error(message(error, LABELS))
        return
    with st.sidebar:
        steps, lr = _plan_controls(fitted.forecast)
    try:
        answer = _plan(files, settings, steps, lr)
        with st.sidebar:
            own = _own_schedule()
        _draw(answer, fitted, own)
    except (TypeError, ValueError) as error:
        st.error(message(error, PLAN_LABELS))


@st.cache_resource(max_entries=PLANS_KEPT, ttl=SECONDS_KEPT, show_spinner=texts.PLANNING)
def _fitted(files: Files, settings: LogSettings) -> Fitted:
    loaded = uploaded_runs(files, settings, label_of(LABELS))
    return Fitted(loaded, fit_runs(loaded.runs))


@st.cache_resource(max_entries=PLANS_KEPT, ttl=SECONDS_KEPT, show_spinner=texts.PLANNING)
def _plan(files: Files, settings: LogSettings, total_steps: int, lr: float | None) -> Plan:
    return plan(_fitted(files, settings).forecast, total_steps=total_steps, lr=lr)


def _draw(answer: Plan, fitted: Fitted, own: Mapping[str, Schedule]) -> None:
    for warning in fitted.loaded.warnings:
        st.warning(with_commands(warning))
    draw_plan(answer, own)
    _forecasts(answer, fitted.forecast, own)
    st.header("Logged runs", anchor=False)
    show_chart(fit_chart(fitted_curves(fitted.forecast, fitted.loaded.runs)), "fit")
    st.caption(texts.FIT)
    facts = [run_facts(run) for run in fitted.loaded.runs]
    columns = ["run", "loss", "losses", "last step", "peak rate", "warmup"]
    draw_table(
        columns, [[f"{value:,.6g}" if isinstance(value, int | float) else value for value in f.values()] for f in facts]
    )


def _forecasts(answer: Plan, forecast: Forecast, own: Mapping[str, Schedule]) -> None:
    st.header("Forecasts", anchor=False)
    rows = {row.label: row for row in answer.table.rows}
    usual = [label for label, row in rows.items() if row.name in (answer.name, *USUALLY_SHOWN)]
    labels = [*own, *rows]
    shown = (
        st.multiselect("Schedules", labels, [*own, *usual], key=f"shown{len(own)}", help=texts.HELP["shown"]) or usual
    )
    schedules = {**own, **{label: row.schedule for label, row in rows.items()}}
    show_chart(forecasts_chart({label: forecast.predict(schedules[label]) for label in shown}), "forecasts")
    st.caption(texts.BANDS)
    if own:
        columns = forecast.compare({**{row.label: row.schedule for row in answer.table.rows}, **own}).columns()
        draw_table(list(columns), [list(cells) for cells in zip(*columns.values(), strict=True)])


def _log_controls() -> tuple[Files, LogSettings]:
    """The uploaded logs, and how to read them."""
    st.header("Logs", anchor=False)
    sent = st.file_uploader(
        "Logs of runs", accept_multiple_files=True, key="logs", help=texts.HELP["logs"],
        max_upload_size=MOST_MEGABYTES,
    )  # fmt: skip
    with st.expander("How to read them"):
        loss = st.text_input(LABELS["loss"], help=texts.HELP["loss"]) or None
        lr = st.text_input(LABELS["lr"], help=texts.HELP["lr_column"]) or None
        warmup = st.number_input(LABELS["warmup_steps"], 0, MOST_STEPS, None, help=texts.HELP["warmup_steps"])
        last_step = st.number_input(LABELS["last_step"], 1, MOST_STEPS, None, help=texts.HELP["last_step"])
        resumed = st.toggle(LABELS["resumed"], help=texts.HELP["resumed"])
    return tuple((file.name, file.getvalue()) for file in sent), LogSettings(loss, lr, warmup, last_step, resumed)


def _plan_controls(forecast: Forecast) -> tuple[int, float | None]:
    """The length of the run and its peak rate. Widgets of other logs have other keys, so they begin anew."""
    st.header("Training run", anchor=False)
    longest = forecast.fitted.logged.num_steps
    steps = st.number_input(
        LABELS["total_steps"], 2, MOST_STEPS, longest, key=f"steps_{longest}", help=texts.HELP["total_steps"]
    )
    lr = st.number_input(
        PLAN_LABELS["lr"], 1e-12, 1e6, None, format="%g", key="peak", placeholder="logged", help=texts.HELP["peak"]
    )
    return steps, lr


def _own_schedule() -> dict[str, Schedule]:
    """The uploaded schedule by its label, if there is one."""
    sent = st.file_uploader(
        "Another schedule (.json)", "json", key="own", help=texts.HELP["own"], max_upload_size=MOST_MEGABYTES
    )
    return {} if sent is None else {sent.name: load_schedule(Path(sent.name), sent.getvalue())}
