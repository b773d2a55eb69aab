"""The page about schedules from a spectrum: the plan, the spectrum, the rates and the expected losses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

import streamlit as st

from eigencurve.figures.interactive import losses_chart, octaves_chart, schedules_chart
from eigencurve.planning.plan import plan
from eigencurve.planning.result import Plan
from eigencurve.spectrum.files import SUFFIXES
from eigencurve.spectrum.groups import extra_term, group
from eigencurve.spectrum.source import SpectrumSource, input_lines, law_source, zoo_source
from eigencurve.spectrum.zoo import ZOO
from eigencurve.studio import texts
from eigencurve.studio.elements import MOST_STEPS, draw_plan, message, plain, show_chart
from eigencurve.studio.launch import MOST_MEGABYTES
from eigencurve.studio.losses import LossCurves, loss_curves
from eigencurve.studio.uploads import PLANS_KEPT, SECONDS_KEPT, uploaded_source

ZOO_SOURCE, LAW_SOURCE, FILE_SOURCE = "Measured networks (zoo)", "Power law", "Your own file"
# Labels of the settings, by the arguments that messages mention.
LABELS = {
    "weight_decay": "Weight decay",
    "total_steps": "Steps",
    "lr": "Peak learning rate",
    "momentum": "Momentum",
    "nesterov": "Nesterov momentum",
    "noise": "Gradient noise σ²",
    "kappa": "Condition number κ",
}


@dataclass(frozen=True)
class SpectrumChoice:
    """The spectrum in the sidebar: one of the zoo, the numbers of a power law, or the content of a file."""

    name: str = ""
    content: bytes = b""
    alpha: float = 0.0
    kappa: float = 0.0


@dataclass(frozen=True)
class Run:
    """The training run in the sidebar, by the arguments of :func:`eigencurve.plan`; None is its default."""

    total_steps: int
    lr: float | None
    noise: float | None
    momentum: float | None
    nesterov: bool


def spectrum_page() -> None:
    """Draw the whole page."""
    st.title("eigencurve studio", anchor=False)
    st.markdown(texts.INTRODUCTION)
    with st.sidebar:
        choice, weight_decay = _spectrum_controls()
        run = _run_controls()
    if choice is None:
        st.info(texts.NO_FILE)
        return
    try:
        answer, curves = _plan(choice, weight_decay, run)
    except (TypeError, ValueError) as error:
        st.error(message(error, LABELS))
        return
    draw_plan(answer)
    if answer.spectrum is not None:
        _spectrum(answer.spectrum)
        _curves(answer, curves)
        for line in input_lines(answer.spectrum):
            st.caption(line)
    st.caption(texts.SHARED_WITHOUT_FILE if choice.content else texts.SHARED)


@st.cache_resource(max_entries=PLANS_KEPT, ttl=SECONDS_KEPT, show_spinner=texts.PLANNING)
def _plan(choice: SpectrumChoice, weight_decay: float | None, run: Run) -> tuple[Plan, LossCurves]:
    source = _source(choice, weight_decay)
    answer = plan(source, **vars(run))
    return answer, loss_curves(answer, source)


def _source(choice: SpectrumChoice, weight_decay: float | None) -> SpectrumSource:
    if choice.content:
        return uploaded_source(choice.name, choice.content, weight_decay)
    if choice.name:
        return zoo_source(choice.name, weight_decay)
    return law_source(choice.alpha, choice.kappa, weight_decay)


def _spectrum_controls() -> tuple[SpectrumChoice | None, float | None]:
    """The chosen spectrum, None while a file is missing, and the weight decay, None for that of the measurement."""
    st.header("Spectrum", anchor=False)
    sources = (ZOO_SOURCE, LAW_SOURCE, FILE_SOURCE)
    source = st.selectbox("Source", sources, key="source", bind="query-params", help=texts.HELP["source"])
    choice: SpectrumChoice | None = None
    if source == ZOO_SOURCE:
        name = st.selectbox("Measured spectrum", tuple(ZOO), key="zoo", bind="query-params", help=texts.HELP["zoo"])
        st.caption(f"{ZOO[name].network}; {ZOO[name].data}.")
        choice = SpectrumChoice(name)
    elif source == LAW_SOURCE:
        alpha = st.slider(
            "Exponent α", -1.0, 4.0, 1.5, 0.05, key="alpha", bind="query-params", help=texts.HELP["alpha"]
        )
        kappa = st.number_input(
            LABELS["kappa"], 1.001, 1e15, 1e5, format="%g", key="kappa", bind="query-params", help=texts.HELP["kappa"]
        )
        choice = SpectrumChoice(alpha=alpha, kappa=kappa)
    else:
        kinds = [PurePath(suffix).suffix or suffix for suffix in SUFFIXES]
        sent = st.file_uploader(
            "Spectrum file", kinds, key="file", help=texts.HELP["file"], max_upload_size=MOST_MEGABYTES
        )
        choice = None if sent is None else SpectrumChoice(sent.name, sent.getvalue())
    return choice, _number("weight_decay", 0.0, 1e3, "that of the measurement")


def _run_controls() -> Run:
    st.header("Training run", anchor=False)
    steps = st.number_input(
        LABELS["total_steps"], 2, MOST_STEPS, 39_100, key="total_steps", bind="query-params",
        help=texts.HELP["total_steps"],
    )  # fmt: skip
    lr = _number("lr", 1e-12, 1e6, "recommended")
    momentum = _number("momentum", 0.0, 0.999, "none; β₁ = 0.9 for Adam")
    nesterov = st.toggle(LABELS["nesterov"], key="nesterov", bind="query-params", help=texts.HELP["nesterov"])
    noise = _number("noise", 0.0, 1e12, "measured, or else assumed")
    return Run(steps, lr, noise, momentum, nesterov)


def _number(name: str, least: float, most: float, unset: str) -> float | None:
    """A field for a number, which may be empty."""
    return st.number_input(
        LABELS[name], least, most, None, format="%g", key=name, bind="query-params", placeholder=unset,
        help=texts.HELP[name],
    )  # fmt: skip


def _spectrum(source: SpectrumSource) -> None:
    st.header("Curvature of the loss", anchor=False)
    show_chart(octaves_chart(group(source.prepared, beta=2.0)), "octaves")
    spectrum = source.spectrum
    size = "" if spectrum.dim is None else f" of {spectrum.dim:,} parameters"
    facts = (
        f"{source.name}, {len(spectrum):,} eigenvalues{size}, from {spectrum.mu:.3g} to {spectrum.L:.4g}, condition "
        f"number {spectrum.kappa:.3g}, extra term {extra_term(source.prepared):.2f}{source.negative_text}."
    )
    st.caption(f"{texts.SPECTRUM} {plain(facts)}")


def _curves(answer: Plan, curves: LossCurves) -> None:
    st.header("Learning rates", anchor=False)
    show_chart(schedules_chart({row.label: row.schedule for row in answer.table.rows}), "rates")
    st.caption(texts.RATES)
    st.header("Expected losses", anchor=False)
    show_chart(losses_chart(curves.marks, curves.losses, curves.bound), "losses")
    st.caption(texts.NO_BOUND if curves.bound is None else texts.BOUND)
