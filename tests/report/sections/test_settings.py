from tests.report.measured import tables_of

from eigencurve.report.sections.settings import settings_section
from eigencurve.runs.store import Origin


def test_settings_versions_and_the_revision_are_listed():
    tables = tables_of(settings_section({"lr": "0.1"}, Origin({"numpy": "2.0"}, "abc")))
    assert tables["Settings"] == [["setting", "value"], ["lr", "0.1"]]
    assert tables["Versions"] == [["package", "version"], ["numpy", "2.0"], ["revision", "abc"]]
    assert list(tables_of(settings_section({}, Origin({"numpy": "2.0"}, "")))) == ["Versions"]
