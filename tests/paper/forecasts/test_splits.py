import numpy as np
import pytest
from numpy.testing import assert_allclose

from eigencurve.forecast import LoggedRun, Prediction
from paper.data.curves import published_runs
from paper.forecasts.splits import (
    Scored,
    fewer_runs,
    fit_together,
    fixed_exponent,
    forecast_split,
    score,
    splits_of,
)


def scored(losses, forecast, half, name="run"):
    steps = np.arange(1, 9)
    run = LoggedRun(steps, np.asarray(losses, dtype=float), np.full(8, 0.1))
    loss = np.asarray(forecast, dtype=float)
    return Scored(name, run, Prediction(steps, loss, loss - half, loss + half, ()))


def test_a_scored_run():
    one = scored([8, 7, 6, 5, 4, 3, 2, 1], [8, 7, 6, 5, 4, 3, 2.5, 1.2], 0.3)
    assert one.final_error == pytest.approx(0.2)
    assert one.curve_error == pytest.approx(0.7 / 8)
    assert one.points_inside == pytest.approx(7 / 8)
    assert one.end_inside
    assert_allclose(one.interval, (0.9, 1.5))


def test_scores_are_means_over_runs():
    falling = np.arange(8.0, 0.0, -1.0)
    runs = [scored(falling + i, falling + i + shift, 0.15) for i, shift in enumerate((0.1, -0.1, 0.2))]
    found = score(runs)
    assert found.curve_error == pytest.approx(0.4 / 3)
    assert found.final_error == pytest.approx(0.4 / 3)
    assert found.points_inside == pytest.approx(2 / 3)
    assert (found.ends_inside, found.count) == (2, 3)
    ordered = [scored(falling + i, falling + 2 * i, 0.1) for i in range(4)]
    assert score(ordered).rank == pytest.approx(1.0)
    assert np.isnan(score(ordered[:2]).rank)


def test_the_splits(splits):
    assert [split.name for split in splits] == [
        "GPT 25M", "GPT 100M", "Llama 124M, peak 0.01", "Llama 124M, peak 0.005",
        "Llama 124M, peak 0.01 → 0.005", "Llama 124M, peak 0.005 → 0.01",
    ]  # fmt: skip
    assert [len(split.held) for split in splits] == [6, 6, 7, 7, 10, 10]
    assert all(sorted(split.fitted) == ["constant", "cosine", "decay"] for split in splits)
    assert [split.transfer for split in splits] == [False] * 4 + [True] * 2
    # Those of Llama at the lower peak did not shape the constants.
    assert [split.shaped for split in splits] == [True, True, True, False, False, True]
    for split in splits:
        assert not {id(run) for run in split.fitted.values()} & {id(run) for run in split.held.values()}
    held = splits[4].held["stable"]
    assert held.peak_lr == pytest.approx(0.005)


def test_forecasts_of_a_known_model(splits):
    outcome = forecast_split(splits[0])
    found = score(outcome.runs)
    assert found.final_error < 0.01
    assert found.rank > 0.8
    assert [one.run.total_steps for one in outcome.longer] == [1200, 1200]


def test_fewer_runs_and_fixed_exponents(splits):
    by_roles = fewer_runs(splits[2])
    assert next(iter(by_roles)) == ("constant",)
    assert list(by_roles)[-1] == ("constant", "cosine", "decay")
    assert len(by_roles) == 7
    assert by_roles["constant", "cosine", "decay"].final_error < by_roles["constant",].final_error
    # The logs have γ = 0.3.
    assert fixed_exponent(splits[2], 0.3).curve_error < fixed_exponent(splits[2], 0.0).curve_error


def test_one_model_for_two_peaks_is_not_that_of_either(splits):
    together = fit_together(splits[2:4])
    alone = {split.name: score(forecast_split(split).runs) for split in splits[2:4]}
    assert list(together) == list(alone)
    assert all(together[name] != alone[name] for name in alone)


def test_the_published_runs(data_path):
    """The numbers of results/forecast.md."""
    outcomes = [forecast_split(split) for split in splits_of(published_runs(data_path("curves").parent))]
    found = [score(outcome.runs) for outcome in outcomes]
    assert_allclose([one.curve_error for one in found[:2]], [0.0032, 0.0024], atol=2e-4)
    assert_allclose([one.final_error for one in found], [0.0040, 0.0047, 0.0037, 0.0029, 0.0088, 0.0145], atol=6e-4)
    same = score([one for outcome in outcomes[:4] for one in outcome.runs])
    assert 0.7 <= same.points_inside <= 0.9
    assert 0.7 <= same.ends_inside / same.count <= 0.9
