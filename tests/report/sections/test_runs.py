import pytest
from tests.report.measured import tables_of
from tests.report.test_runs import store  # noqa: F401 -- a fixture

from eigencurve.report.runs import panels_of

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.report.sections.runs import runs_section


def test_each_problem_has_a_table_that_says_how_settings_were_chosen(store):  # noqa: F811
    tables = tables_of(runs_section(panels_of(store)))
    assert list(tables) == [
        "images: settings with the highest mean accuracy, out of 2 tried; all runs with lr 0.1",
        "ridge, epochs 2",
        "ridge, epochs 10: settings with the lowest mean gap, out of 4 tried",
    ]
    head, *rows = tables["ridge, epochs 10: settings with the lowest mean gap, out of 4 tried"]
    assert head == ["schedule", "settings", "gap", "diverged"]
    assert rows == [["cosine", "lr 0.2", "1.5 ± 0.71 (2)", "0"], ["constant", "lr 0.3", "4 ± 0 (2)", "0"]]
