"""The page about forecasts: logs in, fit, forecasts with their bands, and the best schedule out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import streamlit as st

from eigencurve.figures.interactive import fit_chart, forecasts_chart, schedules_chart
from eigencurve.forecast.fit import fit_runs
from eigencurve.forecast.forecast import Forecast
from eigencurve.planning.code import ScheduleCode, load_schedule, training_code
from eigencurve.planning.forecasts import (
    BEST_FOUND,
    ForecastView,
    LoadedRuns,
    LogSettings,
    best_lines,
    doubt_lines,
    fitted_curves,
    forecast_view,
    next_run_line,
    plan_from_view,
    predictions,
    run_facts,
    with_schedule,
)
from eigencurve.planning.result import Plan, Training
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import warmup
from eigencurve.schedules.wsd import wsd
from eigencurve.studio import texts
from eigencurve.studio.background import Answers
from eigencurve.studio.controls import FILES_KEPT, FRAMEWORK_NAMES, SECONDS_KEPT
from eigencurve.studio.elements import about_rate, download_buttons, show_chart
from eigencurve.studio.logs import read_logs
from eigencurve.studio.source import MOST_MEGABYTES
from eigencurve.studio.state import MOST_STEPS
from eigencurve.studio.tables import html_table
from eigencurve.studio.verdict import verdict

Files: TypeAlias = tuple[tuple[str, bytes], ...]
USUALLY_SHOWN = (BEST_FOUND, "WSD, last 20 %", "cosine to 0", "constant")
OWN = "your own"
NO_OTHER, TAIL, SAVED = "none", "hold, then decay linearly", "from a file (.json)"


@dataclass(frozen=True, eq=False)
class Fitted:
    """Uploaded runs, and the fit to them."""

    loaded: LoadedRuns
    forecast: Forecast


@dataclass(frozen=True, eq=False)
class Answered:
    """The forecast with the best schedule, and the plan."""

    view: ForecastView
    plan: Plan


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
        with st.sidebar:
            steps, peak, best = _plan_controls(fitted.forecast)
        ask = partial(_answers().ask, fitted, steps, peak)
        usual = _view(files, settings, steps, peak)
        verdict(partial(_plan, ask), str(st.session_state.get("best_framework", "torch")), "forecast")
        with st.sidebar:
            other = _own_schedule(usual)
        answer = ask() if best else None
        view = usual if answer is None else answer.view
        _page(view if other is None else with_schedule(view, OWN, other), fitted.loaded)
    except (OSError, TypeError, ValueError) as error:
        st.error(texts.plain(str(error)))


def _page(view: ForecastView, loaded: LoadedRuns) -> None:
    for warning in loaded.warnings:
        st.warning(texts.plain(warning))
    _logged(view)
    _forecasts(view)
    if view.best is not None:
        _best(view)
    st.header("What the fit is unsure about", anchor=False)
    for line in doubt_lines(view):
        st.markdown(texts.plain(line))
    st.markdown("**Which short run would help most.** " + texts.plain(next_run_line(view.next_run)))


@st.cache_resource(max_entries=FILES_KEPT, ttl=SECONDS_KEPT, show_spinner=False)
def _fitted(files: Files, settings: LogSettings) -> Fitted:
    loaded = read_logs(files, settings)
    return Fitted(loaded, fit_runs(loaded.runs))


@st.cache_resource(max_entries=4 * FILES_KEPT, ttl=SECONDS_KEPT, show_spinner=False)
def _view(files: Files, settings: LogSettings, steps: int, peak: float) -> ForecastView:
    """The forecast without the best schedule, which takes seconds to find."""
    fitted = _fitted(files, settings)
    return forecast_view(fitted.loaded.runs, steps, peak, forecast=fitted.forecast)


@st.cache_resource
def _answers() -> Answers[[Fitted, int, float], Answered]:
    return Answers(_answered, seconds=SECONDS_KEPT)


def _answered(fitted: Fitted, steps: int, peak: float) -> Answered:
    view = forecast_view(fitted.loaded.runs, steps, peak, best=True, forecast=fitted.forecast)
    return Answered(view, plan_from_view(view))


def _plan(ask: Callable[[], Answered | None]) -> Plan | None:
    answer = ask()
    return None if answer is None else answer.plan


def _log_controls() -> tuple[Files, LogSettings]:
    help_of = texts.FORECAST_HELP
    st.header("Logs", anchor=False)
    sent = st.file_uploader(
        "Logs of finished runs", key="logs", accept_multiple_files=True, help=help_of["logs"],
        max_upload_size=MOST_MEGABYTES,
    )  # fmt: skip
    loss = st.text_input("Loss column", key="log_loss", help=help_of["loss"]).strip()
    lr = st.text_input("Learning-rate column", key="log_lr", help=help_of["lr"]).strip()
    rise = st.number_input("Warmup steps", 0, MOST_STEPS, 0, key="log_warmup", help=help_of["warmup"])
    last = st.number_input("Last step", 0, MOST_STEPS, 0, key="log_last", help=help_of["last_step"])
    resumed = st.checkbox("Resumed run", key="log_resumed", help=help_of["resumed"])
    settings = LogSettings(loss or None, lr or None, int(rise) or None, int(last) or None, resumed)
    return tuple((file.name, file.getvalue()) for file in sent or ()), settings


def _plan_controls(forecast: Forecast) -> tuple[int, float, bool]:
    """The length and the peak rate of the schedules; other logs have other defaults, hence other widgets."""
    help_of, logged = texts.FORECAST_HELP, forecast.fitted.logged
    st.header("Schedules", anchor=False)
    usual, peak = min(logged.num_steps, MOST_STEPS), logged.highest_peak
    steps = st.number_input("Steps", 2, MOST_STEPS, usual, key=f"plan_steps_{usual}", help=help_of["steps"])
    rate = st.number_input(
        "Peak rate", 0.0, None, peak, step=peak / 10, format="%g", key=f"plan_peak_{peak:g}", help=help_of["peak"]
    )
    low, high = logged.lowest_peak, logged.highest_peak
    span = f"{high:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    inside = low <= rate <= high
    text = texts.LOGGED_RATES if inside else texts.OTHER_RATE
    about_rate(text.format(rate=rate, span=span), inside)
    best = st.toggle("Search the best schedule", True, key="plan_best", help=help_of["best"])
    return int(steps), float(rate), bool(best)


def _own_schedule(view: ForecastView) -> Schedule | None:
    """Another schedule that the user describes or uploads."""
    help_of = texts.FORECAST_HELP
    kind = st.selectbox("Another schedule", (NO_OTHER, TAIL, SAVED), key="own_kind", help=help_of["own"])
    if kind == TAIL:
        tail = st.slider("Decay over the last %", 1, 100, 30, key="own_tail", help=help_of["tail"])
        final = st.slider("Final rate, % of the peak", 0, 100, 0, key="own_final", help=help_of["final"])
        steps = view.total_steps - view.warmup_steps
        length = min(max(1, round(tail / 100 * view.total_steps)), steps)
        shape = wsd(steps, view.peak_lr, length, min_lr=final / 100 * view.peak_lr)
        return warmup(shape, view.warmup_steps) if view.warmup_steps else shape
    if kind == SAVED:
        sent = st.file_uploader("Schedule", type=["json"], key="own_file", max_upload_size=MOST_MEGABYTES)
        return None if sent is None else load_schedule(Path(sent.name), sent.getvalue())
    return None


def _logged(view: ForecastView) -> None:
    st.header("Logged runs", anchor=False)
    show_chart(fit_chart(fitted_curves(view.forecast, view.runs)), "fit")
    st.caption(texts.FIT)
    st.html(html_table([_run_row(run_facts(run)) for run in view.runs]))


def _run_row(facts: Mapping[str, Any]) -> dict[str, str]:
    return {
        "run": facts["name"],
        "loss": facts["metric"],
        "points": f"{facts['num_losses']:,}",
        "last step": f"{facts['last_step']:,}",
        "peak rate": f"{facts['peak_lr']:.4g}",
        "warmup": f"{facts['warmup_steps']:,}",
    }


def _forecasts(view: ForecastView) -> None:
    st.header("Forecasts", anchor=False)
    names = [row.name for row in view.table.rows]
    usual = [name for name in (OWN, *USUALLY_SHOWN) if name in names]
    key = f"shown_{len(names)}_{BEST_FOUND in names}"
    chosen = st.multiselect("Schedules", names, usual, key=key, help=texts.FORECAST_HELP["shown"]) or usual
    shown = predictions(view, chosen)
    about_rate(texts.FORECAST_RATE.format(rate=view.peak_lr))
    show_chart(forecasts_chart(shown), "forecasts")
    st.caption(texts.BANDS)
    columns = view.table.columns()
    st.html(html_table([dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]))
    for sentence in sorted({sentence for row in view.table.rows for sentence in row.beyond}):
        st.caption(texts.plain(f"* {sentence}"))


def _best(view: ForecastView) -> None:
    st.header("The best schedule", anchor=False)
    for line in best_lines(view):
        st.markdown(texts.plain(line))
    rows = {row.name: row.schedule for row in view.table.rows}
    about_rate(texts.FORECAST_RATE.format(rate=view.peak_lr))
    show_chart(schedules_chart({name: rows[name] for name in USUALLY_SHOWN if name in rows}), "best_rates")
    schedule = rows[BEST_FOUND]
    download_buttons(schedule, "best")
    names = FRAMEWORK_NAMES
    framework = st.radio("Code for", tuple(names), format_func=names.__getitem__, key="best_framework", horizontal=True)
    st.code(
        training_code(str(framework), ScheduleCode.from_file(Path("best.json"), schedule, Training())),
        language="python",
    )
