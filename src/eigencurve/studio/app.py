"""The page's layout, and nothing else: Streamlit runs this file from top to bottom whenever a setting changes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import streamlit as st

from eigencurve.report.exports import csv_bytes, json_bytes
from eigencurve.report.recipe import SavedSchedule
from eigencurve.report.snippets import snippet
from eigencurve.report.subject import Subject
from eigencurve.studio import figures, texts
from eigencurve.studio.background import Searches
from eigencurve.studio.controls import axis_control, controls, framework_control, opened, unchanged
from eigencurve.studio.source import subject_of
from eigencurve.studio.state import AXES, Settings, to_params
from eigencurve.studio.view import BEST, Interval, LossRow, View, problem_of, redraw
from eigencurve.theory.quadratic import NoisyQuadratic

# How often the page asks whether the search has ended, and the most lines of a CSV file.
POLL_SECONDS = 0.5
MOST_LINES = 1_000_000
CHART = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}


def main() -> None:
    """The whole page."""
    st.set_page_config(page_title="eigencurve studio", page_icon="📉", layout="wide")
    st.title("eigencurve studio", anchor=False)
    st.markdown(texts.INTRODUCTION)
    messages = opened()
    with st.sidebar:
        settings, upload = controls()
    if settings is None:
        st.stop()
    for message in messages if unchanged(settings) else ():
        st.warning(texts.plain(message))
    if st.query_params.to_dict() != to_params(settings):
        st.query_params.from_dict(to_params(settings))
    if settings.source == "upload" and upload is None:
        st.info(texts.NO_FILE)
        st.stop()
    try:
        subject = subject_of(settings, upload)
        view = _computed(settings, subject)
    except ValueError as error:  # a spectrum that no schedule can be made of
        st.error(texts.plain(str(error)))
        st.stop()
    _facts(view, settings)
    _spectrum(view, subject)
    _rates(view, settings)
    _losses(view, settings)
    if settings.best and BEST not in view.schedules:
        _wait(view.problem, settings.total_steps, view.losses.max_lr)
    _take(view, settings)


def _computed(settings: Settings, subject: Subject) -> View:
    """All numbers of the page; the best schedule among them once its search has ended."""
    problem, max_lr = problem_of(settings, subject)
    best = _searches().ask(problem, settings.total_steps, max_lr) if settings.best else None
    return redraw(settings, subject, best)


@st.cache_resource
def _searches() -> Searches:
    return Searches()


@st.fragment(run_every=POLL_SECONDS)
def _wait(problem: NoisyQuadratic, total_steps: int, max_lr: float) -> None:
    """Draw the page again once the search has ended."""
    if _searches().ask(problem, total_steps, max_lr) is not None:
        st.rerun()
    st.info(texts.SEARCHING)


def _facts(view: View, settings: Settings) -> None:
    spectrum = view.spectrum
    facts = {
        "Condition number κ": (f"{spectrum.kappa:.3g}", "Largest over smallest eigenvalue."),
        "Octaves": (f"{len(spectrum.lower)}", "Doublings from the smallest eigenvalue to the largest."),
        "Negative": (f"{spectrum.fraction_negative:.1%}", "The share that was measured below zero."),
        "Extra term": (f"{spectrum.extra_term:.2f}", texts.EXTRA_TERM),
        "Steps T": (f"{settings.total_steps:,}", "Epochs times steps per epoch."),
    }
    with st.container(horizontal=True, gap="medium"):
        for label, (value, explanation) in facts.items():
            st.metric(label, value, help=explanation, width="content")


def _spectrum(view: View, subject: Subject) -> None:
    st.header("How the loss curves", anchor=False)
    _chart(figures.spectrum_figure(view.spectrum), "spectrum")
    spectrum = view.spectrum
    of = "" if spectrum.dim is None else f" of {spectrum.dim:,} parameters"
    what = f"{texts.plain(subject.name)}, {spectrum.num_nodes:,} eigenvalues{of}"
    st.caption(f"{texts.SPECTRUM} Here: {what}, from {spectrum.mu:.3g} to {spectrum.L:.4g}.")


def _rates(view: View, settings: Settings) -> None:
    st.header("Learning rates", anchor=False)
    for column, scale in zip(st.columns(2), AXES, strict=True):
        with column:
            _chart(figures.rates_figure(view, settings.steps_per_epoch, scale, settings.lr), f"rates_{scale}")
    st.caption(texts.RATES)
    if view.intervals:
        with st.expander(f"The {len(view.intervals)} intervals of Eigencurve"):
            st.table([_interval_row(interval, settings) for interval in view.intervals])


def _interval_row(interval: Interval, settings: Settings) -> dict[str, str]:
    return {
        "eigenvalues": f"{interval.lower:.3g} to {interval.upper:.3g}",
        "share of them": f"{interval.share:.3g}",
        "from epoch": f"{interval.start / settings.steps_per_epoch:.4g}",
        "epochs": f"{interval.length / settings.steps_per_epoch:.4g}",
        "of training": f"{interval.length / settings.total_steps:.2%}",
        "learning rate": f"{interval.first_lr:.4g} to {interval.last_lr:.4g}",
    }


def _losses(view: View, settings: Settings) -> None:
    st.header("What each would reach", anchor=False)
    axis_control()
    losses = view.losses
    _chart(figures.losses_figure(losses, settings.steps_per_epoch, settings.axis), "losses")
    st.table([_loss_row(row) for row in losses.rows])
    if any(row.diverges for row in losses.rows):
        st.warning(texts.DIVERGES.format(limit=2 / view.spectrum.L))
    st.caption(f"The bound at the end is {losses.bound[-1]:.4g}. {texts.BOUND.format(max_lr=losses.max_lr)}")
    st.caption(texts.ERROR.format(error=100 * losses.error))


def _loss_row(row: LossRow) -> dict[str, str]:
    ratio = f"{row.ratio:.3f}" if math.isfinite(row.ratio) else "–"
    return {
        "schedule": texts.LABELS[row.name],
        "loss": "diverges" if row.diverges else f"{row.loss:.4g}",
        "÷ bound": ratio,
        "bias": "–" if row.diverges else f"{row.bias:.4g}",
        "variance": "–" if row.diverges else f"{row.variance:.4g}",
        "peak rate": f"{row.peak:.4g}",
    }


def _take(view: View, settings: Settings) -> None:
    st.header("Take it with you", anchor=False)
    name = st.selectbox(
        "Schedule", tuple(view.schedules), format_func=texts.LABELS.__getitem__, key="take", help=texts.HELP["take"]
    )
    schedule = view.schedules[name]
    left, right = st.columns(2)
    left.download_button(
        "Download JSON", json_bytes(schedule.to_dict()), f"{name}.json", "application/json", on_click="ignore",
        help=texts.HELP["json"], width="stretch",
    )  # fmt: skip
    right.download_button(
        "Download CSV", lambda: csv_bytes(schedule), f"{name}.csv", "text/csv", on_click="ignore",
        help=texts.HELP["csv"], width="stretch", disabled=settings.total_steps > MOST_LINES,
    )  # fmt: skip
    if name == BEST:
        st.caption(texts.SCALED)
    framework_control()
    making = view.recipes.get(name) or SavedSchedule(Path(f"{name}.json"), schedule, settings.weight_decay)
    st.code(snippet(settings.framework, making), language="python")
    st.caption(texts.SHARED_WITHOUT_FILE if settings.source == "upload" else texts.SHARED)


def _chart(figure: Any, key: str) -> None:
    st.plotly_chart(figure, key=key, config=CHART)


if __name__ == "__main__":
    main()
