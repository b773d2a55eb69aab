"""The page's script as Streamlit runs it, without a browser."""

import re
import time
from html import unescape

from streamlit.testing.v1 import AppTest

from eigencurve.studio import texts
from eigencurve.studio.launch import APP

SMALL = {"epochs": "10", "steps_per_epoch": "50"}
# A spectrum of the zoo without measured noise or start, so the page has a slider for the noise.
UNMEASURED = "resnet18_cifar10"


def opened(**params):
    page = AppTest.from_file(str(APP), default_timeout=120)
    for name, value in {**SMALL, **params}.items():
        page.query_params[name] = value
    return page.run()


def tables(page):
    """Every table of the page: its rows, as lists of words."""
    for block in page.get("html"):
        rows = re.findall("<tr[^>]*>(.*?)</tr>", block.proto.body)
        if rows:
            yield [[unescape(cell) for cell in re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def losses(page):
    """The loss column of the table of schedules."""
    head, *rows = next(table for table in tables(page) if table[0][0] == "schedule" and "loss behind" not in table[0])
    return {row[0]: row[head.index("loss")] for row in rows}


def plan_table(page):
    """The table of the verdict, or None while it is being computed."""
    return next((table for table in tables(page) if "loss behind" in table[0]), None)


def computing(page):
    """Whether the verdict is being computed."""
    return any(info.value == texts.PLANNING for info in page.info)


def with_verdict(page):
    """The page once its verdict is known."""
    end = time.monotonic() + 240
    while computing(page):
        assert time.monotonic() < end
        time.sleep(0.1)
        page.run()
    assert not page.exception
    return page


def shown(page):
    """All text and captions of the page, without the escapes of Markdown."""
    return "\n".join(part.value for part in (*page.markdown, *page.caption, *page.warning)).replace("\\", "")


def settings_of(page):
    """What the page's address says; the small run's own settings are not the defaults."""
    values = page.query_params.items()
    return {name: value if isinstance(value, str) else value[-1] for name, value in values}
