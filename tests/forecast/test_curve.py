import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from tests.reference.forecast import logged, three_runs, true_losses

import eigencurve as ec
from eigencurve.forecast import fit, fit_runs
from eigencurve.forecast.curve import MOST_POINTS, block_starts, curve_of, without_spikes

T = 10_000
PEAK = 0.01


def long_runs(deviation):
    drop = ec.schedules.join([ec.constant(T // 2, PEAK), ec.constant(T // 2, 0.3 * PEAK)])
    shapes = (ec.constant(T, PEAK), ec.warmup(ec.cosine(T - 100, PEAK), 100), drop)
    return [logged(f, every=1, deviation=deviation, seed=i) for i, f in enumerate(shapes)]


def test_a_short_log_is_fitted_row_by_row():
    run = three_runs(deviation=0.01)[1]
    curve = curve_of(run, PEAK, 2000.0, 1.0)
    assert_array_equal(curve.steps, run.steps[1:])  # the first 1 % is not fitted
    assert_array_equal(curve.losses, run.losses[1:])


def test_a_long_log_is_averaged_over_few_blocks():
    for run in long_runs(0.1):
        curve = curve_of(run, PEAK, float(T), 1.0)
        assert 0.5 * MOST_POINTS < len(curve.steps) <= MOST_POINTS
        assert (np.diff(curve.steps) > 0).all()
        # As sure as its rows together.
        rows = curve_of(run, PEAK, float(T), 1.0, rows=np.arange(len(run)) % 20 == 0)
        assert (1 / curve.deviations**2).sum() > (1 / rows.deviations**2).sum()


def test_the_blocks_are_short_where_the_rate_changes():
    run = long_runs(0.1)[2]
    curve = curve_of(run, PEAK, float(T), 1.0)
    near = np.searchsorted(curve.steps, [T // 2 - 1, T // 2 + 1])
    assert np.diff(curve.steps)[near[0] - 1 : near[1]].max() <= 20
    warm = curve_of(long_runs(0.1)[1], PEAK, float(T), 1.0)
    assert (np.diff(warm.steps) <= 40).all()


def row_by_row(run, reference, travel, spread, unit=1.0, rows=None):
    """The curve of a long log without averaging, each row with the variance of its block."""
    curve = curve_of(run, reference, travel, spread, unit, rows)
    moved = np.concatenate(([0.0], np.cumsum(run.rates)))
    steps, losses = run.steps[run.steps >= curve.steps[0]], run.losses[run.steps >= curve.steps[0]] / unit
    counts = np.diff(np.append(block_starts(steps, moved, run.rates), len(steps)))
    deviations = np.repeat(curve.deviations * np.sqrt(counts), counts)
    return dataclasses.replace(
        curve, steps=steps, losses=losses, deviations=deviations, sampling=np.repeat(curve.sampling * counts, counts)
    )


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [0.001, 0.1])
def test_averaging_moves_no_forecast_by_a_tenth_of_its_interval(monkeypatch, deviation):
    runs = long_runs(deviation)
    targets = [ec.wsd(T, PEAK, T // 5), ec.linear(T, PEAK), ec.wsd(2 * T, PEAK, T // 5)]
    few = [fit_runs(runs).predict(f, [f.total_steps]) for f in targets]
    monkeypatch.setattr(fit, "curve_of", row_by_row)
    whole = [fit_runs(runs).predict(f, [f.total_steps]) for f in targets]
    for schedule, found, full in zip(targets, few, whole, strict=True):
        width = full.high[0] - full.low[0]
        assert abs(found.loss[0] - full.loss[0]) < 0.1 * width
        assert abs(found.high[0] - found.low[0] - width) < 0.25 * width
        assert found.low[0] <= true_losses(schedule.values(), np.array([schedule.total_steps]))[0] <= found.high[0]


def test_a_spike_in_a_block_hardly_counts():
    run = long_runs(0.01)[1]
    losses = run.losses.copy()
    losses[5000] += 30.0
    spiked = type(run)(run.steps, losses, run.schedule)
    plain, found = (curve_of(one, PEAK, float(T), 1.0) for one in (run, spiked))
    assert np.abs(plain.losses - found.losses).max() < plain.deviations.max()


@given(st.integers(0, 2**32 - 1))
def test_noise_is_no_spike(seed):
    losses = np.geomspace(5.0, 2.0, 300) + 0.05 * np.random.default_rng(seed).standard_normal(300)
    assert_array_equal(without_spikes(losses), losses)


@given(st.integers(1001, 5000), st.integers(0, 2**32 - 1))
def test_blocks_cover_all_rows(count, seed):
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(1, 5, count))
    rates = rng.random(steps[-1]) + 1e-3
    moved = np.concatenate(([0.0], np.cumsum(rates)))
    starts = block_starts(steps, moved, rates)
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    assert len(starts) <= MOST_POINTS
