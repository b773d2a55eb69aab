import numpy as np
import pytest
from tests.paper.prediction.toys import PLAN, images_file, small_ridge

from paper.engine.request import Request, Workers
from paper.prediction import plots
from paper.prediction.scales import SMOKE
from paper.prediction.study import END, START, noise_effects, problem_makers, study_problem


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    folder = images_file(tmp_path_factory.mktemp("plots"), num=100)
    return Request(folder / "s.sqlite", Workers(1, "sequential"), data=folder)


@pytest.fixture(scope="module")
def found(asked):
    network = problem_makers(asked, SMOKE)["network"]()
    return [study_problem(small_ridge(), PLAN, asked), study_problem(network, SMOKE.plans["network"], asked)]


def test_curves_of_a_problem_with_a_minimum_are_excess_losses_with_the_exact_expectation(found, asked):
    figure = plots.problem_figure(found[0], noise_effects(found[0], asked))
    assert [axes.get_title() for axes in figure.axes] == [f"{END}, rate 0.1", "every schedule at every rate"]
    finding = found[0].findings[0]
    first = finding.at_rate(0.1)[0]
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), finding.measured[first, 1:])
    assert "exact expectation" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_curves_of_the_network_are_losses_with_both_predictions(found):
    figure = plots.problem_figure(found[1])
    assert [axes.get_title() for axes in figure.axes[:2]] == [f"{END}, rate 0.1", f"{START}, rate 0.1"]
    finding = found[1].findings[0]
    drawn = figure.axes[1].lines[1].get_ydata()
    expected = found[1].problem.end_loss + finding.predicted[START][finding.at_rate(0.1)[0], 1:]
    np.testing.assert_allclose(drawn, expected)


def test_every_figure_has_its_file(found):
    assert list(plots.figures(found, ())) == [plots.LIMITS, "prediction_ridge.png", "prediction_network.png"]
    assert len(plots.limits(found[:1]).axes) == 1


STEPS = np.array([0, 1, 10, 100])
CURVE = plots.PredictedCurve(
    "cosine", STEPS, np.array([9.0, 4.0, 2.0, 1.0]), np.full(4, 0.1), np.array([8.0, 5.0, 3.0, 2.0])
)


@pytest.mark.parametrize("log", [True, False])
def test_runs_are_solid_with_a_band_and_predictions_dashed(log):
    finals = {"measured": (np.array([2.0, np.inf, 1.0]), np.array([1.0, 1.0, -1.0]))}
    figure = plots.prediction_figure({"at the end": [CURVE]}, finals, "loss", "final loss", log)
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


def test_limits_have_a_line_for_each_problem_and_bars_for_the_progress():
    losses, ones = np.array([1.0, 2.0]), np.ones(2)
    figure = plots.limits_figure({"ridge": (losses, ones)}, {"at the start": (losses, 0.5 * ones, ones, 3 * ones)})
    left, right = figure.axes
    np.testing.assert_array_equal(left.lines[0].get_xdata(), losses)
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["ridge"]
    (bars,) = right.collections
    np.testing.assert_allclose([segment[:, 1] for segment in bars.get_segments()], [[0.5, 3.0]] * 2)
