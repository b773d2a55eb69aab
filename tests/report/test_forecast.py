import dataclasses
import re

import pytest
from tests.planning.logged import runs
from tests.report.test_page import tree

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.forecast import LoggedRun
from eigencurve.planning.forecasts import forecast_view
from eigencurve.planning.from_runs import plan_from_view
from eigencurve.report.forecast import forecast_page


@pytest.fixture(scope="module")
def view():
    first, second = runs()
    odd = LoggedRun(second.steps, second.losses, second.schedule, "<i>cosine</i>", second.metric)
    return forecast_view([first, odd], best=True)


@pytest.fixture(scope="module")
def whole(view):
    return forecast_page(view, plan_from_view(view), ["the rate is <unknown>"], "eigencurve fit <x>")


def test_the_page_stands_alone_and_is_one_tree(whole):
    assert "http" not in whole
    assert "<script" not in whole
    assert not re.search(r"url\((?!#)", whole)
    tree(whole)
    names = re.findall(r'\bid="([^"]+)"', whole)
    assert len(names) == len(set(names))


def test_the_verdict_comes_first(whole, view):
    titles = re.findall("<h2[^>]*>(.*?)</h2>", whole)
    assert titles[:4] == ["Which schedule to use", "Schedules in comparison", "The curves", "The best schedule"]
    assert titles[4:] == ["What it is based on", "Settings and versions"]
    verdict = whole.index('<p class="verdict">' + plan_from_view(view).verdict)
    assert verdict < whole.index("<nav") < whole.index("Schedules in comparison</h2>")


def test_every_figure_of_rates_says_which(whole, view):
    captions = re.findall("<figcaption>(.*?)</figcaption>", whole)
    assert sum(f"peak rate {view.peak_lr:.4g}" in caption for caption in captions) == len(captions) - 1 == 3


def test_texts_are_escaped(whole):
    assert "&lt;i&gt;cosine&lt;/i&gt;" in whole
    assert "the rate is &lt;unknown&gt;" in whole
    assert "eigencurve fit &lt;x&gt;" in whole


def test_without_a_search_there_is_no_best_schedule(view):
    rows = tuple(row for row in view.table.rows if row.name != "best found")
    table = dataclasses.replace(view.table, rows=rows)
    page = forecast_page(dataclasses.replace(view, best=None, table=table), plan_from_view(view))
    assert "The best schedule" not in page
    assert "best found" not in page


def test_doubts_are_part_of_the_answer():
    view = forecast_view(runs()[:1])
    page = forecast_page(view, plan_from_view(view))
    answer = page[: page.index("Schedules in comparison</h2>")]
    assert "contain no information about decay" in answer
