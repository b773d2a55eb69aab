"""The page's script as Streamlit runs it, without a browser."""

import time

import pytest
from tests.studio.drawn import losses_of, view_of
from tests.studio.opened import UNMEASURED, losses, opened, plan_table, shown, tables, with_verdict

import eigencurve as ec
from eigencurve.planning.render import table_cells
from eigencurve.planning.warnings import length_warning, rate_limit
from eigencurve.spectrum import source
from eigencurve.studio import texts, view
from eigencurve.studio.state import KINDS, Settings


@pytest.fixture(scope="module")
def page():
    return opened(zoo=UNMEASURED)


def test_opens_with_numbers_and_without_messages(page):
    assert not page.exception
    assert not page.error
    assert next(metric.label for metric in page.metric) == "Condition number κ"
    settings = Settings(zoo=UNMEASURED, epochs=10, steps_per_epoch=50)
    assert losses(page) == losses_of(settings)
    assert len(page.get("plotly_chart")) == 3
    intervals = view_of(settings).curves.intervals
    assert [len(table) for table in tables(page) if table[0][0] == "eigenvalues"] == [1 + len(intervals)]
    assert "ec.eigencurve(spectrum, total_steps=500" in page.code[-1].value
    shown = [caption.value for caption in page.caption]
    assert "Noise: assumed, σ² = 10,000; measure it with `eigencurve estimate --noise`" in shown
    assert "Start: assumed, initial error 1 in every direction" in shown


def test_opens_with_the_verdict_and_a_moved_slider_changes_it(page):
    with_verdict(page)
    first = ec.plan(UNMEASURED, total_steps=500, lr=0.1)
    assert first.verdict in shown(page)
    assert plan_table(page)[1:] == table_cells(first)[1]
    assert next(tables(page)) == plan_table(page)
    assert all(sentence in shown(page) for sentence in first.warnings)
    page.select_slider(key="set_noise").set_value(1.0).run()
    second = ec.plan(UNMEASURED, total_steps=500, lr=0.1, noise=1.0)
    with_verdict(page)
    assert second.verdict in shown(page)
    assert first.verdict not in shown(page)
    page.select_slider(key="set_noise").set_value(1e4).run()


def test_every_rate_has_its_limit_and_every_chart_its_rate():
    page, known = opened(), source.zoo_source("resnet20_cifar10")
    limit = rate_limit(known)
    assert f":material/warning: {limit.about(0.1)}." in shown(page)
    assert f":material/warning: Peak rate {limit.about(0.1)}." in shown(page)
    assert f"at its own best peak rate, up to {limit.rate:.3g}" in shown(page)
    page.number_input(key="set_lr").set_value(0.005).run()
    assert f":material/warning: {limit.about(0.1)}." not in shown(page)
    assert f"Peak rate 0.005; {limit}." in shown(page)
    assert "Largest stable rate 2/L" in shown(page)
    page.radio(key="set_scale").set_value("theory").run()
    assert f"the peak rate {limit.rate / 2:.3g}, half of the {limit}." in shown(page)
    page.radio(key="set_scale").set_value("given").run()
    assert shown(page).count(f"Peak rate 0.005; {limit}.") == 2
    page.radio(key="set_momentum_choice").set_value("0.9").run()
    assert not page.exception
    assert f"Peak rate 0.005; {rate_limit(known, 'sgd', 0.9)}." in shown(page)


def test_an_unsettled_estimate_has_a_notice():
    name = "googlenet_cifar10_narrow16"
    known = source.zoo_source(name)
    assert "has not settled (100 products" in known.measurement.warning
    assert known.measurement.warning in shown(opened(zoo=name))
    assert not source.zoo_source("resnet20_cifar10").measurement.warning
    assert "has not settled (" not in shown(opened())


def test_a_run_too_short_to_decay_has_a_notice():
    doubt = length_warning(source.law_source(1.5, 1e6), 50)
    assert "only falls to" in doubt
    law = {"source": "power_law", "alpha": "1.5", "kappa": "1e6", "epochs": "1"}
    assert doubt in shown(opened(**law))
    assert doubt not in shown(opened(**law, min_lr="0.001"))
    assert doubt not in shown(opened(**law, schedules="cosine"))


def test_the_best_classic_schedules_are_shown_by_default(page):
    assert set(losses(page)) == {
        "Eigencurve", "Linear", "WSD, linear tail", "WSD, 1-sqrt tail", "Elastic step decay", "Cosine"
    }  # fmt: skip


def test_a_file_is_asked_for():
    page = opened(source="upload")
    assert not page.exception
    assert page.info[0].value == texts.NO_FILE
    assert not page.get("plotly_chart")


def test_divergence_is_explained():
    page = opened(scale="given")
    assert set(losses(page).values()) == {"diverges"}
    assert any("diverges" in warning.value and "2/L" in warning.value for warning in page.warning)
    page = opened(scale="given", momentum="0.9")
    assert any("diverges" in warning.value and "2(1+m)/L" in warning.value for warning in page.warning)


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
    assert 'Path("best.json")' in page.code[-1].value


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
        assert "schedule = ec.cosine(total_steps=500, lr=0.1)" in page.code[-1].value
        assert f"eigencurve.adapters.{framework}" in page.code[-1].value


def test_a_redraw_builds_its_problem_once_and_reads_the_zoo_once(monkeypatch):
    """A new name is read once however often the page is drawn; a drawing builds one quadratic."""
    problems, files = [], []
    build, read = view.quadratic_of, source.zoo_file
    monkeypatch.setattr(view, "quadratic_of", lambda *a, **k: problems.append(a) or build(*a, **k))
    monkeypatch.setattr(source, "zoo_file", lambda name: files.append(name) or read(name))
    source._zoo_file.cache_clear()
    page = opened(zoo=UNMEASURED, best="1")
    assert len(problems) == 1
    page.select_slider(key="set_noise").set_value(1.0).run()
    assert not page.exception
    assert len(problems) == 2
    assert files == [UNMEASURED]
