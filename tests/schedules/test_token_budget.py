import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import eigencurve as ec

SCHEDULES = [ec.cosine(200, 0.1), ec.step_decay(200, 0.1), ec.warmup(ec.rex(190, 0.1), 10), ec.wsd_cycles(200, 0.1)]


@pytest.mark.parametrize("f", SCHEDULES, ids=lambda f: f.kind)
@pytest.mark.parametrize("batch", [1, 512, 3 * 2**19 + 1])
def test_batches_of_one_size_change_nothing(f, batch):
    g = ec.over_tokens(f, budget=200 * batch, tokens_per_step=batch)
    assert g.total_steps == 200
    assert_allclose(g.values(), f.values(), rtol=1e-9)


@given(batches=st.lists(st.integers(1, 1000), min_size=1, max_size=60), data=st.data())
def test_the_rate_is_that_of_the_tokens_seen(batches, data):
    f, total = ec.linear(1000, 1.0), sum(batches)
    budget = data.draw(st.integers(max(1, total - batches[-1] + 1), total))
    g = ec.over_tokens(f, budget, lambda step: batches[step])
    assert g.total_steps == len(batches)
    seen = np.concatenate(([0], np.cumsum(batches)[:-1]))
    assert_array_equal(g.tokens_before(np.arange(len(batches))), seen)
    # The inner schedule ends at its last step, a thousandth before zero.
    assert_allclose(g.values(), np.maximum(1 - seen / budget, 1e-3), atol=1e-9)


def test_a_list_a_function_and_a_tuple_are_the_same_run():
    f = ec.cosine(100, 0.1)
    pairs = [(0, 1000), (20, 2000), (50, 4000)]
    g = ec.over_tokens(f, 200_000, pairs)
    assert g == ec.over_tokens(f, 2e5, lambda step: 1000 if step < 20 else 2000 if step < 50 else 4000.0)
    assert g == ec.over_tokens(f, 200_000, tuple(pairs))
    assert g.total_steps == 50 + (200_000 - 20_000 - 60_000) // 4000


def test_a_change_after_the_end_has_no_effect_and_jumps_stay_sharp():
    f = ec.multistep(100, 1.0, [50])
    early = ec.over_tokens(f, 10_000, [(0, 100), (10, 300), (99, 5)])
    values = early.values()
    assert set(values) == {1.0, 0.1}
    seen = early.tokens_before(np.arange(early.total_steps))
    assert_array_equal(values == 1.0, seen < 5000)


@pytest.mark.parametrize(
    ("budget", "tokens", "match"),
    [
        (0, 10, r"over_tokens: 'budget' must be > 0"),
        (10.5, 10, r"over_tokens: 'budget' must be a whole number"),
        (100, 0, r"over_tokens: 'tokens_per_step' must be > 0"),
        (100, [(1, 10)], r"pairs \(first step, tokens per step\) with increasing steps from 0"),
        (100, [(0, 10), (0, 20)], r"increasing steps from 0"),
        (100, [], r"increasing steps from 0"),
        (100, lambda _: -1, r"'tokens_per_step' must be > 0"),
    ],
)
def test_refuses_bad_settings(budget, tokens, match):
    with pytest.raises(ValueError, match=match):
        ec.over_tokens(ec.cosine(10, 0.1), budget, tokens)


def test_only_schedules_are_converted():
    with pytest.raises(TypeError, match="over_tokens: 'schedule' must be a Schedule"):
        ec.over_tokens(0.1, 100, 10)
