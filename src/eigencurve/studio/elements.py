"""Elements that the pages share: a plan, charts, messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from eigencurve._check import ArgumentError, quoted
from eigencurve.planning.code import FRAMEWORKS, ScheduleCode, training_code
from eigencurve.planning.render import BASIS, TABLE, input_cells, table_cells
from eigencurve.planning.result import Plan
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.kinds import csv_bytes
from eigencurve.studio import texts

MOST_STEPS = 10_000_000
# The largest number of lines in a CSV file.
MOST_LINES = 1_000_000
# Code with more characters than this loads its schedule from a file.
MOST_CODE = 3000
# No toolbar over the curves: dragging zooms in, a double click zooms out.
CHART = {"displayModeBar": False}
# Characters that Markdown would interpret.
ESCAPED = {ord(character): f"\\{character}" for character in "\\`*_{}[]()#+-.!|<>~$:&"}


def draw_plan(plan: Plan, rows: Mapping[str, Schedule] | None = None) -> None:
    """Draw a plan: verdict, table, warnings and inputs; and a menu of its schedules, to download and as code.

    Args:
        plan: The plan.
        rows: Further schedules for the menu, by label.
    """
    with st.container(border=True, key="verdict"):
        st.subheader(texts.VERDICT, anchor=False)
        st.markdown(with_commands(plan.verdict))
        draw_table(*table_cells(plan))
        st.caption(f"{TABLE}.")
        if plan.warnings:
            st.warning("\n".join(f"- {with_commands(sentence)}" for sentence in plan.warnings))
        with st.expander(BASIS):
            st.caption(with_commands(plan.evidence.sentence))
            draw_table(*input_cells(plan))
        with st.expander(texts.USE_IT):
            _use(
                {plan.label: plan.schedule, **{row.label: row.schedule for row in plan.table.rows}, **(rows or {})},
                plan,
            )


def _use(schedules: Mapping[str, Schedule], plan: Plan) -> None:
    """A menu of schedules, with downloads and code of the chosen one."""
    label = str(st.selectbox("Schedule", tuple(schedules), key="schedule"))
    schedule = schedules[label]
    name = next((row.name for row in plan.table.rows if row.label == label), "schedule")
    left, right = st.columns(2)
    left.download_button(
        "Download JSON", json.dumps(schedule.to_dict(), indent=1), f"{name}.json", "application/json",
        on_click="ignore", help=texts.HELP["json"], width="stretch",
    )  # fmt: skip
    right.download_button(
        "Download CSV", lambda: csv_bytes(schedule), f"{name}.csv", "text/csv", on_click="ignore",
        help=texts.HELP["csv"], width="stretch", disabled=schedule.total_steps > MOST_LINES,
    )  # fmt: skip
    framework = str(st.radio("Code for", FRAMEWORKS, key="framework", horizontal=True))
    code = replace(plan, schedule=schedule).code(framework)
    if len(code) > MOST_CODE:
        st.caption(texts.LOAD_IT)
        code = training_code(framework, ScheduleCode.from_file(Path(f"{name}.json"), schedule, plan.training))
    st.code(code, language="python")


def draw_table(columns: list[str], rows: list[list[str]]) -> None:
    """Draw a table of plain text."""
    cells = zip(*rows, strict=True)
    st.table({name: [with_commands(cell) for cell in column] for name, column in zip(columns, cells, strict=True)})


def show_chart(figure: Any, key: str) -> None:
    """Draw a plotly figure."""
    st.plotly_chart(figure, key=key, config=CHART)


def message(error: Exception, labels: Mapping[str, str]) -> str:
    """The message of an error, with the labels of the fields in place of the arguments, for Markdown."""
    return plain(error.sentence(label_of(labels)) if isinstance(error, ArgumentError) else str(error))


def label_of(labels: Mapping[str, str]) -> Callable[[str], str]:
    """A function that spells an argument as the label of its field; one without a field as in Python.

    >>> print(label_of({"lr": "Peak learning rate"})("lr"), label_of({})("lr"))
    “Peak learning rate” 'lr'
    """
    return lambda name: f"“{labels[name]}”" if name in labels else quoted(name)


def plain(text: str) -> str:
    r"""Escape ``text`` so that Markdown shows it literally.

    >>> print(plain("see [here](http://a.b)"))
    see \[here\]\(http\://a\.b\)
    """
    return text.translate(ESCAPED)


def with_commands(text: str) -> str:
    r"""Escape ``text`` like :func:`plain`, except for commands in backticks, which stay code.

    >>> print(with_commands("Run `make_it` - now"))
    Run `make_it` \- now
    """
    return "`".join(part if place % 2 else plain(part) for place, part in enumerate(text.split("`")))
