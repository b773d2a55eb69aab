import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.reference.forecast import three_runs, two_peaks

import eigencurve as ec
import eigencurve.forecast
from eigencurve.forecast import Forecast, fit_runs

SCHEDULES = {"cosine": ec.cosine(2000, 0.01), "linear": ec.linear(2000, 0.01), "constant": ec.constant(2000, 0.01)}


@pytest.fixture(scope="module")
def forecast():
    return fit_runs(three_runs())


def test_a_prediction_has_a_band_around_its_loss(forecast):
    found = forecast.predict(SCHEDULES["cosine"])
    assert found.steps[-1] == 2000
    assert len(found.steps) == len(found.loss) == len(found.low) == len(found.high) == 100
    assert (found.low < found.loss).all()
    assert (found.loss < found.high).all()
    assert found.beyond == ()
    assert "at step 2,000" in repr(found)


def test_the_steps_can_be_chosen(forecast):
    whole = forecast.predict(SCHEDULES["cosine"], at=[100, 1000, 2000])
    assert_array_equal(whole.steps, [100, 1000, 2000])
    assert forecast.predict(SCHEDULES["cosine"], at=1000).loss[0] == pytest.approx(whole.loss[1])


@pytest.mark.parametrize("at", [[2, 1], [-1, 5], [3000], [5, 5]])
def test_steps_must_increase_within_the_run(forecast, at):
    with pytest.raises(ValueError, match="'at' must be increasing from 0 to at most total_steps = 2000"):
        forecast.predict(SCHEDULES["cosine"], at=at)


@pytest.mark.parametrize("at", [[], [0.5], "end"])
def test_steps_must_be_whole(forecast, at):
    with pytest.raises(TypeError, match="'at' must be a step or a sequence of steps"):
        forecast.predict(SCHEDULES["cosine"], at=at)


def test_a_table_is_in_order_of_the_loss_and_relative_to_a_reference(forecast):
    table = forecast.compare(SCHEDULES)
    losses = [row.loss for row in table.rows]
    assert losses == sorted(losses)
    assert table.rows[0].name == table.reference
    assert table.rows[0].excess == 0
    assert all(row.excess_low <= row.excess <= row.excess_high for row in table.rows)
    assert table["constant"].excess == pytest.approx(table["constant"].loss / losses[0] - 1)
    last = table.rows[-1]
    assert (last.excess_high - last.excess_low) * losses[0] < 2 * (last.high - last.low)
    other = forecast.compare(SCHEDULES, reference="constant")
    assert other["linear"].excess == pytest.approx(table["linear"].loss / table["constant"].loss - 1)


def test_the_table_prints_intervals_and_marks(forecast):
    text = str(forecast.compare({**SCHEDULES, "twice the rate": ec.cosine(2000, 0.02)}))
    assert text.splitlines()[0].split()[:4] == ["schedule", "peak", "lr", "loss"]
    assert "* its peak rate 0.02 is outside the logged 0.01" in text


@pytest.mark.parametrize("schedules", [{}, [ec.constant(5, 0.1)], None])
def test_a_table_needs_names(forecast, schedules):
    with pytest.raises(TypeError, match="'schedules' must be a non-empty mapping"):
        forecast.compare(schedules)


def test_schedules_at_two_peaks_have_independent_errors():
    runs = two_peaks()
    table = fit_runs([*runs[0.005], *runs[0.01]]).compare({f"{lr:g}": ec.cosine(2000, lr) for lr in runs})
    low, high = (table[f"{lr:g}"] for lr in runs)
    best, worse = sorted((low, high), key=lambda row: row.loss)
    assert worse.excess == pytest.approx(worse.loss / best.loss - 1)
    widths = [np.ptp([row.low, row.high]) / best.loss for row in (low, high)]
    assert worse.excess_high - worse.excess_low == pytest.approx(np.hypot(*widths))


def test_it_survives_json_with_several_peaks():
    runs = two_peaks()
    forecast = fit_runs([*runs[0.005], *runs[0.01]])
    again = Forecast.from_dict(json.loads(json.dumps(forecast.to_dict())))
    for lr in (0.005, 0.007, 0.01):
        schedule = ec.wsd(2000, lr, 400)
        assert again.predict(schedule, 2000).loss == forecast.predict(schedule, 2000).loss


def test_it_survives_json(forecast):
    entry = json.loads(json.dumps(forecast.to_dict()))
    again = Forecast.from_dict(entry)
    for schedule in SCHEDULES.values():
        one, other = forecast.predict(schedule), again.predict(schedule)
        assert_array_equal(np.array([one.loss, one.low, one.high]), np.array([other.loss, other.low, other.high]))
    assert again.names == forecast.names == ("constant", "cosine", "drop")
    assert repr(again) == repr(forecast)


def test_it_reads_files_of_one_fit(forecast):
    earlier = {name: value for name, value in forecast.to_dict().items() if name not in ("at_one_peak", "metric")}
    again = Forecast.from_dict(earlier)
    for schedule in SCHEDULES.values():
        assert again.predict(schedule, 2000).loss == pytest.approx(forecast.predict(schedule, 2000).loss)


def test_old_names_work_with_a_warning(forecast):
    with pytest.warns(DeprecationWarning, match="use 'warnings'"):
        assert forecast.doubts == forecast.warnings
    with pytest.warns(DeprecationWarning, match="use 'reference'"):
        assert forecast.compare(SCHEDULES, to="constant").reference == "constant"
    with pytest.warns(DeprecationWarning, match=r"comparison\.ComparisonTable"):
        assert eigencurve.forecast.ForecastTable is ec.ComparisonTable


def test_its_repr_says_what_was_fitted(forecast):
    assert repr(forecast).startswith("Forecast(3 runs of up to 2,000 steps, peak rate 0.01, gamma 0.")
