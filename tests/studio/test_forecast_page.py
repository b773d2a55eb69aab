"""The page about forecasts as Streamlit runs it, without a browser."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from tests.planning.logged import CONSTANT, COSINE, LR, RISE, STEPS, log_text
from tests.studio.opened import losses, plan_table, shown, tables, with_verdict

from eigencurve import linear, warmup
from eigencurve.planning.forecasts import LogSettings, forecast_view, plan_from_view
from eigencurve.planning.render import table_cells
from eigencurve.studio import texts
from eigencurve.studio.logs import read_logs

SCRIPT = Path(__file__).with_name("forecast_script.py")
FILES = [("constant.csv", log_text(CONSTANT).encode()), ("cosine.csv", log_text(COSINE).encode())]


def sent(files):
    page = AppTest.from_file(str(SCRIPT), default_timeout=300).run()
    page.file_uploader(key="logs").set_value([(name, content, "text/csv") for name, content in files])
    return with_verdict(page.run())


@pytest.fixture(scope="module")
def page():
    return sent(FILES)


def test_logs_are_asked_for():
    page = AppTest.from_file(str(SCRIPT), default_timeout=300).run()
    assert not page.exception
    assert page.info[0].value == texts.NO_LOGS
    assert not page.get("plotly_chart")


def test_the_numbers_are_the_librarys(page):
    assert not page.exception
    assert not page.error
    view = forecast_view(read_logs(FILES, LogSettings()).runs, best=True)
    expected = {row.name + " *" * bool(row.beyond): f"{row.loss:.4f}" for row in view.table.rows}
    assert losses(page) == expected
    assert len(page.get("plotly_chart")) == 3
    runs = next(table for table in tables(page) if table[0][0] == "run")
    assert runs[1][:4] == ["constant", "val_loss", "100", "1,980"]
    assert 'Path("best.json")' in page.code[-1].value


def test_opens_with_the_verdict_and_another_length_changes_it(page):
    loaded = read_logs(FILES, LogSettings()).runs
    plan = plan_from_view(forecast_view(loaded, best=True))
    assert plan.verdict in shown(page)
    assert all(sentence in shown(page) for sentence in plan.warnings)
    assert next(tables(page)) == plan_table(page)
    assert plan_table(page)[1:] == table_cells(plan)[1]
    usual = page.number_input(key="plan_steps_1980")
    usual.set_value(4000).run()
    with_verdict(page)
    other = plan_from_view(forecast_view(loaded, 4000, best=True))
    assert other.verdict in shown(page)
    assert plan.verdict not in shown(page)
    page.number_input(key="plan_steps_1980").set_value(1980).run()
    with_verdict(page)


def test_a_rate_that_was_not_logged_is_pointed_out(page):
    assert "Logged peak rates: 0.01." in shown(page)
    assert shown(page).count("Peak rate 0.01.") == 2
    rate = page.number_input(key="plan_peak_0.01")
    rate.set_value(0.02).run()
    assert not page.exception
    assert "0.02 is outside the logged peak rates, 0.01" in shown(page)
    page.number_input(key="plan_peak_0.01").set_value(0.01).run()
    with_verdict(page)


def test_a_schedule_of_your_own(page):
    page.selectbox(key="own_kind").set_value("hold, then decay linearly").run()
    page.slider(key="own_tail").set_value(50).run()
    assert not page.exception
    own = next(name for name in losses(page) if name.startswith("your own"))
    tail = next(name for name in losses(page) if name.startswith("WSD, last 40 %"))
    assert float(losses(page)[own]) == pytest.approx(float(losses(page)[tail]), abs=0.02)

    page.selectbox(key="own_kind").set_value("from a file (.json)").run()
    saved = json.dumps(warmup(linear(STEPS - RISE, LR), RISE).to_dict()).encode()
    page.file_uploader(key="own_file").set_value(("mine.json", saved, "application/json"))
    page.run()
    own = next(name for name in losses(page) if name.startswith("your own"))
    assert float(losses(page)[own]) == pytest.approx(float(losses(page)["linear to 0"]), abs=0.005)

    page.file_uploader(key="own_file").set_value(("mine.json", b"{]", "application/json"))
    page.run()
    assert len(page.error) == 1
    assert not page.exception


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.csv", b"a,b\n1,2\n", "no column of steps"),
        ("bad.csv", b"\xff\xfe\x00", "is not UTF"),
        ("bad.csv", FILES[0][1].replace(b"val_loss", b"train_loss"), "must record the same loss"),
    ],
)
def test_a_bad_file_is_one_line(name, content, message):
    page = sent([FILES[0], (name, content)])
    assert not page.exception
    assert len(page.error) == 1
    assert message.replace(" ", "") in page.error[0].value.replace("\\", "").replace(" ", "")
    assert "\n" not in page.error[0].value
    assert not page.get("plotly_chart")
