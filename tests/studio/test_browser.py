"""The page as a person uses it: Debian's Chromium, driven by Selenium."""

import json
from urllib.parse import urlencode

import numpy as np
import pytest

pytest.importorskip("selenium", reason="selenium is not installed")

from tests.planning.logged import write_logs
from tests.studio import browser
from tests.studio.opened import UNMEASURED

import eigencurve as ec
from eigencurve.forecast import fit_runs, load_run
from eigencurve.studio import texts

pytestmark = pytest.mark.slow


SMALL = urlencode({"zoo": UNMEASURED, "total_steps": 500})
# The last logged step.
STEPS = 1980
OWN = ec.Spectrum([-0.01, 0.002, 0.1, 3.0], [1, 5, 3, 1], dim=10)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    browser.chromium()
    with browser.served(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="module")
def desktop(address, tmp_path_factory):
    with browser.window(address, tmp_path_factory.mktemp("desktop"), 1280, 900) as page:
        yield page


@pytest.fixture
def page(desktop):
    yield desktop
    assert desktop.severe() == []
    assert desktop.strangers() == []


def rows_of(plan):
    """The cells of the plan's table, as a browser shows them."""
    cells = zip(*plan.table.columns().values(), strict=True)
    return [[cell.replace("\u00a0", " ") for cell in row] for row in cells]


def cells(page):
    return [[cell.replace("\u00a0", " ") for cell in row] for row in page.table()]


def test_a_typed_value_changes_the_plan_and_the_address_restores_it(page):
    before, after = (ec.plan(UNMEASURED, total_steps=500, noise=noise) for noise in (None, 2e4))
    page.open(SMALL)
    page.until(lambda: page.verdict() == before.verdict, "the verdict")
    page.until(lambda: cells(page) == rows_of(before), "the table")
    page.type("noise", "20000")
    page.until(lambda: cells(page) == rows_of(after), "the table at the new noise")
    page.until(lambda: "noise=20000" in page.driver.current_url, "the address")
    link = page.driver.current_url
    page.open(SMALL)
    page.until(lambda: cells(page) == rows_of(before), "the plan of the first address")
    page.driver.get(link)
    page.until(lambda: cells(page) == rows_of(after), "the plan of the link")
    assert page.setting("noise").get_attribute("value") == "20000"


def test_the_downloads_are_the_schedule_and_the_desktop_has_no_overflow(page):
    page.open(SMALL)
    page.until(page.verdict, "the verdict")
    assert page.overflow() <= 0
    page.whole(1280)
    assert page.screenshot("desktop").stat().st_size > 10_000
    page.usual()
    page.until(lambda: _clicked(page, "summary", texts.USE_IT), "the schedules")
    plan = ec.plan(UNMEASURED, total_steps=500)
    name = f"{plan.name}.json"
    assert ec.schedule_from_dict(json.loads(page.download("JSON", name))) == plan.schedule
    head, *lines = page.download("CSV", f"{plan.name}.csv").decode().splitlines()
    steps, rates = zip(*(line.split(",") for line in lines), strict=True)
    assert head == "step,lr"
    assert [int(step) for step in steps] == list(range(500))
    assert np.array_equal([float(rate) for rate in rates], plan.schedule.values())


def test_a_good_file_and_a_bad_one(page, tmp_path):
    good, bad = tmp_path / "own spectrum.npz", tmp_path / "bad.txt"
    ec.save_spectrum(OWN, good)
    bad.write_text("1.0 0.5\n2.0 <b>half</b>\n")
    page.open(urlencode({"source": "Your own file", "weight_decay": 0.01, "total_steps": 500}))
    page.until(lambda: texts.NO_FILE in page.text(), "the question for a file")
    page.until(lambda: page.all("input[type=file]"), "the file input")[0].send_keys(str(good))
    plan = ec.plan(good, total_steps=500, weight_decay=0.01)
    page.until(lambda: cells(page) == rows_of(plan), "the plan of the file")
    assert "own spectrum.npz" in page.text()
    page.until(lambda: page.all("input[type=file]"), "the file input")[0].send_keys(str(bad))
    page.until(lambda: "two numbers per line" in page.text(), "the refusal")
    assert "line 2: '2.0 <b>half</b>'" in page.text()
    assert "Traceback" not in page.text()


def test_forecasts_from_two_logs_and_a_bad_one(page, tmp_path):
    good = write_logs(tmp_path)
    forecast = fit_runs([load_run(path) for path in good])
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    page.open(SMALL)
    page.until(page.verdict, "the first page")
    page.until(lambda: _clicked(page, "a", texts.FORECAST_TITLE), "the link to the page")
    page.until(lambda: "Two runs with different schedules" in page.text(), "the question for logs")
    page.until(lambda: page.all("input[type=file]"), "the file input")[0].send_keys("\n".join(map(str, good)))
    page.until(lambda: page.verdict() == ec.plan(forecast, total_steps=STEPS).verdict, "the verdict")
    assert page.overflow() <= 0
    page.whole(1280)
    page.screenshot("forecast")
    page.usual()
    page.type(f"steps_{STEPS}", "4000")
    page.until(lambda: page.verdict() == ec.plan(forecast, total_steps=4000).verdict, "the verdict for a longer run")
    page.until(lambda: page.all("input[type=file]"), "the file input")[0].send_keys(str(tmp_path / "bad.csv"))
    page.until(lambda: "bad.csv: no column of steps" in page.text(), "the refusal")


def _clicked(page, selector, label):
    next(element for element in page.all(selector) if label in element.text).click()
    return True


def test_the_dark_page(address, tmp_path):
    with browser.window(address, tmp_path, 1280, 900, dark=True) as page:
        page.open(SMALL)
        page.until(page.verdict, "the verdict")
        script = "return getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor"
        red, green, blue = (int(part) for part in page.driver.execute_script(script)[4:-1].split(",")[:3])
        assert max(red, green, blue) < 64
        page.whole(1280)
        page.screenshot("dark")
        assert page.severe() == []


def test_the_phone(address, tmp_path):
    with browser.window(address, tmp_path, 390, 844) as page:
        page.open(SMALL)
        page.until(page.verdict, "the verdict")
        assert page.top_of_verdict() < 844
        assert page.overflow() <= 0
        page.until(lambda: page.all('[data-testid="stExpandSidebarButton"]'), "the sidebar's button")[0].click()
        page.until(lambda: page.setting("noise").is_displayed(), "the sidebar")
        page.screenshot("phone-settings")
        page.driver.execute_script(
            "arguments[0].click()", page.all('[data-testid="stSidebarCollapseButton"] button')[0]
        )
        page.until(lambda: page.all('[data-testid="stExpandSidebarButton"]'), "the page alone")
        page.whole(390)
        page.screenshot("phone")
        assert page.severe() == []
        assert page.strangers() == []
