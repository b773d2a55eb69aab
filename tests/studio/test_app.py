"""The page's script as Streamlit runs it, without a browser."""

import time

import pytest
from tests.studio.drawn import losses_of
from tests.studio.opened import losses, opened, tables

from eigencurve.planning import subject
from eigencurve.studio import texts, view
from eigencurve.studio.state import KINDS, Settings


@pytest.fixture(scope="module")
def page():
    return opened()


def test_opens_with_numbers_and_without_messages(page):
    assert not page.exception
    assert not page.error
    assert not page.warning
    assert next(metric.label for metric in page.metric) == "Condition number κ"
    assert losses(page) == losses_of(Settings(epochs=10, steps_per_epoch=50))
    assert len(page.get("plotly_chart")) == 3
    assert len(next(tables(page))) == 1 + 19
    assert "ec.eigencurve(spectrum, total_steps=500" in page.code[0].value
    shown = [caption.value for caption in page.caption]
    assert "Noise: assumed, σ² = 10,000; measure it with `eigencurve estimate --noise`" in shown
    assert "Start: assumed, initial error 1 in every direction" in shown


def test_a_file_is_asked_for():
    page = opened(source="upload")
    assert not page.exception
    assert page.info[0].value == texts.NO_FILE
    assert not page.get("plotly_chart")


def test_divergence_is_explained():
    page = opened(scale="given")
    assert set(losses(page).values()) == {"diverges"}
    assert "2/L" in page.warning[0].value
    page = opened(scale="given", momentum="0.9")
    assert "2(1+m)/L" in page.warning[0].value


def wait_for_the_best(page):
    """Run the page until the search has ended; the schedule that it found heads the table."""
    end = time.monotonic() + 120
    while "Numerically best" not in losses(page):
        assert time.monotonic() < end
        time.sleep(0.05)
        page.run()
    assert not page.exception
    assert next(iter(losses(page))) == "Numerically best"


def test_the_best_schedule_is_searched_for_in_the_background():
    page = opened(best="1", schedules=",".join(KINDS[:2]))
    wait_for_the_best(page)
    page.selectbox(key="take").set_value("best").run()
    assert 'Path("best.json")' in page.code[0].value


def test_with_momentum_there_is_no_bound():
    page = opened(momentum="0.9", nesterov="1", best="1", schedules="cosine")
    wait_for_the_best(page)
    assert texts.NO_BOUND in [caption.value for caption in page.caption]
    assert all("÷ bound" not in table[0] for table in tables(page))


def test_code_for_each_framework():
    page = opened(schedules="cosine")
    for framework in ("torch", "lightning", "transformers", "keras", "optax"):
        page.radio(key="set_framework").set_value(framework).run()
        assert not page.exception
        assert "schedule = ec.cosine(total_steps=500, lr=0.1)" in page.code[0].value
        assert f"eigencurve.adapters.{framework}" in page.code[0].value


def test_a_redraw_builds_its_problem_once_and_reads_the_zoo_once(monkeypatch):
    """A new name is read once however often the page is drawn; a drawing builds one quadratic."""
    problems, files = [], []
    build, read = view.quadratic_of, subject.zoo_file
    monkeypatch.setattr(view, "quadratic_of", lambda *a, **k: problems.append(a) or build(*a, **k))
    monkeypatch.setattr(subject, "zoo_file", lambda name: files.append(name) or read(name))
    subject._zoo_file.cache_clear()
    page = opened(best="1")
    assert len(problems) == 1
    page.select_slider(key="set_noise").set_value(1.0).run()
    assert not page.exception
    assert len(problems) == 2
    assert files == ["resnet20_cifar10"]
