import numpy as np
import pytest
from tests.planning.logged import runs

from eigencurve.planning.forecasts import fitted_curves, forecast_view, predictions

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from eigencurve.figures.forecasts import fit_figure, forecasts_figure, intervals_figure


@pytest.fixture(scope="module")
def view():
    return forecast_view(runs())


def test_logged_losses_are_dots_and_the_fit_is_a_line(view):
    curves = fitted_curves(view.forecast, view.runs)
    (axes,) = fit_figure(curves).axes
    dots, line = axes.lines[:2]
    assert np.array_equal(dots.get_ydata(), curves[0].losses)
    assert np.array_equal(line.get_ydata(), curves[0].fitted)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["constant", "cosine"]


def test_bands_are_the_intervals(view):
    shown = predictions(view, ["constant", "linear to 0"])
    (axes,) = forecasts_figure(shown).axes
    edges = axes.collections[1].get_paths()[0].vertices
    end = edges[edges[:, 0] == view.total_steps][:, 1]
    assert end.min() == pytest.approx(shown["linear to 0"].low[-1])
    assert end.max() == pytest.approx(shown["linear to 0"].high[-1])
    assert len(axes.lines) == 2


def test_every_row_has_its_interval_and_the_lowest_is_on_top(view):
    (axes,) = intervals_figure(view.table).axes
    assert list(axes.lines[0].get_xdata()) == [view.table.rows[0].low, view.table.rows[0].high]
    assert axes.lines[0].get_ydata()[0] == len(view.table.rows) - 1
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == [row.name for row in view.table.rows]
