import numpy as np
import pytest

from eigencurve.figures.race import BAR, race_figure


def test_losses_are_drawn_from_top_to_bottom_without_infinite_predictions():
    figure = race_figure({"first": (0.2, 0.01, 0.3), "second": (0.1, 0.02, np.inf)}, "loss")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["first", "second"]
    measured, *_, predicted = axes.lines
    np.testing.assert_array_equal(measured.get_xydata(), [[0.2, 1], [0.1, 0]])
    np.testing.assert_array_equal(predicted.get_xydata(), [[0.3, 1]])
    (bars,) = axes.containers
    ends = bars[2][0].get_segments()[1][:, 0]
    assert ends == pytest.approx([0.1 - BAR * 0.02, 0.1 + BAR * 0.02])
    figure.canvas.draw()
