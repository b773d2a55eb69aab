import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference import quadratic as reference
from tests.reference.problems import pieces, problems, schedules

import eigencurve as ec
from eigencurve.theory.certificate import greedy_schedule

steps = st.integers(1, 300)
caps = st.floats(1e-3, 3)


@given(q=problems(), T=steps, cap=caps)
def test_is_every_coordinate_at_its_own_best_step(q, T, cap):
    max_lr = cap / q.spectrum.L
    # A coordinate may leave max_lr one step earlier or later if both choices are equally good up to rounding.
    assert_allclose(q.lower_bound(T, max_lr), reference.certificate(*pieces(q), T, max_lr), rtol=1e-11, atol=1e-280)


@given(q=problems(), cap=caps, data=st.data())
def test_no_schedule_is_below_it(q, cap, data):
    max_lr = cap / q.spectrum.L
    f = data.draw(schedules(max_lr))
    try:
        loss = q.expected_loss(f)
    except ec.DivergenceError:  # some rates here are above 2/L
        loss = np.inf
    assert q.lower_bound(f.total_steps, max_lr) <= loss * (1 + 1e-11)


@pytest.mark.parametrize("name", ["constant", "cosine", "linear", "step_decay", "elastic_step", "eigencurve"])
@given(q=problems(max_kappa=1e3), T=st.integers(1, 2000), cap=st.floats(1e-2, 2))
def test_no_classic_schedule_is_below_it(name, q, T, cap):
    max_lr = cap / q.spectrum.L
    if name == "eigencurve":
        if q.spectrum.kappa == 1:
            return
        f = ec.eigencurve(q.spectrum, T, max_lr)
    else:
        f = getattr(ec, name)(T, max_lr)
    assert q.lower_bound(T, max_lr) <= q.expected_loss(f) * (1 + 1e-11)


equal = st.builds(
    lambda lam, count, noise, error: ec.NoisyQuadratic(ec.Spectrum([lam] * count, [1] * count), noise, error),
    st.floats(1e-3, 1e3), st.integers(1, 3), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3),
)  # fmt: skip


@given(q=equal, T=steps, cap=caps)
def test_is_met_where_all_eigenvalues_are_equal(q, T, cap):
    max_lr = cap / q.spectrum.L
    f = greedy_schedule(q.nodes, 0, T, max_lr)
    assert f.values().max() <= max_lr
    assert_allclose(q.expected_loss(f), q.lower_bound(T, max_lr), rtol=1e-11)


@example(q=ec.NoisyQuadratic(ec.Spectrum([1.0], [1]), 0.001, 294.0), T=3, cap=2.0)  # a narrow second minimum
@settings(max_examples=50)
@given(q=equal, T=st.integers(1, 60), cap=st.floats(0.1, 2))
def test_the_search_meets_it_too(q, T, cap):
    max_lr = cap / q.spectrum.L
    found = q.search_best(T, max_lr)
    assert_allclose(found.loss, found.lower_bound, rtol=1e-9)
    assert found.gap >= -1e-11


@given(q=problems(), T=steps, cap=caps)
def test_more_time_and_more_freedom_lower_it(q, T, cap):
    max_lr = cap / q.spectrum.L
    bound = q.lower_bound(T, max_lr)
    assert q.lower_bound(T + 1, max_lr) <= bound * (1 + 1e-11)
    assert q.lower_bound(T, 1.5 * max_lr) <= bound * (1 + 1e-11)
    assert 0 <= bound <= 0.5 * float(q.spectrum.weights @ q.initial_error) * (1 + 1e-11)


def test_without_noise_a_long_step_ends_at_the_minimum():
    s = ec.Spectrum([1.0, 2.0], [1, 1])
    assert ec.NoisyQuadratic(s, 0.0, 1.0).lower_bound(1, max_lr=1.0) == 0.0
    assert_allclose(ec.NoisyQuadratic(s, 0.0, 1.0).lower_bound(3, 0.25), (0.75**6 + 0.5**6) / 4, rtol=1e-14)
    f = greedy_schedule(ec.NoisyQuadratic(s, 0.0, 1.0).nodes, 0, 5, 1.0)
    assert (f.values() == 1.0).all()


def test_known_figure_of_a_published_spectrum(data_path):
    """0.1091 and 0.413 were computed on 128 bins of the spectrum; here all 4,987 eigenvalues with a share are used."""
    p = ec.prepare(ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt")), weight_decay=5e-4)
    assert ec.NoisyQuadratic(p, 1.0, 1.0).lower_bound(39_100, 2 / p.L) == pytest.approx(0.1091, abs=1e-4)
    assert ec.NoisyQuadratic(p, 1e4, 1.0).lower_bound(3_910, 2 / p.L) == pytest.approx(0.413, abs=5e-4)
    assert np.count_nonzero(p.weights) == 4987
