import numpy as np
import pytest

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.sampling import peak_rate, sampled_steps, turning_points


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


def test_a_schedule_of_an_unknown_class_may_turn_anywhere():
    class Saw(Schedule):
        kind = "saw"

        def _rates(self, steps):
            return 0.1 + 0.05 * (steps % 3)

    assert peak_rate(Saw(10, 0.1)) == pytest.approx(0.2)
    assert len(turning_points(Saw(10, 0.1))) == 10
