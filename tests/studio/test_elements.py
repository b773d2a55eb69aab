import pytest

pytest.importorskip("streamlit", reason="Streamlit is not installed")

from streamlit.testing.v1 import AppTest

from eigencurve._check import Arg, ArgumentValueError
from eigencurve.studio import texts
from eigencurve.studio.elements import message, plain

SCRIPT = """
import eigencurve as ec
from eigencurve.studio import elements
elements.MOST_LINES, elements.MOST_CODE = {lines}, {code}
elements.draw_plan(ec.plan(total_steps=10, optimizer="adamw"), {{"mine": ec.linear(10, 0.1)}})
"""


def drawn(lines, code):
    page = AppTest.from_string(SCRIPT.format(lines=lines, code=code), default_timeout=120).run()
    assert not page.exception
    return page


@pytest.mark.parametrize(("most", "disabled"), [(10, False), (9, True)])
def test_both_files_are_offered_and_a_long_run_has_no_csv(most, disabled):
    page = drawn(most, 3000)
    first, second = page.get("download_button")
    assert (first.proto.label, second.proto.label) == ("Download JSON", "Download CSV")
    assert (first.proto.disabled, second.proto.disabled) == (False, disabled)
    page.selectbox(key="schedule").set_value("mine").run()
    assert "'kind': 'linear'" in page.code[0].value


def test_long_code_loads_the_schedule_from_its_file():
    page = drawn(10, 100)
    assert 'Path("wsd_40.json")' in page.code[0].value
    assert texts.LOAD_IT in [caption.value for caption in page.caption]


def test_messages_name_the_labels_of_fields_and_are_shown_literally():
    error = ArgumentValueError("plan", "lr", ("below ", Arg("max_lr")), "<b>", ("Pass ", Arg("noise"), "."))
    labels = {"lr": "Peak learning rate", "noise": "Gradient noise"}
    text = "“Peak learning rate” must be below 'max_lr', got '<b>'. Pass “Gradient noise”."
    assert message(error, labels) == plain(text)
    assert message(ValueError("*a*"), {}) == r"\*a\*"
