from streamlit.testing.v1 import AppTest

SCRIPT = """
import eigencurve as ec
from eigencurve.studio import elements
elements.MOST_LINES = {most}
elements.download_buttons(ec.linear(10, 0.1), "mine")
"""


def buttons(most):
    page = AppTest.from_string(SCRIPT.format(most=most), default_timeout=120).run()
    assert not page.exception
    return page.get("download_button")


def test_both_files_are_offered():
    first, second = buttons(10)
    assert (first.proto.label, second.proto.label) == ("Download JSON", "Download CSV")
    assert not second.proto.disabled


def test_a_long_run_has_no_csv():
    assert buttons(9)[1].proto.disabled
