"""Predictions from runs of a model whose losses are known exactly."""

import numpy as np
import pytest

from eigencurve import NoisyQuadratic, Spectrum
from eigencurve.runs.store import Outcome
from paper.byte_text.experiment import schedule_of
from paper.byte_text.predictions import PredictedLoss, Predictions, committed_predictions
from paper.byte_text.report import METRICS, ByteRow, RateTrials
from paper.byte_text.scales import DESK_SCALE, FIRST, RECOMMENDATION, REST, grids
from paper.byte_text.tables import logged_runs, predict_rest
from paper.engine.protocol import trials_of
from paper.training.settings import through_points

SOME = Predictions("a fit", {"Linear": {0.003: PredictedLoss(1.25, 1.2, 1.3)}}, {0.003: [[0.0, 1.0], [1.0, 0.5]]})
EIGENVALUES = np.geomspace(0.03, 60.0, 40)
MODEL = NoisyQuadratic(Spectrum(EIGENVALUES, EIGENVALUES**-0.5), noise=0.03, initial_error=2.0)
MARKS = np.arange(25, 2_001, 25)


def losses(schedule):
    return 1.5 + MODEL.loss_curve(schedule, MARKS).loss


def rows_of(part, chosen):
    """Rows as the store would have them if every run were the model's expected loss, up to a little noise."""
    rows = []
    for name, grid in chosen.items():
        rates = {}
        for settings in grid:
            expected = losses(schedule_of(settings, {}))
            outcomes = {}
            for seed in range(3):
                noisy = expected + 1e-3 * np.random.default_rng(seed).standard_normal(len(MARKS))
                curve = list(zip(MARKS.astype(float).tolist(), noisy.tolist(), strict=True))
                outcomes[seed] = Outcome(dict.fromkeys(METRICS, noisy[-1]), curves={"valid_loss": curve})
            trials = {metric: trials_of(settings, outcomes, metric) for metric in METRICS}
            rates[settings["lr"]] = RateTrials(trials, outcomes, 0)
        rows.append(ByteRow(part, name, rates))
    return rows


@pytest.fixture(scope="module")
def first():
    return rows_of(FIRST, grids(DESK_SCALE, FIRST))


def test_a_run_is_the_mean_of_its_seeds(first):
    runs = logged_runs(first)
    assert len(runs) == 21
    settings = grids(DESK_SCALE, FIRST)["Cosine to 0"][0]
    assert runs[0].losses == pytest.approx(losses(schedule_of(settings, {})), abs=4e-3)
    assert runs[0].peak_lr == pytest.approx(settings["lr"], rel=1e-6)
    missing = ByteRow(FIRST, "x", {0.1: RateTrials(first[0].rates[0.003].trials, {}, 3)})
    assert logged_runs([missing]) == []


def test_predictions_are_close_for_a_model_that_the_forecast_knows(first):
    rest = {name: grid for name, grid in grids(DESK_SCALE, REST).items() if name != "Eigencurve"}
    found = predict_rest(first, rest, DESK_SCALE, {})
    assert set(found.losses) == {*rest, RECOMMENDATION}
    assert "21 schedules and rates" in found.made_by
    for name, grid in rest.items():
        for settings in grid:
            outcome = losses(schedule_of(settings, {}))[-1]
            fall = losses(schedule_of(settings, {}))[0] - outcome
            predicted = found.losses[name][settings["lr"]]
            assert predicted.low <= predicted.loss <= predicted.high
            assert predicted.loss == pytest.approx(outcome, abs=0.03 * fall)  # the forecast assumes a power law
    for rate, points in found.recommended.items():
        assert through_points(points, 2_000, rate).values().max() == pytest.approx(rate, rel=1e-6)


def test_predictions_are_read_by_scale(tmp_path):
    file = tmp_path / "p.json"
    file.write_bytes(SOME.file("desk"))
    assert committed_predictions("desk", file) == SOME
    assert committed_predictions("smoke", file) is None
    assert committed_predictions("desk", tmp_path / "none.json") is None


def test_numbers_must_be_finite():
    broken = SOME.to_dict() | {"losses": {"Linear": {"0.1": [float("nan"), 1.0, 2.0]}}}
    with pytest.raises(ValueError, match="committed_predictions: 'losses' must be finite, got nan"):
        Predictions.from_dict(broken)
