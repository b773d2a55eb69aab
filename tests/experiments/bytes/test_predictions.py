import json

import pytest

from eigencurve.experiments.bytes.predictions import Predictions, committed_predictions


def test_predictions_are_read_by_scale(tmp_path):
    file = tmp_path / "p.json"
    file.write_text(json.dumps({"desk": {"made_by": "a fit", "losses": {"Linear": {"0.003": 1.25}}}}))
    assert committed_predictions("desk", file) == Predictions("a fit", {"Linear": {0.003: 1.25}})
    assert committed_predictions("smoke", file) is None
    assert committed_predictions("desk", tmp_path / "none.json") is None


def test_numbers_must_be_finite():
    with pytest.raises(ValueError, match="committed_predictions: 'losses' must be finite, got nan"):
        Predictions.from_dict({"made_by": "", "losses": {"Linear": {"0.1": float("nan")}}})
