"""The verdict at the top of both pages: which schedule to use, computed in the background."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from eigencurve.planning.render import BASIS, TABLE, input_cells, table_cells
from eigencurve.planning.result import Plan
from eigencurve.planning.spectrum import plan_from_spectrum
from eigencurve.spectrum.source import SpectrumSource
from eigencurve.studio import texts
from eigencurve.studio.elements import download_buttons
from eigencurve.studio.tables import html_table

# Seconds between checks whether an answer is known.
POLL_SECONDS = 0.5
# Code with more characters than this has its schedule in a file.
MOST_CODE = 3000
# What is shown of the previous settings is pale.
PALE = "<style>.st-key-earlier_verdict{opacity:.45}</style>"


def spectrum_plan(
    subject: SpectrumSource, total_steps: int, lr: float, noise: float | None, momentum: float, nesterov: bool
) -> Plan:
    """The plan for a spectrum, in the metric that it was measured in; only SGD has Nesterov momentum."""
    nesterov = nesterov and subject.optimizer == "sgd"
    return plan_from_spectrum(subject, total_steps, lr=lr, noise=noise, momentum=momentum or None, nesterov=nesterov)


def verdict(ask: Callable[[], Plan | None], framework: str, page: str) -> None:
    """Draw the verdict, or that of the previous settings while the new one is being computed.

    Args:
        ask: Returns the plan, or None while it is being computed.
        framework: Framework of the code.
        page: Name of the page, under which its latest plan is remembered.
    """
    with st.container(border=True):
        st.subheader(texts.VERDICT, anchor=False)
        try:
            plan = ask()
        except ValueError as error:
            st.error(texts.plain(str(error)))
            return
        if plan is not None:
            st.session_state[f"{page}_plan"] = plan
            _plan(plan)
            _use(plan, framework)
            return
        _computing(ask)
        earlier = st.session_state.get(f"{page}_plan")
        if earlier is not None:
            st.html(PALE)
            with st.container(key="earlier_verdict"):
                _plan(earlier)


@st.fragment(run_every=POLL_SECONDS)
def _computing(ask: Callable[[], Plan | None]) -> None:
    """Redraw the page once the answer is known, or has failed."""
    try:
        known = ask() is not None
    except ValueError:
        known = True
    if known:
        st.rerun()
    st.info(texts.PLANNING)


def _plan(plan: Plan) -> None:
    st.markdown(texts.with_commands(plan.verdict))
    place = [row.name for row in plan.table.rows].index(plan.name)
    st.html(html_table(_dicts(*table_cells(plan)), marked=place))
    st.caption(f"{TABLE}.")
    if plan.warnings:
        st.warning("\n".join(f"- {texts.with_commands(sentence)}" for sentence in plan.warnings))
    with st.expander(BASIS):
        st.html(html_table(_dicts(*input_cells(plan)), wrap=True))


def _use(plan: Plan, framework: str) -> None:
    with st.expander(texts.USE_RECOMMENDED.format(name=plan.label)):
        download_buttons(plan.schedule, "recommended")
        code = plan.code(framework)
        if len(code) <= MOST_CODE:
            own = ", with your optimizer" if plan.optimizer is None else ""
            st.caption(f"Code that trains with this schedule{own}:")
            st.code(code, language="python")


def _dicts(columns: list[str], rows: list[list[str]]) -> list[dict[str, str]]:
    return [dict(zip(columns, cells, strict=True)) for cells in rows]
