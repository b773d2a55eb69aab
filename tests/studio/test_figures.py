import dataclasses

import numpy as np
import pytest

from eigencurve.studio import texts
from eigencurve.studio.figures import losses_figure, rates_figure, spectrum_figure, style_of
from eigencurve.studio.source import subject_of
from eigencurve.studio.state import KINDS, Settings
from eigencurve.studio.view import BEST, redraw

SETTINGS = Settings(epochs=10, steps_per_epoch=50, schedules=("eigencurve", "cosine", "step_decay"))
VIEW = redraw(SETTINGS, subject_of(SETTINGS))


def names(figure):
    return [trace.name for trace in figure.data]


def test_the_negative_part_stands_apart():
    figure = spectrum_figure(VIEW.spectrum)
    assert names(figure) == ["negative", "positive", "smooth share per octave"]
    negative, positive, density = figure.data
    assert (negative.xaxis, positive.xaxis, density.xaxis) == ("x2", "x", None)
    assert figure.layout.xaxis2.domain[1] < figure.layout.xaxis.domain[0]
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == figure.layout.yaxis.type == "log"
    np.testing.assert_array_equal(positive.x, VIEW.spectrum.lower)
    np.testing.assert_array_equal(np.nan_to_num(positive.y), VIEW.spectrum.positive)
    assert figure.layout.xaxis2.range[0] > figure.layout.xaxis2.range[1]


def test_without_a_negative_part_there_is_one_panel():
    law = dataclasses.replace(SETTINGS, source="power_law")
    figure = spectrum_figure(redraw(law, subject_of(law)).spectrum)
    assert names(figure) == ["positive", "smooth share per octave"]
    assert "xaxis2" not in figure.to_dict()["layout"]


def test_rates_over_epochs_on_both_axes():
    figure = rates_figure(VIEW.curves, 50, SETTINGS.lr)
    shown = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert shown == ["Eigencurve", "Cosine", "Step decay"]
    assert [trace.yaxis for trace in figure.data] == [None] * 3 + ["y2"] * 3
    assert figure.layout.yaxis.type != "log"
    assert figure.layout.yaxis2.type == "log"
    for above, below, name in zip(figure.data[:3], figure.data[3:], SETTINGS.schedules, strict=True):
        np.testing.assert_allclose(above.x[-1], 499 / 50)
        np.testing.assert_array_equal(above.y, VIEW.curves.rates[name])
        np.testing.assert_array_equal(below.y, VIEW.curves.rates[name])
        assert above.line == below.line


@pytest.mark.parametrize("axis", ["linear", "log"])
def test_losses_and_the_bound(axis):
    figure = losses_figure(VIEW.losses, 50, axis)
    assert names(figure) == ["Bound", *(texts.LABELS[row.name] for row in VIEW.losses.rows)]
    assert figure.layout.xaxis.type == axis
    assert (figure.data[0].x[0] > 0) == (axis == "log")
    low, high = figure.layout.yaxis.range
    assert low < np.log10(VIEW.losses.bound[-1]) < high


def test_a_diverging_schedule_is_left_out_of_the_axis():
    given = dataclasses.replace(SETTINGS, scale="given")
    figure = losses_figure(redraw(given, subject_of(given)).losses, 50, "linear")
    assert np.isfinite(figure.layout.yaxis.range).all()
    assert np.isnan(figure.data[1].y).any()


def test_no_two_schedules_look_the_same():
    styles = [tuple(sorted(style_of(name).items())) for name in (*KINDS, BEST)]
    assert len(set(styles)) == len(styles)
    colours = [style_of(kind)["color"] for kind in KINDS[:6]]
    dashes = [style_of(kind)["dash"] for kind in KINDS[:6]]
    assert len(set(colours)) == len(set(dashes)) == 6


def test_every_schedule_has_a_name():
    assert set(texts.LABELS) == {*KINDS, BEST}
