import numpy as np
import pytest

import eigencurve as ec
from eigencurve.adapters.reading import NUM_AHEAD, RateReader


@pytest.mark.parametrize("schedule", [ec.cosine(1000, 0.1), ec.eigencurve(ec.PowerLaw(1.5, 1e-3, 10.0), 1000, 0.1)])
def test_rates_are_those_of_the_schedule_in_any_order(schedule):
    read = RateReader()
    steps = [*range(600), *range(2000, 0, -7), 0, NUM_AHEAD - 1, NUM_AHEAD, 10**6]
    assert [read(schedule, step) for step in steps] == [schedule(step) for step in steps]


def test_another_schedule_is_noticed():
    read, one, other = RateReader(), ec.linear(1000, 0.1), ec.linear(1000, 0.2)
    assert [read(f, 10) for f in (one, other, one)] == [one(10), other(10), one(10)]


def test_rates_are_plain_floats_computed_ahead():
    calls = []

    class Counted(ec.Schedule):
        kind = "counted"

        def _rates(self, steps):
            calls.append(len(steps))
            return np.full(len(steps), 0.1)

    read, schedule = RateReader(), Counted(10_000, 0.1)
    rates = [read(schedule, step) for step in range(3 * NUM_AHEAD)]
    assert calls == [NUM_AHEAD] * 3
    assert {type(rate) for rate in rates} == {float}
