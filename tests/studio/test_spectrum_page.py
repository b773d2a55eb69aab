import pytest

pytest.importorskip("streamlit", reason="Streamlit is not installed")

from tests.studio.opened import UNMEASURED, opened, shown, table

import eigencurve as ec
from eigencurve.spectrum.source import law_source
from eigencurve.studio import texts


@pytest.fixture(scope="module")
def page():
    return opened(zoo=UNMEASURED)


def test_opens_with_the_plan_of_the_library(page):
    assert not page.exception
    assert not page.error
    plan = ec.plan(UNMEASURED, total_steps=500)
    assert plan.verdict in shown(page)
    assert table(page) == plan.table.columns()
    assert all(sentence in shown(page) for sentence in plan.warnings)
    assert table(page, 1)["input"] == [entry.name for entry in plan.inputs]
    assert len(page.get("plotly_chart")) == 3
    assert "Noise: assumed, σ² = 10,000; measure it with `eigencurve estimate --noise`" in shown(page)


def test_a_changed_setting_changes_the_plan(page):
    page.number_input(key="noise").set_value(1.0).run()
    page.number_input(key="lr").set_value(0.05).run()
    plan = ec.plan(UNMEASURED, total_steps=500, noise=1.0, lr=0.05)
    assert plan.verdict in shown(page)
    assert table(page) == plan.table.columns()
    page.number_input(key="noise").set_value(None).run()
    page.number_input(key="lr").set_value(None).run()
    assert ec.plan(UNMEASURED, total_steps=500).verdict in shown(page)


def test_the_address_holds_every_setting():
    law = {"source": "Power law", "alpha": "0.7", "kappa": "12345", "weight_decay": "0.003", "total_steps": "210"}
    page = opened(**law, lr="0.03", noise="33", momentum="0.7", nesterov="true")
    assert not page.exception
    plan = ec.plan(
        law_source(0.7, 12345.0, 0.003), total_steps=210, lr=0.03, noise=33.0, momentum=0.7, nesterov=True
    )  # fmt: skip
    assert plan.verdict in shown(page)
    assert table(page) == plan.table.columns()
    assert texts.NO_BOUND in shown(page)


def test_a_wrong_value_in_the_address_is_the_default():
    page = opened(zoo=UNMEASURED, lr="fast", noise="-1", colour="red")
    assert not page.exception
    assert ec.plan(UNMEASURED, total_steps=500).verdict in shown(page)


def test_an_error_names_the_label_of_the_field():
    page = opened(zoo=UNMEASURED, lr="100000")
    assert not page.exception
    assert "“Peak learning rate” must be" in shown(page)
    assert not page.get("plotly_chart")


def test_a_file_is_asked_for_and_read(tmp_path):
    page = opened(source="Your own file", weight_decay="0.01")
    assert not page.exception
    assert page.info[0].value == texts.NO_FILE
    assert not page.get("plotly_chart")
    spectrum = ec.Spectrum([-0.01, 0.002, 0.1, 3.0], [1, 5, 3, 1], dim=10)
    ec.save_spectrum(spectrum, tmp_path / "own.npz")
    content = (tmp_path / "own.npz").read_bytes()
    page.file_uploader(key="file").set_value(("own.npz", content, "application/zip"))
    page.run()
    plan = ec.plan(tmp_path / "own.npz", total_steps=500, weight_decay=0.01)
    assert plan.verdict in shown(page)
    assert "own.npz, 4 eigenvalues of 10 parameters" in shown(page)
    page.file_uploader(key="file").set_value(("bad.txt", b"1.0 0.5\n2.0 <b>half</b>\n", "text/plain"))
    page.run()
    assert "two numbers per line" in shown(page)
    assert not page.exception
    assert not page.get("plotly_chart")


def test_code_and_downloads_for_each_schedule_and_framework(page):
    for framework in ("torch", "lightning", "transformers", "keras", "optax"):
        page.radio(key="framework").set_value(framework).run()
        assert not page.exception
        assert f"eigencurve.adapters.{framework}" in page.code[0].value
    page.selectbox(key="schedule").set_value("numerical optimum").run()
    assert page.code[0].value != ec.plan(UNMEASURED, total_steps=500).code("optax")
    assert [button.proto.label for button in page.get("download_button")] == ["Download JSON", "Download CSV"]


def test_an_unsettled_estimate_has_a_notice():
    assert "has not settled" in shown(opened(zoo="googlenet_cifar10_narrow16"))
