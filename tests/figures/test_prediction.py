import numpy as np
import pytest

from eigencurve.figures.prediction import PredictedCurve, limits_figure, prediction_figure

STEPS = np.array([0, 1, 10, 100])
CURVE = PredictedCurve("cosine", STEPS, np.array([9.0, 4.0, 2.0, 1.0]), np.full(4, 0.1), np.array([8.0, 5.0, 3.0, 2.0]))


@pytest.mark.parametrize("log", [True, False])
def test_runs_are_solid_with_a_band_and_predictions_dashed(log):
    finals = {"measured": (np.array([2.0, np.inf, 1.0]), np.array([1.0, 1.0, -1.0]))}
    figure = prediction_figure({"at the end": [CURVE]}, finals, "loss", "final loss", log)
    curves, scatter = figure.axes
    solid, dashed, _ = curves.lines
    np.testing.assert_array_equal(solid.get_xdata(), STEPS[1:])  # a logarithmic axis has no step 0
    np.testing.assert_array_equal(solid.get_ydata(), CURVE.measured[1:])
    np.testing.assert_array_equal(dashed.get_ydata(), CURVE.predicted[1:])
    assert dashed.get_linestyle() == "--"
    assert len(curves.collections) == 1
    assert (curves.get_yscale(), curves.get_title()) == ("log" if log else "linear", "at the end")
    np.testing.assert_array_equal(scatter.lines[0].get_xydata(), [[1.0, 2.0]])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["cosine, runs", "predicted"]


def test_an_exact_expectation_is_dotted():
    curve = PredictedCurve("cosine", STEPS, CURVE.measured, CURVE.error, CURVE.predicted, exact=CURVE.measured)
    figure = prediction_figure({"at the end": [curve]}, {}, "loss", "final loss")
    assert figure.axes[0].lines[2].get_linestyle() == ":"
    assert "exact expectation" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_limits_have_a_line_for_each_problem_and_bars_for_the_progress():
    losses, ones = np.array([1.0, 2.0]), np.ones(2)
    figure = limits_figure({"ridge": (losses, ones)}, {"at the start": (losses, 0.5 * ones, ones, 3 * ones)})
    left, right = figure.axes
    np.testing.assert_array_equal(left.lines[0].get_xdata(), losses)
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["ridge"]
    (bars,) = right.collections
    np.testing.assert_allclose([segment[:, 1] for segment in bars.get_segments()], [[0.5, 3.0]] * 2)
