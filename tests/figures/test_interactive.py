import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.planning.logged import CONSTANT, COSINE, RISE, runs

import eigencurve as ec
from eigencurve.forecast import fit_runs
from eigencurve.spectrum.groups import group
from eigencurve.spectrum.source import zoo_source

pytest.importorskip("plotly", reason="plotly is not installed")
from eigencurve.figures.interactive import (
    drawn_steps,
    fit_chart,
    fitted_curves,
    forecasts_chart,
    loss_range,
    losses_chart,
    octaves_chart,
    schedules_chart,
)

SOURCE = zoo_source("resnet20_cifar10")
MARKS = np.array([0, 1, 10, 100])
LOSSES = {"one": np.array([5.0, 4.0, 2.0, 1.0]), "two": np.array([5.0, 4.5, np.inf, np.inf])}


def test_the_bars_are_the_shares_of_the_octaves():
    octaves = group(SOURCE.prepared, beta=2.0)
    figure = octaves_chart(octaves)
    assert_array_equal(figure.data[0].x, octaves.lower)
    assert_array_equal(figure.data[0].y, octaves.share)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_losses_and_the_bound():
    bound = np.array([5.0, 3.0, 1.0, 0.5])
    figure = losses_chart(MARKS, LOSSES, bound)
    assert [trace.name for trace in figure.data] == ["Bound", "one", "two"]
    assert_array_equal(figure.data[1].y, LOSSES["one"])
    assert np.isnan(figure.data[2].y).sum() == 2  # a schedule that diverges ends, and is left out of the axis
    low, high = figure.layout.yaxis.range
    assert low < np.log10(0.5) < np.log10(5.0) < high < 1
    assert [trace.name for trace in losses_chart(MARKS, LOSSES, None).data] == ["one", "two"]


DRAWN = {
    "eigencurve": ec.eigencurve(SOURCE.prepared, 500, 0.1),
    "cosine": ec.cosine(500, 0.1),
    "step_decay": ec.step_decay(500, 0.1),
    "linear": ec.linear(500, 0.1),
    "elastic_step": ec.elastic_step(500, 0.1),
    "exponential": ec.exponential(500, 0.1, 1e-4),
    "inverse_time": ec.inverse_time(500, 0.1, 1e-3),
    "wsd": ec.wsd(500, 0.1, 100),
    "constant": ec.constant(500, 0.1),
    "one step": ec.cosine(1, 0.1),
    "a million steps": ec.eigencurve(SOURCE.prepared, 10**6, 0.1),
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


def test_plotly_is_enough_and_its_absence_names_the_extra():
    code = "import sys; sys.modules[{!r}] = None; import eigencurve.figures.interactive"
    subprocess.run([sys.executable, "-c", code.format("matplotlib")], check=True)
    result = subprocess.run([sys.executable, "-c", code.format("plotly")], capture_output=True, text=True)
    assert "pip install eigencurve[studio]" in result.stderr


@pytest.fixture(scope="module")
def forecast():
    return fit_runs(runs())


def test_logged_losses_and_their_fit(forecast):
    curves = fitted_curves(forecast, runs())
    odd = [dataclasses.replace(curves[0], name="<b>a</b>"), curves[1]]
    chart = fit_chart(odd)
    assert [trace.mode for trace in chart.data] == ["markers", "markers", "lines", "lines"]
    assert chart.data[2].name == "&lt;b&gt;a&lt;/b&gt;"
    assert_allclose(chart.data[0].y, curves[0].losses)
    assert_allclose(chart.data[3].y, curves[1].fitted)


def test_forecasts_have_bands(forecast):
    shown = {"constant": forecast.predict(CONSTANT), "cosine to 0": forecast.predict(COSINE)}
    chart = forecasts_chart(shown)
    band, line = chart.data[1], chart.data[3]
    low, high = np.split(np.asarray(band.y), 2)
    assert_allclose(low, shown["cosine to 0"].low)
    assert_allclose(high[::-1], shown["cosine to 0"].high)
    assert_allclose(line.y, shown["cosine to 0"].loss)
    assert band.fillcolor.startswith("rgba(")
    assert line.name == "cosine to 0"


def test_rates_of_schedules_with_any_names():
    rows = {"constant": CONSTANT, "cosine to 0": COSINE}
    chart = schedules_chart(rows)
    for trace in chart.data:
        assert_allclose(trace.y, rows[trace.name](np.asarray(trace.x)))


def test_the_fit_is_drawn_after_the_warmup():
    logs = runs()
    curves = fitted_curves(fit_runs(logs), logs)
    assert [curve.name for curve in curves] == ["constant", "cosine"]
    for curve, run in zip(curves, logs, strict=True):
        assert curve.steps[0] >= RISE
        assert curve.losses[-1] == run.losses[-1]
        assert np.abs(curve.fitted - curve.losses)[len(curve.steps) // 5 :].max() < 0.03
    low, high = loss_range([(curve.steps, curve.losses) for curve in curves])
    assert low < min(curve.losses.min() for curve in curves) < high < curves[0].losses[0]
