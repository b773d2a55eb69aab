import pytest

from paper.byte_text.predictions import PredictedLoss, Predictions, committed_predictions

SOME = Predictions("a fit", {"Linear": {0.003: PredictedLoss(1.25, 1.2, 1.3)}}, {0.003: [[0.0, 1.0], [1.0, 0.5]]})


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
