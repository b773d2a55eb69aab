import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.planning.logged import runs

import eigencurve as ec
from eigencurve.planning.forecasts import fitted_curves, forecast_view, predictions
from eigencurve.planning.labels import BEST, LABELS
from eigencurve.planning.loss_view import loss_view
from eigencurve.planning.spectrum_view import spectrum_view
from eigencurve.spectrum.source import law_source, zoo_source

pytest.importorskip("plotly", reason="plotly is not installed")
from eigencurve.figures.interactive import (
    drawn_steps,
    fit_chart,
    forecasts_chart,
    losses_chart,
    rates_chart,
    schedules_chart,
    spectrum_chart,
    style_of,
)

SUBJECT = zoo_source("resnet20_cifar10")
Q = ec.NoisyQuadratic(SUBJECT.spectrum, 1e4, 1.0)
SCHEDULES = {
    "eigencurve": ec.eigencurve(SUBJECT.prepared, 500, 0.1),
    "cosine": ec.cosine(500, 0.1),
    "step_decay": ec.step_decay(500, 0.1),
}
LOSSES = loss_view(Q, 2 / SUBJECT.spectrum.L, 500, SCHEDULES, "best")


def names(figure):
    return [trace.name for trace in figure.data]


def test_the_negative_part_has_its_own_axis():
    view = spectrum_view(SUBJECT)
    figure = spectrum_chart(view)
    assert names(figure) == ["negative", "positive", "smooth share per octave"]
    negative, positive, density = figure.data
    assert (negative.xaxis, positive.xaxis, density.xaxis) == ("x2", "x", None)
    assert figure.layout.xaxis2.domain[1] < figure.layout.xaxis.domain[0]
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == figure.layout.yaxis.type == "log"
    assert_array_equal(positive.x, view.lower)
    assert_array_equal(np.nan_to_num(positive.y), view.positive)
    assert figure.layout.xaxis2.range[0] > figure.layout.xaxis2.range[1]


def test_without_a_negative_part_there_is_one_axis():
    figure = spectrum_chart(spectrum_view(law_source(1.5, 1e5)))
    assert names(figure) == ["positive", "smooth share per octave"]
    assert "xaxis2" not in figure.to_dict()["layout"]


def test_rates_over_epochs_on_both_axes():
    figure = rates_chart(SCHEDULES, 50, 0.1)
    shown = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert shown == ["Eigencurve", "Cosine", "Step decay"]
    assert [trace.yaxis for trace in figure.data] == [None] * 3 + ["y2"] * 3
    assert figure.layout.yaxis.type != "log"
    assert figure.layout.yaxis2.type == "log"
    for above, below, schedule in zip(figure.data[:3], figure.data[3:], SCHEDULES.values(), strict=True):
        assert_allclose(above.x[-1], 499 / 50)
        assert_array_equal(above.y, schedule(drawn_steps(schedule)))
        assert_array_equal(below.y, above.y)
        assert above.line == below.line


DRAWN = {
    **SCHEDULES,
    "linear": ec.linear(500, 0.1),
    "elastic_step": ec.elastic_step(500, 0.1),
    "exponential": ec.exponential(500, 0.1, 1e-4),
    "inverse_time": ec.inverse_time(500, 0.1, 1e-3),
    "wsd": ec.wsd(500, 0.1, 100),
    "constant": ec.constant(500, 0.1),
    "one step": ec.cosine(1, 0.1),
    "a million steps": ec.eigencurve(SUBJECT.prepared, 10**6, 0.1),
}


@pytest.mark.parametrize("name", DRAWN)
def test_straight_lines_between_the_drawn_steps_are_the_curve(name):
    schedule = DRAWN[name]
    steps = drawn_steps(schedule)
    assert (steps[0], steps[-1]) == (0, schedule.total_steps - 1)
    assert len(steps) < 1000
    drawn = np.interp(np.arange(schedule.total_steps), steps, schedule(steps))
    assert_allclose(
        drawn, schedule.values(), atol=0.01 * schedule.lr
    )  # 1 % of the first rate: less than a line's width


@pytest.mark.parametrize("axis", ["linear", "log"])
def test_losses_and_the_bound(axis):
    figure = losses_chart(LOSSES, 50, axis)
    assert names(figure) == ["Bound", *(LABELS[row.name] for row in LOSSES.rows)]
    assert figure.layout.xaxis.type == axis
    assert (figure.data[0].x[0] > 0) == (axis == "log")
    low, high = figure.layout.yaxis.range
    assert low < np.log10(LOSSES.bound[-1]) < high


def test_without_a_bound():
    q = ec.NoisyQuadratic(SUBJECT.spectrum, 1e4, 1.0, 0.9)
    view = loss_view(q, q.stable_rate, 500, SCHEDULES, "best")
    figure = losses_chart(view, 50, "linear")
    assert names(figure) == [LABELS[row.name] for row in view.rows]


def test_a_diverging_schedule_is_left_out_of_the_axis():
    figure = losses_chart(loss_view(Q, 0.1, 500, SCHEDULES, "given"), 50, "linear")
    assert np.isfinite(figure.layout.yaxis.range).all()
    assert np.isnan(figure.data[1].y).any()


def test_no_two_schedules_look_the_same():
    styles = [tuple(sorted(style_of(name).items())) for name in LABELS]
    assert len(set(styles)) == len(styles)
    kinds = [name for name in LABELS if name != BEST][:6]
    assert len({style_of(kind)["color"] for kind in kinds}) == len({style_of(kind)["dash"] for kind in kinds}) == 6


def test_plotly_is_enough_and_its_absence_names_the_extra():
    code = "import sys; sys.modules[{!r}] = None; import eigencurve.figures.interactive"
    subprocess.run([sys.executable, "-c", code.format("matplotlib")], check=True)
    result = subprocess.run([sys.executable, "-c", code.format("plotly")], capture_output=True, text=True)
    assert "pip install eigencurve[studio]" in result.stderr


@pytest.fixture(scope="module")
def forecast():
    return forecast_view(runs())


def test_logged_losses_and_their_fit(forecast):
    curves = fitted_curves(forecast.forecast, forecast.runs)
    odd = [dataclasses.replace(curves[0], name="<b>a</b>"), curves[1]]
    chart = fit_chart(odd)
    assert [trace.mode for trace in chart.data] == ["markers", "markers", "lines", "lines"]
    assert chart.data[2].name == "&lt;b&gt;a&lt;/b&gt;"
    assert_allclose(chart.data[0].y, curves[0].losses)
    assert_allclose(chart.data[3].y, curves[1].fitted)


def test_forecasts_have_bands(forecast):
    shown = predictions(forecast, ["constant", "cosine to 0"])
    chart = forecasts_chart(shown)
    band, line = chart.data[1], chart.data[3]
    low, high = np.split(np.asarray(band.y), 2)
    assert_allclose(low, shown["cosine to 0"].low)
    assert_allclose(high[::-1], shown["cosine to 0"].high)
    assert_allclose(line.y, shown["cosine to 0"].loss)
    assert band.fillcolor.startswith("rgba(")
    assert line.name == "cosine to 0"


def test_rates_of_schedules_with_any_names(forecast):
    rows = {row.name: row.schedule for row in forecast.table.rows}
    chart = schedules_chart(rows)
    for trace in chart.data:
        assert_allclose(trace.y, rows[trace.name](np.asarray(trace.x)))
