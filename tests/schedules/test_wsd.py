import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import eigencurve as ec
from eigencurve._check import ArgumentValueError
from eigencurve.schedules.decays import TAILS


def test_wsd_rises_stays_and_falls_within_its_horizon():
    f = ec.wsd(100, lr=1.0, decay_steps=20, warmup_steps=9, min_lr=0.5)
    values = f.values()
    assert len(values) == f.total_steps == 100
    assert_allclose(values[:9], np.arange(1, 10) / 10)
    assert (values[9:80] == 1.0).all()
    assert_allclose(values[80:], 1 - 0.5 * np.arange(20) / 20)
    assert_allclose(ec.wsd(20, lr=1.0, decay_steps=20).values(), ec.linear(20, lr=1.0).values())


@given(T=st.integers(1, 500), share=st.floats(0.01, 1))
def test_the_decay_is_a_fraction_of_the_run(T, share):
    values = ec.wsd(T, lr=1.0, decay=share).values()
    decay = max(1, int(np.floor(share * T + 0.5)))
    assert (values[: T - decay] == 1).all()
    assert_array_equal(values[T - decay :], ec.linear(decay, 1.0).values())


def test_a_fifth_of_the_run_decays_by_default():
    assert ec.wsd(100, 0.1) == ec.wsd(100, 0.1, decay=0.2) == ec.wsd(100, 0.1, decay_steps=ec.schedules.fraction(0.2))
    assert ec.wsd(100, 0.1, 20) == ec.wsd(100, 0.1)
    assert ec.wsd(1, 0.1).values().tolist() == [0.1]


@pytest.mark.parametrize("tail", TAILS)
def test_every_tail_falls_from_lr_to_its_last_rate(tail):
    f = ec.wsd(1000, lr=0.5, decay=0.4, tail=tail, min_lr=0.005)
    values = f.values()
    assert (values[:601] == 0.5).all()
    assert (np.diff(values[600:]) < 0).all()
    assert 0.005 <= values[-1] < 0.03


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("linear", "linear"), ("cosine", "cosine"), ("1-sqrt", "1-sqrt")],
)
def test_tails_agree_with_transformers(ours, theirs):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    scheduler = transformers.get_wsd_schedule(
        optimizer, num_warmup_steps=0, num_stable_steps=60, num_decay_steps=40, decay_type=theirs, min_lr_ratio=0.1
    )
    seen = []
    for _ in range(100):
        seen.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    assert_allclose(ec.wsd(100, lr=0.5, decay_steps=40, min_lr=0.05, tail=ours).values(), seen, rtol=1e-12)


def test_cycles_return_to_the_rate_at_once():
    f = ec.wsd_cycles(300, lr=1.0, num_cycles=3, decay=0.25)
    one = ec.wsd(100, lr=1.0, decay=0.25).values()
    assert_array_equal(f.values(), np.tile(one, 3))
    assert_array_equal(ec.wsd_cycles(300, 1.0, ends=[100, 200], decay=0.25).values(), f.values())
    assert ec.wsd_cycles(100, 1.0, num_cycles=1).values().tolist() == ec.wsd(100, 1.0).values().tolist()


def test_cycles_end_where_they_are_told_and_begin_with_a_warmup():
    f = ec.wsd_cycles(400, lr=1.0, ends=[ec.schedules.fraction(0.25), 200, 400], decay=0.1, warmup_steps=9, min_lr=0.1)
    values = f.values()
    assert f.total_steps == 400
    assert_allclose(values[:9], np.arange(1, 10) / 10)
    assert np.flatnonzero(np.diff(values) > 0.5).tolist() == [99, 199]
    for end, decay in ((100, 10), (200, 10), (400, 20)):
        assert_allclose(values[end - decay : end], ec.linear(decay, 1.0, 0.1).values())


def test_the_inverse_tail_interpolates_the_inverse_of_the_rate():
    """As in WSD-S: 1/eta rises linearly."""
    values = ec.wsd_cycles(200, lr=1.0, num_cycles=2, decay=0.5, tail="inverse", min_lr=0.1).values()
    assert_allclose(1 / values[50:100], np.linspace(1, 10, 50))


@pytest.mark.parametrize("T", [1, 2, 3, 4])
def test_short_runs_have_as_many_cycles_as_steps(T):
    assert ec.wsd_cycles(T, 1.0).total_steps == T


@pytest.mark.parametrize(
    ("call", "function", "argument"),
    [
        (lambda: ec.wsd(10, 0.1, decay_steps=8, warmup_steps=3), "wsd", "decay_steps"),
        (lambda: ec.wsd(10, 0.1, decay_steps=0), "wsd", "decay_steps"),
        (lambda: ec.wsd(10, 0.1, decay_steps=2, decay=0.2), "wsd", "decay"),
        (lambda: ec.wsd(10, 0.1, decay=20), "wsd", "decay"),
        (lambda: ec.wsd(10, 0.1, decay=0), "wsd", "decay"),
        (lambda: ec.wsd(10, 0.1, tail="slow"), "wsd", "tail"),
        (lambda: ec.wsd(10, 0.1, tail="exponential"), "wsd", "min_lr"),
        (lambda: ec.wsd(10, 0.1, min_lr=0.2), "wsd", "min_lr"),
        (lambda: ec.wsd_cycles(10, 0.1, num_cycles=11), "wsd_cycles", "num_cycles"),
        (lambda: ec.wsd_cycles(10, 0.1, num_cycles=0), "wsd_cycles", "num_cycles"),
        (lambda: ec.wsd_cycles(10, 0.1, num_cycles=2, ends=[5]), "wsd_cycles", "num_cycles"),
        (lambda: ec.wsd_cycles(10, 0.1, ends=[5, 4]), "wsd_cycles", "ends"),
        (lambda: ec.wsd_cycles(10, 0.1, ends=[5, 11]), "wsd_cycles", "ends"),
        (lambda: ec.wsd_cycles(10, 0.1, ends=[5], warmup_steps=5), "wsd_cycles", "warmup_steps"),
    ],
)
def test_bad_settings_are_refused(call, function, argument):
    with pytest.raises(ArgumentValueError) as error:
        call()
    assert (error.value.function, error.value.argument) == (function, argument)
