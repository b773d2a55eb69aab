"""Every bound holds for the exact expected loss; how tight it is; and where the paper's text does not hold."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference import quadratic as reference
from tests.reference.allocation import interval_lengths, schedule_for
from tests.reference.problems import pieces, problems, spectra

import eigencurve as ec
from eigencurve.theory import bounds
from eigencurve.theory.certificate import greedy_schedule

steps = st.integers(1, 20_000)
SLACK = 1 + 1e-9  # rounding only


def brackets(parts, bound):
    assert parts.bias <= bound.bias * SLACK + 1e-300
    assert parts.variance <= bound.variance * SLACK
    return parts.loss / bound.total if bound.total else 0.0


class TestProposition1:
    @given(q=problems(), T=st.integers(1, 300))
    def test_is_above_the_coordinatewise_run(self, q, T):
        _, weights, noise, error = pieces(q)
        exact = reference.coordinatewise(weights, noise, error, T)
        assert exact <= bounds.proposition_1(q, T).total * SLACK

    @given(s=spectra(), noise=st.floats(0, 1e3), error=st.floats(0, 1e3), T=st.integers(1, 300))
    def test_is_an_equality_where_the_noise_is_the_same_everywhere(self, s, noise, error, T):
        q = ec.NoisyQuadratic(s, noise, error)
        _, weights, sigma2, e = pieces(q)
        exact = reference.coordinatewise(weights, sigma2, e, T)
        assert_allclose(bounds.proposition_1(q, T).total, exact, rtol=1e-11, atol=1e-300)

    @given(q=problems(smallest=1e-6), T=st.integers(1, 300))
    def test_is_not_below_the_certificate(self, q, T):
        """The steps are at most ½, so max_lr = 1/μ allows them in every coordinate."""
        assert q.lower_bound(T, 1 / q.spectrum.mu) <= bounds.proposition_1(q, T).total * SLACK


class TestProposition2:
    @given(q=problems(), T=steps)
    def test_is_above_inverse_time_decay(self, q, T):
        brackets(q.loss_parts(bounds.inverse_time_of(q, T)), bounds.proposition_2(q, T))

    def test_its_schedule_has_the_papers_rates(self):
        q = ec.NoisyQuadratic(ec.Spectrum([1.0, 5.0], [1, 1]), 1.0, 1.0)
        assert_allclose(bounds.inverse_time_of(q, 4).values(), [1 / 6, 1 / 7, 1 / 8, 1 / 9], rtol=1e-14)

    def test_is_tight(self):
        q = ec.NoisyQuadratic(ec.Spectrum([1.0, 100.0, 1e5], [1e-3, 1, 1e-9]), 1.0, 0.0)
        ratio = brackets(q.loss_parts(bounds.inverse_time_of(q, 10**5)), bounds.proposition_2(q, 10**5))
        assert ratio > 0.999

    def test_the_step_that_its_proof_forgets_matters(self):
        """The proof already shrinks the noise of step k in step k, so its variance is below the true one."""
        q = ec.NoisyQuadratic(ec.Spectrum([1.0], [1]), noise=1.0, initial_error=0.0)  # λ = μ = L = 1
        schedule = bounds.inverse_time_of(q, 3)
        true = q.loss_parts(schedule).variance
        eta = schedule.values()
        proof = 0.5 * sum(eta[k] ** 2 * math.exp(-2 * eta[k:].sum()) for k in range(3))
        assert proof < 0.6 * true
        assert true <= bounds.proposition_2(q, 3).variance  # which counts the noise of a step in full


class TestLemma1:
    @given(q=problems(), T=steps, beta=st.sampled_from([1.1, 1.5, 2.0, 3.0, 10.0]), seed=st.integers(0, 2**31))
    def test_is_above_the_schedule_of_any_lengths(self, q, T, beta, seed):
        count = len(ec.spectrum.group(q.spectrum, beta))
        lengths = T * np.random.default_rng(seed).dirichlet(np.ones(count))
        assume(lengths[0] > 0)
        brackets(q.loss_parts(schedule_for(q.spectrum, lengths, beta)), bounds.lemma_1(q, lengths, beta))

    @pytest.mark.parametrize("kind", ["sqrt", "optimal"])
    @given(q=problems(), T=steps)
    def test_is_above_the_schedules_we_make(self, kind, q, T):
        lengths = interval_lengths(q.spectrum, T, kind)
        assume(lengths[0] > 1e-9)
        brackets(q.loss_parts(schedule_for(q.spectrum, lengths)), bounds.lemma_1(q, lengths))

    @pytest.mark.parametrize(("beta", "constant"), [(2.0, 15.0), (3.0, 3 * math.e**2)])
    def test_its_constant(self, beta, constant):
        q = ec.NoisyQuadratic(ec.Spectrum([1.0], [1]), noise=2.0, initial_error=0.0)
        assert bounds.lemma_1(q, [9.0], beta).variance == pytest.approx(0.5 * constant * 2.0 * beta / (1 + 9))

    def test_how_tight_it_is(self):
        """The bias part is tight to 2 %; the variance part, with its constant 15, is 10 to 40 times too high."""
        q = ec.NoisyQuadratic(ec.Spectrum([1.0, 100.0], [1, 1e-12]), 1.0, 1.0)
        lengths = interval_lengths(q.spectrum, 10**5, "sqrt")
        parts, bound = q.loss_parts(schedule_for(q.spectrum, lengths)), bounds.lemma_1(q, lengths)
        assert 0.97 < parts.bias / bound.bias < 1
        assert 1 / 40 < parts.variance / bound.variance < 1 / 10

    @pytest.mark.parametrize(
        ("lengths", "match"),
        [
            ([1.0], "'lengths' must be one for each of the 2 non-empty groups"),
            ([1.0, -1.0], "'lengths' must be >= 0"),
            ([0.0, 9.0], "'lengths' must be > 0 for the group at mu"),
        ],
    )
    def test_checks_the_lengths(self, lengths, match):
        q = ec.NoisyQuadratic(ec.Spectrum([1.0, 2.0], [1, 1]), 1.0, 1.0)
        with pytest.raises(ValueError, match=match):
            bounds.lemma_1(q, lengths)

    def test_the_papers_number_of_ranges_leaves_out_the_largest_eigenvalue(self):
        """Counterexample: κ = 2 gives log2 κ = 1 range, [1, 2), which contains a thousandth of the eigenvalues."""
        q = ec.NoisyQuadratic(ec.Spectrum([1.0, 2.0], [0.001, 0.999]), noise=1.0, initial_error=0.0)
        T = 1000
        f = ec.inverse_time(T, 1 / 2, 1 / (2 + T - 1))  # Eq. (eta_t) with the one interval Δ_1 = T
        as_written = 7.5 * 1.0 * 2 * 0.001 / (2 + T)
        assert q.expected_loss(f) > 40 * as_written
        brackets(q.loss_parts(ec.eigencurve(q.spectrum, T, 1 / 2)), bounds.theorem_1(q, T))


class TestTheorem1:
    @given(q=problems(), T=steps)
    def test_is_above_eigencurve(self, q, T):
        assume(q.spectrum.kappa > 1)
        brackets(q.loss_parts(ec.eigencurve(q.spectrum, T, 1 / q.spectrum.L)), bounds.theorem_1(q, T))

    @given(q=problems(), T=steps)
    def test_follows_from_lemma_1(self, q, T):
        lemma, theorem = bounds.lemma_1(q, interval_lengths(q.spectrum, T, "sqrt")), bounds.theorem_1(q, T)
        assert_allclose(lemma.bias, theorem.bias, rtol=1e-9)
        assert lemma.variance <= theorem.variance * SLACK

    def test_its_variance_is_the_extra_term(self):
        s = ec.Spectrum([1.0, 3.0, 9.0, 50.0], [8, 4, 2, 1])
        bound = bounds.theorem_1(ec.NoisyQuadratic(s, 2.0, 1.0), 500)
        assert_allclose(bound.variance, 15 * ec.extra_term(s) * 2.0 / 500, rtol=1e-12)

    def test_needs_eigenvalues_at_mu(self):
        q = ec.NoisyQuadratic(ec.Spectrum([1.0, 4.0], [0, 1]), 1.0, 1.0)
        with pytest.raises(ValueError, match=r"theorem_1: 'spectrum' must be a spectrum with .* in \[mu, mu beta\)"):
            bounds.theorem_1(q, 10)


class TestCorollary1:
    @settings(max_examples=50)
    @given(
        alpha=st.floats(1.05, 4), kappa=st.floats(1.5, 1e4), T=steps, noise=st.floats(0, 1e3), error=st.floats(0, 1e3)
    )
    def test_is_above_eigencurve_of_the_law(self, alpha, kappa, T, noise, error):
        law = ec.PowerLaw(alpha, 1.0, kappa)
        q = ec.NoisyQuadratic(law.spectrum(128), noise, error)
        parts = q.loss_parts(ec.eigencurve(law, T, 1 / law.L))
        ratio = brackets(parts, bounds.corollary_1(law, T, noise, error))
        assert ratio < 0.1  # at least ten times too high

    @given(alpha=st.floats(1.05, 4), kappa=st.floats(1.5, 1e6))
    def test_its_constant_is_above_both_of_its_proof(self, alpha, kappa):
        share = ec.spectrum.group(ec.PowerLaw(alpha, 1.0, kappa)).share
        spread = np.sqrt(share).sum() ** 2
        constant = bounds.power_law_constant(alpha)
        assert spread / share[0] <= constant * SLACK
        assert 15 * spread <= constant * SLACK

    def test_its_constant_is_met_for_a_wide_law(self):
        law = ec.PowerLaw(3.0, 1.0, 1e12)
        share = ec.spectrum.group(law).share
        # the proof drops 1 - 2^(1-α) = ¾
        assert_allclose(15 * np.sqrt(share).sum() ** 2 / 0.75, bounds.power_law_constant(3.0), rtol=1e-4)

    @pytest.mark.parametrize("alpha", [1.0, 0.5])
    def test_needs_a_skewed_law(self, alpha):
        with pytest.raises(ValueError, match="'alpha' must be > 1"):
            bounds.corollary_1(ec.PowerLaw(alpha, 1.0, 10.0), 100, 1.0, 1.0)


class TestCorollary2:
    @given(
        octaves=st.integers(1, 12), T=steps, noise=st.floats(0, 1e3), error=st.floats(0, 1e3), top=st.floats(1, 1.99)
    )
    def test_is_above_eigencurve_in_the_worst_case(self, octaves, T, noise, error, top):
        eigenvalues = np.append(2.0 ** np.arange(octaves), 2.0 ** (octaves - 1) * top)
        assume(eigenvalues[-1] > 1)
        q = ec.NoisyQuadratic(ec.Spectrum(eigenvalues, [1.0] * octaves + [1e-9]), noise, error)
        parts = q.loss_parts(ec.eigencurve(q.spectrum, T, 1 / q.spectrum.L))
        bound = bounds.corollary_2(q, T)
        brackets(parts, bound)
        assert_allclose(bound.variance, bounds.theorem_1(q, T).variance, rtol=1e-3)

    @given(q=problems(), T=steps)
    def test_its_variance_is_the_largest_of_theorem_1(self, q, T):
        share = float(ec.spectrum.group(q.spectrum).share[0])
        assume(ec.spectrum.group(q.spectrum).index[0] == 0 and share >= 1 / bounds.octave_count(q))
        assert bounds.theorem_1(q, T).variance <= bounds.corollary_2(q, T).variance * SLACK

    def test_its_variance_is_that_of_equal_octaves(self):
        """Three octaves, noise 2 and 10 steps: 15 · 3/10 · 2 = 9, for equal shares also in Theorem 1."""
        for weights, is_equal in (([1, 1, 1], True), ([8, 1, 1], False)):
            q = ec.NoisyQuadratic(ec.Spectrum([1.0, 2.0, 4.0], weights), noise=2.0, initial_error=1.0)
            assert bounds.corollary_2(q, 10).variance == pytest.approx(9.0)
            assert (bounds.theorem_1(q, 10).variance == pytest.approx(9.0)) == is_equal

    def test_log_kappa_in_place_of_the_number_of_octaves_does_not_hold(self):
        """Counterexample: κ = 1.001 has one octave, but log2 κ = 0.0014."""
        q = ec.NoisyQuadratic(ec.Spectrum([1.0, 1.001], [1, 1]), noise=1.0, initial_error=0.0)
        loss = q.expected_loss(ec.eigencurve(q.spectrum, 1000, 1 / q.spectrum.L))
        as_written = 15 * math.log2(q.spectrum.kappa) / 1000
        assert loss > 20 * as_written
        assert loss < bounds.corollary_2(q, 1000).total

    def test_its_bias_is_no_worst_case(self):
        """Counterexample: nearly all eigenvalues are far from μ, and nearly all of the initial error is at μ."""
        share = 1e-8
        s = ec.Spectrum([1.0, 15.0], [share, 1 - share])
        q = ec.NoisyQuadratic(s, noise=0.0, initial_error=[1 / share, 0.0])
        T = 1000
        loss = q.expected_loss(ec.eigencurve(s, T, 1 / s.L))
        as_written = 0.5 * (s.kappa * math.log2(s.kappa) / T) ** 2
        assert loss > 30 * as_written
        with pytest.raises(ValueError, match="a share of at least 1/4 in its first octave"):
            bounds.corollary_2(q, T)
        assert loss < bounds.theorem_1(q, T).total


class TestStepDecay:
    @settings(max_examples=60)
    @given(q=problems(max_kappa=1e6, smallest=1e-3), T=st.integers(1_333_443, 10**8), rate=st.floats(1e-3, 1))
    def test_is_below_step_decay(self, q, T, rate):
        lr = rate / q.spectrum.L
        try:
            bound = bounds.step_decay_lower_bound(q, T, lr)
        except ValueError:  # T is too short for this noise
            assume(False)
        # in closed form, one interval at a time
        assert bound <= step_decay_loss(q, T, lr)

    def test_how_tight_it_is(self):
        """About a hundredth of the loss if the bias is negligible at all eigenvalues."""
        q = ec.NoisyQuadratic(ec.Spectrum(2.0 ** np.arange(8), np.ones(8)), 1.0, 1.0)
        T = 2**21
        ratio = q.expected_loss(ec.step_decay(T, 1 / 128)) / bounds.step_decay_lower_bound(q, T, 1 / 128)
        assert 90 < ratio < 120

    @pytest.mark.parametrize(
        ("T", "lr", "noise", "error", "match"),
        [
            (10**6, 1.0, 1.0, 1.0, r"T / log2 T >= 65536"),
            (2 * 10**6, 1.1, 1.0, 1.0, r"'lr' must be <= 1/L = 1"),
            (2 * 10**6, 1e-7, 1.0, 0.0, r"T / log2 T > 1 / \(8 lr mu\)"),
            (2 * 10**6, 1e-7, 1e9, 1.0, r"T / log2 T > 1 / \(8 lr mu\)"),
            (2 * 10**6, 0.0, 1.0, 1.0, r"'lr' must be > 0"),
        ],
    )
    def test_checks_its_condition(self, T, lr, noise, error, match):
        with pytest.raises(ValueError, match=match):
            bounds.step_decay_lower_bound(ec.NoisyQuadratic(ec.Spectrum([1.0], [1]), noise, error), T, lr)

    def test_the_remark_replaces_the_initial_error(self):
        q = ec.NoisyQuadratic(ec.Spectrum([0.5, 1.0], [1, 1]), 1.0, 0.0)
        bound = bounds.step_decay_lower_bound(q, 2**21, 1.0)
        assert 0 < bound <= q.expected_loss(ec.step_decay(2**21, 1.0))


def step_decay_loss(q, T, lr):
    """The loss of step decay for up to 1e8 steps: one constant run per interval, floor(log2 T) in all."""
    count = T.bit_length() - 1
    ends = [math.ceil(k * T / count) for k in range(count + 1)]
    bias, variance = q.initial_error.copy(), np.zeros(len(q.spectrum))
    for k in range(count):
        x = lr / 2**k * q.spectrum.eigenvalues
        with np.errstate(divide="ignore"):  # x = 1: log 0
            keep = np.exp(2 * (ends[k + 1] - ends[k]) * np.log1p(-x))
        bias, variance = keep * bias, keep * variance + x / (2 - x) * (1 - keep) * q.noise
    return 0.5 * float(q.spectrum.weights @ (bias + variance))


class TestMinimaxRate:
    @given(q=problems(smallest=1e-3), T=st.integers(1, 10**6))
    def test_is_the_certificate_of_the_worst_start(self, q, T):
        rate = bounds.minimax_rate(q, T)
        far = ec.NoisyQuadratic(q.spectrum, q.noise, 1e12)
        assert_allclose(far.lower_bound(T, 1 / q.spectrum.mu), rate, rtol=1e-8)
        assert q.lower_bound(T, 1 / q.spectrum.mu) <= rate * SLACK

    @given(T=st.integers(1, 500), error=st.floats(1, 1e6))
    def test_one_eigenvalue_attains_it(self, T, error):
        q = ec.NoisyQuadratic(ec.Spectrum([3.0], [1]), 1.0, error)
        f = greedy_schedule(q.nodes, 0, T, 1 / 3)
        assert q.expected_loss(f) <= bounds.minimax_rate(q, T) * SLACK
        assert_allclose(q.expected_loss(f), bounds.minimax_rate(q, T), rtol=2 / (T * error))

    @given(q=problems(), T=steps)
    def test_eigencurve_promises_at_least_thirty_times_as_much(self, q, T):
        """15 (Σ√s)² against d/2: Theorem 1 guarantees the minimax rate times 30 times the extra term."""
        assert 30 * bounds.minimax_rate(q, T) <= bounds.theorem_1(q, T).variance * SLACK


ONE = ec.NoisyQuadratic(ec.Spectrum([1.0, 2.0], [1, 1]), 1.0, 1.0)
CALLS = {
    "proposition_1": bounds.proposition_1, "proposition_2": bounds.proposition_2, "theorem_1": bounds.theorem_1,
    "corollary_2": bounds.corollary_2, "minimax_rate": bounds.minimax_rate,
    "inverse_time_of": bounds.inverse_time_of,
    "step_decay_lower_bound": lambda q, T: bounds.step_decay_lower_bound(q, T, 0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_every_bound_checks_its_problem(name):
    with pytest.raises(ValueError, match=rf"{name}: 'total_steps' must be >= 1, got 0"):
        CALLS[name](ONE, 0)
    with pytest.raises(TypeError, match=rf"{name}: 'problem' must be a NoisyQuadratic"):
        CALLS[name]("problem", 10)
    with pytest.raises(ValueError, match=rf"{name}: 'momentum' must be 0, got 0.9"):
        CALLS[name](ec.NoisyQuadratic(ONE.spectrum, 1.0, 1.0, 0.9), 10)
    with pytest.raises(ValueError, match=rf"{name}: 'noise_power' must be 0, got 0.5"):
        CALLS[name](ec.NoisyQuadratic(ONE.spectrum, 1.0, 1.0, noise_power=0.5), 10)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((ec.PowerLaw(2.0, 1.0, 9.0), 0, 1.0, 1.0), "'total_steps' must be >= 1"),
        ((ec.PowerLaw(2.0, 1.0, 9.0), 9, -1.0, 1.0), "'noise' must be >= 0"),
        ((ec.PowerLaw(2.0, 1.0, 9.0), 9, 1.0, -1.0), "'initial_error' must be >= 0"),
    ],
)
def test_corollary_1_checks_its_numbers(arguments, match):
    with pytest.raises(ValueError, match=match):
        bounds.corollary_1(*arguments)


def test_corollary_1_is_about_a_law():
    with pytest.raises(TypeError, match="'law' must be a PowerLaw"):
        bounds.corollary_1(ONE, 9, 1.0, 1.0)


def test_upper_bounds_take_the_largest_noise_and_lower_bounds_the_smallest():
    q = ec.NoisyQuadratic(ec.Spectrum([1.0, 2.0], [1, 1]), [1.0, 4.0], 1.0)
    top, low = (ec.NoisyQuadratic(q.spectrum, sigma2, 1.0) for sigma2 in (4.0, 1.0))
    for bound in (bounds.proposition_1, bounds.proposition_2, bounds.theorem_1, bounds.corollary_2):
        assert bound(q, 50) == bound(top, 50)
    T = 2**21
    assert bounds.step_decay_lower_bound(q, T, 0.5) == bounds.step_decay_lower_bound(low, T, 0.5)
