"""Elements that the pages share: charts and downloads."""

from __future__ import annotations

from typing import Any

import streamlit as st

from eigencurve._files import json_bytes
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.kinds import csv_bytes
from eigencurve.studio import texts

# The largest number of lines in a CSV file.
MOST_LINES = 1_000_000
# No toolbar over the curves: dragging zooms in, a double click zooms out.
CHART = {"displayModeBar": False}


def show_chart(figure: Any, key: str) -> None:
    """Draw a plotly figure."""
    st.plotly_chart(figure, key=key, config=CHART)


def about_rate(line: str, fine: bool = True) -> None:
    """Draw a line about a rate; in colour and with a mark if the rate is too high."""
    if fine:
        st.caption(texts.plain(line))
    else:
        st.markdown(f":small[:orange[:material/warning: {texts.plain(line)}]]")


def download_buttons(schedule: Schedule, name: str) -> None:
    """Draw two buttons that download a schedule as ``name.json`` and ``name.csv``."""
    left, right = st.columns(2)
    left.download_button(
        "Download JSON", json_bytes(schedule.to_dict()), f"{name}.json", "application/json", on_click="ignore",
        help=texts.HELP["json"], width="stretch",
    )  # fmt: skip
    right.download_button(
        "Download CSV", lambda: csv_bytes(schedule), f"{name}.csv", "text/csv", on_click="ignore",
        help=texts.HELP["csv"], width="stretch", disabled=schedule.total_steps > MOST_LINES,
    )  # fmt: skip
