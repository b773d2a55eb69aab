import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


EXAMPLE = Path(__file__).parents[2] / "examples" / "forecast_training.py"


def test_the_forecast_is_close_to_the_trained_loss(capsys):
    names = runpy.run_path(str(EXAMPLE))
    trained, expected = names["trained"].losses[-1], names["expected"]
    # Twice the width of the 80 % interval: other versions of PyTorch draw other random numbers.
    assert abs(trained - expected.loss[-1]) < 2 * (expected.high[-1] - expected.low[-1])
    assert trained < names["runs"][0].losses[-1]
    assert "forecast loss" in capsys.readouterr().out
