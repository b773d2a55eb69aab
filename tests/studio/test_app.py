"""The page's script as Streamlit runs it, without a browser."""

import re
import time
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest
from tests.studio.drawn import losses_of

from eigencurve.planning import subject
from eigencurve.studio import texts, view
from eigencurve.studio.launch import APP
from eigencurve.studio.state import KINDS, Settings, to_params

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


def test_a_moved_slider_shows_the_librarys_numbers():
    page = opened()
    page.select_slider(key="set_noise").set_value(0.0).run()
    page.select_slider(key="set_beta").set_value(1.0).run()
    assert not page.exception
    settings = Settings(epochs=10, steps_per_epoch=50, noise=0.0, beta=1.0)
    assert losses(page) == losses_of(settings)
    assert settings_of(page) == to_params(settings)


def test_the_address_restores_every_setting():
    settings = Settings(
        source="power_law", alpha=0.7, kappa=12345.0, weight_decay=0.003, epochs=3, steps_per_epoch=70, lr=0.03,
        min_lr=0.0007, beta=1.000005, allocation="optimal", noise=33.0, scale="given",
        schedules=("linear", "eigencurve", "wsd"), axis="log", framework="optax",
    )  # fmt: skip
    page = opened(**to_params(settings))
    assert not page.exception
    assert not page.warning
    assert losses(page) == losses_of(settings)
    assert settings_of(page) == to_params(settings)
    assert page.radio(key="set_framework").value == "optax"
    assert page.number_input(key="set_min_lr").value == 0.0007
    page.radio(key="set_axis").set_value("linear").run()
    assert settings_of(page) == {k: v for k, v in to_params(settings).items() if k != "axis"}


def test_a_bad_address_has_messages_and_defaults():
    page = opened(lr="![x](http://example.org/x.png)", noise="1e99", colour="red")
    assert not page.exception
    shown = [warning.value for warning in page.warning]
    assert len(shown) == 3
    assert "![x]" not in "".join(shown)  # what the address says is text, not an image
    assert losses(page) == losses_of(Settings(epochs=10, steps_per_epoch=50))
    page.select_slider(key="set_noise").set_value(1.0).run()
    assert not page.warning


def test_settings_that_do_not_go_together():
    page = opened()
    page.checkbox(key="set_free").uncheck().run()
    page.number_input(key="set_min_lr").set_value(0.5).run()
    assert not page.exception
    assert "min\\_lr" in page.error[0].value
    page.number_input(key="set_min_lr").set_value(0.05).run()
    assert not page.error
    assert losses(page) == losses_of(Settings(epochs=10, steps_per_epoch=50, min_lr=0.05))


def test_a_hidden_slider_keeps_its_value():
    page = opened(source="power_law", alpha="0.65")
    page.selectbox(key="set_source").set_value("zoo").run()
    assert page.selectbox(key="set_zoo").value == "resnet20_cifar10"
    page.selectbox(key="set_source").set_value("power_law").run()
    assert page.slider(key="set_alpha").value == 0.65


def test_a_file_is_asked_for():
    page = opened(source="upload")
    assert not page.exception
    assert page.info[0].value == texts.NO_FILE
    assert not page.get("plotly_chart")


def test_no_schedule_chosen():
    page = opened()
    page.multiselect(key="set_schedules").set_value([]).run()
    assert not page.exception
    assert texts.NO_SCHEDULE in [caption.value for caption in page.caption]
    assert list(losses(page)) == ["Eigencurve"]


def test_divergence_is_explained():
    page = opened(scale="given")
    assert set(losses(page).values()) == {"diverges"}
    assert "2/L" in page.warning[0].value


def test_the_best_schedule_is_searched_for_in_the_background():
    page = opened(best="1", schedules=",".join(KINDS[:2]))
    end = time.monotonic() + 120
    while "Numerically best" not in losses(page):
        assert time.monotonic() < end
        time.sleep(0.05)
        page.run()
    assert not page.exception
    assert next(iter(losses(page))) == "Numerically best"
    page.selectbox(key="take").set_value("best").run()
    assert 'Path("best.json")' in page.code[0].value


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
    build, read = view.NoisyQuadratic, subject.zoo_spectrum
    monkeypatch.setattr(view, "NoisyQuadratic", lambda *a, **k: problems.append(a) or build(*a, **k))
    monkeypatch.setattr(subject, "zoo_spectrum", lambda name: files.append(name) or read(name))
    subject._zoo_spectrum.cache_clear()
    page = opened(best="1")
    assert len(problems) == 1
    page.select_slider(key="set_noise").set_value(1.0).run()
    assert not page.exception
    assert len(problems) == 2
    assert files == ["resnet20_cifar10"]
