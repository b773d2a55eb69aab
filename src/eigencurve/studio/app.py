"""Layout of the page. Streamlit runs this file from top to bottom whenever a setting changes."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import streamlit as st

from eigencurve.figures.interactive import losses_chart, rates_chart, spectrum_chart
from eigencurve.planning.code import ScheduleCode, training_code
from eigencurve.planning.intervals import Interval
from eigencurve.planning.labels import BEST, LABELS
from eigencurve.planning.loss_view import LossRow, LossView, loss_view
from eigencurve.planning.result import Plan
from eigencurve.planning.spectrum_view import SpectrumView, spectrum_view
from eigencurve.planning.warnings import (
    RateLimit,
    length_warning,
    metric_warning,
    negative_warning,
    rate_limit,
    settling_warning,
)
from eigencurve.spectrum.source import SpectrumSource, input_lines, with_inputs
from eigencurve.studio import texts
from eigencurve.studio.background import Answers, best_schedule
from eigencurve.studio.controls import axis_control, controls, framework_control, read_address, unchanged
from eigencurve.studio.elements import about_rate, download_buttons, show_chart
from eigencurve.studio.forecast_page import forecast_page
from eigencurve.studio.source import subject_of
from eigencurve.studio.state import Settings, to_params
from eigencurve.studio.tables import html_table
from eigencurve.studio.verdict import POLL_SECONDS, spectrum_plan, verdict
from eigencurve.studio.view import CurvesView, curves_view, problem_of, training_in
from eigencurve.theory.optimal import Search
from eigencurve.theory.quadratic import NoisyQuadratic


def main() -> None:
    """Draw the page that the address names."""
    st.set_page_config(page_title="eigencurve studio", page_icon="📉", layout="wide")
    pages = [
        st.Page(schedules_page, title=texts.SCHEDULES_TITLE, default=True),
        st.Page(forecast_page, title=texts.FORECAST_TITLE, url_path="forecast"),
    ]
    st.navigation(pages, position="top").run()


def schedules_page() -> None:
    """Draw the page about schedules from a spectrum."""
    st.title("eigencurve studio", anchor=False)
    st.markdown(texts.INTRODUCTION)
    messages = read_address()
    with st.sidebar:
        settings, upload, rate_place = controls()
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
        limit = rate_limit(subject, None, settings.momentum or None, settings.nesterov)
        with rate_place:
            line = limit.about(settings.lr)
            about_rate(f"{line[0].upper()}{line[1:]}.", limit.allows(settings.lr))
        _page(settings, subject, limit)
    except ValueError as error:  # no schedule can be built from this spectrum
        st.error(texts.plain(str(error)))


def _page(settings: Settings, subject: SpectrumSource, limit: RateLimit) -> None:
    """Draw each part as soon as it is computed, so the browser renders it while the next one is computed."""
    run = (subject, settings.total_steps, settings.lr, settings.noise, settings.momentum, settings.nesterov)
    verdict(partial(_plans().ask, *run), settings.framework, "spectrum")
    spectrum = spectrum_view(subject)
    _facts(spectrum, settings)
    _spectrum(spectrum, subject)
    question = (*problem_of(settings, subject), settings.total_steps)
    best = _searches().ask(*question) if settings.best else None
    curves = curves_view(settings, subject, best)
    _rates(curves, settings, limit)
    if "eigencurve" in settings.schedules and settings.min_lr is None:
        _warn(length_warning(subject, settings.total_steps))
    plain = rate_limit(subject, "sgd", settings.momentum, settings.nesterov)
    _losses(loss_view(*question, curves.compared, settings.scale), settings, plain)
    _warn(metric_warning(subject, "sgd"))
    for line in input_lines(with_inputs(subject, settings.noise)):
        st.caption(line)
    if settings.best and best is None:
        _wait(*question)
    _take(curves, settings, subject)


def _warn(doubt: str) -> None:
    """Draw a doubt, if there is one."""
    if doubt:
        st.warning(texts.with_commands(doubt))


@st.cache_resource
def _searches() -> Answers[[NoisyQuadratic, float, int], Search]:
    return Answers(best_schedule)


@st.cache_resource
def _plans() -> Answers[[SpectrumSource, int, float, float | None, float, bool], Plan]:
    return Answers(spectrum_plan)


@st.fragment(run_every=POLL_SECONDS)
def _wait(problem: NoisyQuadratic, max_lr: float, total_steps: int) -> None:
    """Redraw the page once the search has finished."""
    if _searches().ask(problem, max_lr, total_steps) is not None:
        st.rerun()
    st.info(texts.SEARCHING)


def _facts(spectrum: SpectrumView, settings: Settings) -> None:
    facts = {
        "Condition number κ": (f"{spectrum.kappa:.3g}", "Largest eigenvalue divided by the smallest."),
        "Octaves": (
            f"{len(spectrum.lower)}",
            "Number of factors of two between the smallest and the largest eigenvalue.",
        ),
        "Negative": (f"{spectrum.fraction_negative:.1%}", "Share of the eigenvalues that were measured negative."),
        "Extra term": (f"{spectrum.extra_term:.2f}", texts.EXTRA_TERM),
        "Steps T": (f"{settings.total_steps:,}", "Epochs × steps per epoch."),
    }
    with st.container(horizontal=True, gap="medium"):
        for label, (value, explanation) in facts.items():
            st.metric(label, value, help=explanation, width="content")


def _spectrum(spectrum: SpectrumView, subject: SpectrumSource) -> None:
    st.header("Curvature of the loss", anchor=False)
    show_chart(spectrum_chart(spectrum), "spectrum")
    of = "" if spectrum.dim is None else f" of {spectrum.dim:,} parameters"
    what = f"{texts.plain(subject.name)}, {spectrum.num_nodes:,} eigenvalues{of}"
    st.caption(
        f"{texts.SPECTRUM} This spectrum: {what}, from {spectrum.mu:.3g} to {spectrum.L:.4g}{subject.negative_text}."
    )
    _warn(settling_warning(subject))
    _warn(negative_warning(subject))


def _rates(view: CurvesView, settings: Settings, limit: RateLimit) -> None:
    st.header("Learning rates", anchor=False)
    about_rate(limit.sentence(settings.lr), limit.allows(settings.lr))
    show_chart(rates_chart(view.schedules, settings.steps_per_epoch, settings.lr), "rates")
    st.caption(texts.RATES)
    if view.intervals:
        with st.expander(f"The {len(view.intervals)} intervals of Eigencurve"):
            rows = [_interval_row(interval, settings) for interval in view.intervals]
            st.html(html_table(rows, minor=("share of all", "share of the run")))


def _interval_row(interval: Interval, settings: Settings) -> dict[str, str]:
    return {
        "eigenvalues": f"{interval.lower:.3g} to {interval.upper:.3g}",
        "share of all": f"{interval.share:.3g}",
        "from epoch": f"{interval.start / settings.steps_per_epoch:.4g}",
        "epochs": f"{interval.length / settings.steps_per_epoch:.4g}",
        "share of the run": f"{interval.length / settings.total_steps:.2%}",
        "learning rate": f"{interval.first_lr:.4g} to {interval.last_lr:.4g}",
    }


def _losses(losses: LossView, settings: Settings, limit: RateLimit) -> None:
    st.header("Expected losses", anchor=False)
    if settings.scale == "given":
        about_rate(limit.sentence(settings.lr), limit.allows(settings.lr))
    else:
        about_rate(texts.COMPARED_AT[settings.scale].format(rate=losses.max_lr, half=losses.max_lr / 2, limit=limit))
    axis_control()
    show_chart(losses_chart(losses, settings.steps_per_epoch, settings.axis), "losses")
    st.html(html_table([_loss_row(row) for row in losses.rows], minor=("bias", "variance")))
    if any(row.diverges for row in losses.rows):
        st.warning(texts.DIVERGES.format(formula=limit.formula, limit=limit.rate))
    if losses.bound is None:
        st.caption(texts.NO_BOUND)
    else:
        st.caption(
            f"The lower bound after the last step is {losses.bound[-1]:.4g}. {texts.BOUND.format(max_lr=losses.max_lr)}"
        )
    st.caption(texts.ERROR.format(error=100 * losses.error))


def _loss_row(row: LossRow) -> dict[str, str]:
    finite = row.ratio is not None and math.isfinite(row.ratio)
    return {
        "schedule": LABELS[row.name],
        "loss": "diverges" if row.diverges else f"{row.loss:.4g}",
        **({} if row.ratio is None else {"÷ bound": f"{row.ratio:.3f}" if finite else "–"}),
        "bias": "–" if row.diverges else f"{row.bias:.4g}",
        "variance": "–" if row.diverges else f"{row.variance:.4g}",
        "peak rate": f"{row.peak:.4g}",
    }


def _take(view: CurvesView, settings: Settings, subject: SpectrumSource) -> None:
    st.header("Use one of these schedules", anchor=False)
    name = st.selectbox(
        "Schedule", tuple(view.schedules), format_func=LABELS.__getitem__, key="take", help=texts.HELP["take"]
    )
    schedule = view.schedules[name]
    download_buttons(schedule, name)
    if name == BEST:
        st.caption(texts.SCALED)
    framework_control()
    source = view.recipes.get(name) or ScheduleCode.from_file(
        Path(f"{name}.json"), schedule, training_in(settings, subject)
    )
    st.code(training_code(settings.framework, source), language="python")
    st.caption(texts.SHARED_WITHOUT_FILE if settings.source == "upload" else texts.SHARED)


if __name__ == "__main__":
    main()
