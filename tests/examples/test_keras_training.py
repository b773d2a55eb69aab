from pathlib import Path

import pytest
from tests.adapters.keras_driver import BACKENDS, keras_worker

pytestmark = pytest.mark.slow


EXAMPLE = Path(__file__).parents[2] / "examples" / "keras_training.py"


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_example_runs_and_learns(backend):
    found = keras_worker(backend).call("run_example", path=str(EXAMPLE))
    assert found["loss"] < 0.3
    assert found["steps"] == found["total_steps"] == 240
