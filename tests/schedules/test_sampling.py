import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eigencurve as ec
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.sampling import first_step_below, peak_rate, sampled_steps, turning_points


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


@given(T=st.integers(1, 500), n=st.integers(0, 50), share=st.floats(0.001, 1.5))
def test_first_step_below_is_the_last_crossing_also_after_a_warmup(T, n, share):
    f = ec.warmup(ec.linear(T, lr=1.0), n)
    values = f.values()
    step = first_step_below(f, share)
    literal = [t for t in range(T + n) if (values[t:] <= share * (1 + 1e-12)).all()]
    assert step == (literal[0] if literal else None)


def test_facts_name_where_the_rate_has_fallen():
    text = ec.linear(100, lr=1.0).describe()
    assert "lr / 2    reached: step 50 (50.0% of training)" in text
    assert "lr / 100  reached: step 99" in text
    assert "never" in ec.constant(10, lr=1.0).describe()


@pytest.mark.parametrize("T", [1, 5, 63, 64, 10**6, 10**12])
def test_the_curve_fits_its_box_for_any_horizon(T):
    lines = ec.cosine(T, lr=0.1).preview(width=40, height=5).splitlines()
    assert len(lines) == 7
    assert all(len(line) <= 60 for line in lines)
    assert lines[0].startswith("0.1 |█")
    if T > 1000:
        assert lines[-1].rstrip().endswith(f"{T - 1:,}")


def test_columns_grow_with_the_rate():
    rows = ec.linear(8, lr=1.0).preview(width=8, height=8).splitlines()[:8]
    heights = [sum(row[3 + column] != " " for row in rows) for column in range(8)]
    assert heights == sorted(heights, reverse=True)
    assert np.ptp(heights) >= 6


def test_refuses_a_box_without_room():
    with pytest.raises(ValueError, match="preview: 'width' must be >= 2"):
        ec.constant(3, 0.1).preview(width=1)
