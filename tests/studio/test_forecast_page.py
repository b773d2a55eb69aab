"""The page about forecasts as Streamlit runs it, without a browser."""

import json

import pytest

pytest.importorskip("streamlit", reason="Streamlit is not installed")

from streamlit.testing.v1 import AppTest
from tests.planning.logged import CONSTANT, COSINE, LR, log_text
from tests.studio.opened import shown, table

import eigencurve as ec
from eigencurve.forecast import fit_runs
from eigencurve.planning.logs import LogSettings
from eigencurve.studio import texts
from eigencurve.studio.uploads import uploaded_runs

SCRIPT = "from eigencurve.studio.forecast_page import forecast_page\nforecast_page()"
# The last logged step.
STEPS = 1980
FILES = [("constant.csv", log_text(CONSTANT).encode()), ("cosine.csv", log_text(COSINE).encode())]


def sent(files):
    page = AppTest.from_string(SCRIPT, default_timeout=300).run()
    page.file_uploader(key="logs").set_value([(name, content, "text/csv") for name, content in files])
    return page.run()


@pytest.fixture(scope="module")
def page():
    return sent(FILES)


@pytest.fixture(scope="module")
def forecast():
    return fit_runs(uploaded_runs(FILES, LogSettings()).runs)


def test_logs_are_asked_for():
    page = AppTest.from_string(SCRIPT, default_timeout=300).run()
    assert not page.exception
    assert page.info[0].value == texts.NO_LOGS
    assert not page.get("plotly_chart")


def test_opens_with_the_plan_of_the_library(page, forecast):
    assert not page.exception
    assert not page.error
    plan = ec.plan(forecast, total_steps=STEPS)
    assert plan.verdict in shown(page)
    assert table(page) == plan.table.columns()
    assert all(sentence in shown(page) for sentence in plan.warnings)
    assert len(page.get("plotly_chart")) == 2
    assert table(page, 2)["run"] == ["constant", "cosine"]
    assert table(page, 2)["losses"] == ["100", "100"]


def test_another_length_and_rate_change_the_plan(page, forecast):
    page.number_input(key=f"steps_{STEPS}").set_value(4000).run()
    assert ec.plan(forecast, total_steps=4000).verdict in shown(page)
    page.number_input(key="peak").set_value(0.8 * LR).run()
    assert ec.plan(forecast, total_steps=4000, lr=0.8 * LR).verdict in shown(page)
    page.number_input(key="peak").set_value(1000.0).run()
    assert "“Peak learning rate” must be" in shown(page)
    page.number_input(key="peak").set_value(None)
    page.number_input(key=f"steps_{STEPS}").set_value(STEPS).run()


def test_a_schedule_of_your_own(page, forecast):
    own = ec.plan(forecast, total_steps=STEPS).table["linear_0"].schedule
    page.file_uploader(key="own").set_value(("mine.json", json.dumps(own.to_dict()).encode(), "application/json"))
    page.run()
    assert not page.exception
    row = table(page, 2)["schedule"].index("mine.json")
    linear = table(page, 2)["schedule"].index("linear to 0")
    assert table(page, 2)["loss"][row] == table(page, 2)["loss"][linear]
    page.file_uploader(key="own").set_value(("mine.json", b"{]", "application/json"))
    page.run()
    assert len(page.error) == 1
    assert not page.exception


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bad.csv", b"a,b\n1,2\n", "bad.csv: no column of steps"),
        ("bad.csv", b"\xff\xfe\x00", "is not UTF"),
        ("bad.csv", FILES[0][1].replace(b"val_loss", b"train_loss"), "with the same loss"),
    ],
)
def test_a_bad_file_is_one_line(name, content, words):
    page = sent([FILES[0], (name, content)])
    assert not page.exception
    assert len(page.error) == 1
    assert words in shown(page)
    assert "\n" not in page.error[0].value
    assert not page.get("plotly_chart")
