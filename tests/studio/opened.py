"""The page's script as Streamlit runs it, without a browser."""

import re
from html import unescape

from streamlit.testing.v1 import AppTest

from eigencurve.studio.launch import APP

SMALL = {"epochs": "10", "steps_per_epoch": "50"}


def opened(**params):
    page = AppTest.from_file(str(APP), default_timeout=120)
    for name, value in {**SMALL, **params}.items():
        page.query_params[name] = value
    return page.run()


def tables(page):
    """Every table of the page: its rows, as lists of words."""
    for block in page.get("html"):
        rows = re.findall("<tr>(.*?)</tr>", block.proto.body)
        yield [[unescape(cell) for cell in re.findall("<t[hd]>(.*?)</t[hd]>", row)] for row in rows]


def losses(page):
    """The loss column of the table of schedules."""
    head, *rows = next(table for table in tables(page) if table[0][0] == "schedule")
    return {row[0]: row[head.index("loss")] for row in rows}


def settings_of(page):
    """What the page's address says; the small run's own settings are not the defaults."""
    values = page.query_params.items()
    return {name: value if isinstance(value, str) else value[-1] for name, value in values}
