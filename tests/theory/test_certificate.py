import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from tests.reference import quadratic as reference
from tests.reference.problems import pieces, powers, problems, schedules

import eigencurve as ec
from eigencurve.theory.certificate import certificates, greedy_schedule

steps = st.integers(1, 300)
caps = st.floats(1e-3, 3)


@given(q=problems(), T=steps, cap=caps)
def test_is_every_coordinate_at_its_own_best_step(q, T, cap):
    max_lr = cap / q.spectrum.L
    # A coordinate may leave max_lr one step earlier or later if both choices are equally good up to rounding.
    assert_allclose(q.lower_bound(T, max_lr), reference.certificate(*pieces(q), T, max_lr), rtol=1e-11, atol=1e-280)


@given(q=st.one_of(problems(), problems(power=powers)), cap=caps, data=st.data())
def test_no_schedule_is_below_it(q, cap, data):
    max_lr = cap / q.spectrum.L
    f = data.draw(schedules(max_lr))
    try:
        loss = q.expected_loss(f)
    except ec.DivergenceError:  # some rates here are above 2/L
        loss = np.inf
    assert q.lower_bound(f.total_steps, max_lr) <= loss * (1 + 1e-11)


@pytest.mark.parametrize("name", ["constant", "cosine", "linear", "step_decay", "elastic_step", "eigencurve"])
@given(
    q=st.one_of(problems(max_kappa=1e3), problems(max_kappa=1e3, power=powers)),
    T=st.integers(1, 2000),
    cap=st.floats(1e-2, 2),
)
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


@given(q=st.one_of(problems(), problems(power=powers)), T=steps, cap=caps)
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
    p = ec.spectrum.prepare(ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt")), weight_decay=5e-4)
    assert ec.NoisyQuadratic(p, 1.0, 1.0).lower_bound(39_100, 2 / p.L) == pytest.approx(0.1091, abs=1e-4)
    assert ec.NoisyQuadratic(p, 1e4, 1.0).lower_bound(3_910, 2 / p.L) == pytest.approx(0.413, abs=5e-4)
    assert np.count_nonzero(p.weights) == 4987


class TestNoiseThatFollowsTheRate:
    @settings(max_examples=40)
    @given(q=problems(max_size=3, power=powers), T=st.integers(1, 80), cap=caps)
    def test_is_every_coordinate_at_its_own_best_step(self, q, T, cap):
        max_lr = cap / q.spectrum.L
        expected = reference.certificate_with_power(*pieces(q), T, max_lr, q.noise_power)
        # without noise, the reference stops at the rounding error of the bisection
        size = q.initial_error.max()
        assert_allclose(q.lower_bound(T, max_lr), expected, rtol=1e-11, atol=1e-30 * size)

    @pytest.mark.parametrize("power", [0.25, 1.0, 4.0])
    @pytest.mark.parametrize("cap", [0.3, 1.0, 2.0])
    @pytest.mark.parametrize("noise", [0.1, 10.0])
    def test_is_met_by_the_best_rates_of_a_single_eigenvalue(self, power, cap, noise):
        """Another method (L-BFGS with finite differences) minimises the literal loop over all rates."""
        lam, T = 0.5, 4
        q = ec.NoisyQuadratic(ec.Spectrum([lam], [1]), noise, 2.0, noise_power=power)
        max_lr, rng = cap / lam, np.random.default_rng(0)
        found = min(
            minimize(
                lambda x: sum(reference.parts(*pieces(q), max_lr * x, power=power)), rng.random(T),
                bounds=[(0, 1)] * T, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10},
            ).fun
            for _ in range(8)
        )  # fmt: skip
        bound = q.lower_bound(T, max_lr)
        assert bound <= found * (1 + 1e-13)
        assert_allclose(bound, found, rtol=1e-7)  # finite differences

    @settings(max_examples=20)
    @given(
        power=powers, lam=st.floats(0.1, 10), noise=st.floats(1e-2, 1e2), error=st.floats(1e-2, 1e2),
        T=st.integers(1, 60), cap=st.floats(0.1, 2),
    )  # fmt: skip
    def test_the_search_meets_it(self, power, lam, noise, error, T, cap):
        q = ec.NoisyQuadratic(ec.Spectrum([lam], [1]), noise, error, noise_power=power)
        found = q.search_best(T, cap / lam)
        assert_allclose(found.loss, found.lower_bound, rtol=1e-7)
        assert found.gap >= -1e-11

    @pytest.mark.parametrize("power", [0.25, 4.0])
    def test_at_several_times_at_once(self, power):
        q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 1e-3, 10.0).spectrum(20), 30.0, 1.0, noise_power=power)
        marks = np.array([0, 1, 7, 100, 101, 3000])
        one_by_one = [certificates(q.nodes, np.array([mark]), 0.15)[0] for mark in marks]
        # each mark restarts Newton's method, which changes the last digits
        assert_allclose(certificates(q.nodes, marks, 0.15), one_by_one, rtol=1e-13)
        assert one_by_one[0] == pytest.approx(0.5)

    def test_of_fifty_thousand_steps_is_below_the_best_schedule_found(self):
        q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 1e-3, 10.0).spectrum(64), 1e3, 1.0, noise_power=0.25)
        f = ec.eigencurve(q.spectrum, 50_000, 1 / q.spectrum.L)
        assert 0 < q.lower_bound(50_000, 1 / q.spectrum.L) < q.expected_loss(f)
