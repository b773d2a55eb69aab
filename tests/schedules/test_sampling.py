import numpy as np
import pytest

from eigencurve.schedules.sampling import sampled_steps


@pytest.mark.parametrize("total_steps", [1, 2, 39, 40])
def test_a_short_run_has_all_its_steps(total_steps):
    assert sampled_steps(total_steps, 20).tolist() == list(range(total_steps))


@pytest.mark.parametrize("total_steps", [41, 1000, 10**7])
def test_a_long_run_has_its_ends_and_is_dense_at_the_last_one(total_steps):
    steps = sampled_steps(total_steps, 20)
    assert (steps[0], steps[-1]) == (0, total_steps - 1)
    assert len(steps) <= 40
    assert (np.diff(steps) > 0).all()
    assert np.diff(steps)[-1] <= np.diff(steps).max() / 2
