import re

import pytest
from tests.planning.logged import runs

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.planning.forecasts import forecast_view
from eigencurve.report.sections.forecast import basis_section, curves_section, table_section


@pytest.fixture(scope="module")
def view():
    return forecast_view(runs(), total_steps=6000)


def cells(section):
    text = "".join(section.blocks)
    rows = re.findall("<tr>(.*?)</tr>", text)
    return [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_the_table_is_the_forecasts(view):
    head, first, *rest = cells(table_section(view))
    assert head[0] == "schedule"
    assert len(rest) == len(view.table.rows) - 1
    row = view.table.rows[0]
    assert first[:3] == [f"{row.name} *", f"{row.loss:.4f}", f"{row.low:.4f} to {row.high:.4f}"]
    assert "6,000 steps are 3.0 times those of the longest logged run" in "".join(table_section(view).blocks)


def test_two_figures_of_curves(view):
    text = "".join(curves_section(view).blocks)
    assert text.count("<svg") == 2
    assert "Logged losses and the fit: constant, cosine." in text
    assert "Forecast losses along the run: WSD, last 20 %, cosine to 0, constant." in text


def test_what_it_is_based_on(view):
    section = basis_section(view, ["a warning"])
    assert cells(section)[1] == ["constant", "val_loss", "50", "2,000", "0.01", "100"]
    text = "".join(section.blocks)
    assert '<p class="note">a warning</p>' in text
    assert view.next_run.reason in text
