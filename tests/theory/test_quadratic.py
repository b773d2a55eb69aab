import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference import quadratic as reference
from tests.reference.problems import pieces, problems, schedules

import eigencurve as ec
from eigencurve.theory import recursion
from eigencurve.theory.recursion import DivergenceError

S = ec.Spectrum([0.01, 0.1, 0.5, 2.0], [5, 3, 1, 1])


@given(q=problems(), data=st.data())
def test_is_the_literal_loop(q, data):
    f = data.draw(schedules(2 / q.spectrum.L))
    bias, variance = reference.parts(*pieces(q), f.values().tolist())
    parts = q.loss_parts(f)
    assert_allclose([parts.bias, parts.variance], [bias, variance], rtol=1e-12, atol=1e-280)
    assert q.expected_loss(f) == parts.loss == parts.bias + parts.variance


@pytest.mark.parametrize(
    "f",
    [ec.constant(4000, 0.9), ec.constant(4000, 1.0), ec.step_decay(4000, 0.7), ec.elastic_step(4000, 0.99)],
    ids=lambda f: f.kind,
)
def test_the_closed_form_of_equal_rates_is_exact(f):
    """Against 80-bit floats: over so many steps the float64 loop itself is off by more than 1e-12."""
    q = ec.NoisyQuadratic(S, noise=3.0, initial_error=[1.0, 2.0, 3.0, 4.0])
    bias, variance = reference.parts(*pieces(q), f.values().tolist(), number=np.longdouble)
    parts = q.loss_parts(f)
    assert_allclose([parts.bias, parts.variance], [float(bias), float(variance)], rtol=1e-12)


def test_a_rate_at_the_edge_of_stability_keeps_the_bias_and_adds_the_noise():
    q = ec.NoisyQuadratic(ec.Spectrum([2.0], [1]), noise=1.0, initial_error=1.0)
    parts = q.loss_parts(ec.constant(1000, 1.0))  # x = 2: (1 - x)² = 1, x² = 4
    assert (parts.bias, parts.variance) == (0.5, 2000.0)


@settings(max_examples=50)
@given(q=problems(max_size=3, max_kappa=100, momentum=st.floats(0.01, 0.95)), data=st.data())
def test_momentum_is_the_two_by_two_recursion(q, data):
    f = data.draw(schedules(2 / q.spectrum.L, max_steps=60))
    expected = reference.momentum_loss(*pieces(q), f.values().tolist(), q.momentum)
    # Moments cancel where momentum overshoots: the error is that of the largest, which grows no further than this.
    scale = (q.initial_error.max() + q.noise.max()) / (1 - q.momentum) ** 2
    assert_allclose(q.expected_loss(f), expected, rtol=1e-10, atol=1e-11 * scale)


def test_tiny_momentum_tends_to_none():
    f = ec.cosine(300, 0.8)
    plain, with_momentum = (ec.NoisyQuadratic(S, 1.0, 1.0, m).expected_loss(f) for m in (0.0, 1e-12))
    assert_allclose(with_momentum, plain, rtol=1e-10)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("f", [ec.cosine(200, 0.5), ec.step_decay(150, 0.3), ec.warmup(ec.linear(80, 0.4), 9)])
def test_agrees_with_sgd_itself(f, momentum):
    q = ec.NoisyQuadratic(S, noise=[1.0, 0.5, 2.0, 0.1], initial_error=[4.0, 1.0, 0.0, 2.0], momentum=momentum)
    run = q.simulate(f, seed=7, num_replicas=4000)
    assert len(run.losses) == 4000
    # Nine comparisons: 4 standard errors are passed by chance once in 1,700 times, and the seed is fixed.
    assert abs(run.mean - q.expected_loss(f)) < 4 * run.standard_error
    assert run.standard_error < 0.05 * run.mean


def test_simulation_repeats_with_its_seed_and_in_batches(monkeypatch):
    q = ec.NoisyQuadratic(S, 1.0, 1.0)
    f = ec.linear(20, 0.5)
    assert (q.simulate(f, 1, 10).losses == q.simulate(f, 1, 10).losses).all()
    assert (q.simulate(f, 1, 10).losses != q.simulate(f, 2, 10).losses).all()
    monkeypatch.setattr("eigencurve.theory.simulation.BATCH", 12)
    assert len(q.simulate(f, 1, 10).losses) == 10


@given(q=problems(), data=st.data())
def test_octaves_and_curve_add_up(q, data):
    f = data.draw(schedules(1 / q.spectrum.L))
    parts, curve = q.loss_parts(f), q.loss_curve(f, points=7)
    assert_allclose(parts.octave_bias.sum(), parts.bias, rtol=1e-12, atol=1e-280)
    assert_allclose(parts.octave_variance.sum(), parts.variance, rtol=1e-12, atol=1e-280)
    assert parts.octave.tolist() == ec.group(q.spectrum).index.tolist()
    assert (curve.steps[0], curve.steps[-1]) == (0, f.total_steps)
    assert_allclose(curve.loss[0], 0.5 * q.spectrum.weights @ q.initial_error, rtol=1e-12)
    # Stopping between two of its points may split a run of equal rates: the same to rounding.
    assert_allclose(curve.loss[-1], parts.loss, rtol=1e-12, atol=1e-280)
    assert_allclose(curve.octave_bias.sum(axis=1), curve.bias, rtol=1e-12, atol=1e-280)


def test_a_point_of_the_curve_is_the_loss_of_the_shorter_run():
    q = ec.NoisyQuadratic(S, 1.0, 1.0)
    f = ec.cosine(100, 0.9)
    curve = q.loss_curve(f, points=[3, 50])
    for step, loss in zip(curve.steps, curve.loss, strict=True):
        cut = ec.piecewise(int(step), np.arange(step), f.values()[:step])
        assert_allclose(loss, q.expected_loss(cut), rtol=1e-13)


@given(q=problems(), scale=st.floats(1e-3, 1e3), data=st.data())
def test_only_rate_times_eigenvalue_matters(q, scale, data):
    f = data.draw(schedules(1 / q.spectrum.L))
    s = q.spectrum
    other = ec.NoisyQuadratic(ec.Spectrum(s.eigenvalues * scale, s.weights), q.noise, q.initial_error)
    g = ec.piecewise(f.total_steps, np.arange(f.total_steps), f.values() / scale)
    # x is off by 1e-16, and so is 1 - x, which may be zero
    size = q.initial_error.max() + q.noise.max()
    assert_allclose(other.expected_loss(g), q.expected_loss(f), rtol=1e-9, atol=1e-25 * size)


@given(q=problems(smallest=1e-3), factor=st.floats(1e-3, 1e3), data=st.data())
def test_is_linear_in_noise_and_error(q, factor, data):
    f = data.draw(schedules(1 / q.spectrum.L))
    parts = q.loss_parts(f)
    scaled = ec.NoisyQuadratic(q.spectrum, q.noise * factor, q.initial_error).loss_parts(f)
    assert_allclose(scaled.bias, parts.bias, rtol=1e-13)
    assert_allclose(scaled.variance, factor * parts.variance, rtol=1e-12)


def test_shares_count_and_not_nodes():
    f = ec.cosine(50, 0.5)
    one = ec.NoisyQuadratic(ec.Spectrum([1.0, 2.0], [3, 1], dim=4_000_000_000), 1.0, 1.0)
    split = ec.NoisyQuadratic(ec.Spectrum([1.0, 1.0, 1.5, 2.0], [1, 2, 0, 1]), 1.0, 1.0)
    assert_allclose(one.expected_loss(f), split.expected_loss(f), rtol=1e-14)


def test_thousands_of_eigenvalues_are_not_binned():
    rng = np.random.default_rng(0)
    q = ec.NoisyQuadratic(ec.Spectrum(10 ** rng.uniform(-4, 0, 9000), rng.random(9000)), 1.0, rng.random(9000))
    f = ec.cosine(400, 1.5)
    e = q.initial_error.copy()
    for eta in f.values():
        x = eta * q.spectrum.eigenvalues
        e = (1 - x) ** 2 * e + x**2
    assert_allclose(q.expected_loss(f), 0.5 * q.spectrum.weights @ e, rtol=1e-12)


def test_a_million_steps_in_chunks():
    q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 1e-4, 1.0).spectrum(256), 1.0, 1.0)
    f = ec.linear(10**6, 1.0)
    assert f.total_steps > 10 * recursion.CHUNK
    assert_allclose(q.expected_loss(f), recursion.final_loss(q.nodes, f.values()), rtol=1e-13)
    curve = q.loss_curve(f, points=5)
    assert (np.diff(curve.loss) < 0).all()


class TestDivergence:
    Q = ec.NoisyQuadratic(S, noise=1.0, initial_error=1.0)

    @pytest.mark.parametrize("f", [ec.constant(10**5, 1.5), ec.cosine(10**4, 9.0), ec.step_decay(20000, 3.0)])
    @pytest.mark.parametrize("momentum", [0.0, 0.3])
    def test_is_reported_by_name(self, f, momentum):
        q = ec.NoisyQuadratic(S, 1.0, 1.0, momentum)
        with pytest.raises(
            DivergenceError, match=r"the schedule diverges, seen after .* at the eigenvalue 2"
        ) as caught:
            q.expected_loss(f)
        assert caught.value.eigenvalue == 2.0
        assert caught.value.limit == 1 + momentum
        assert 0 < caught.value.step <= f.total_steps
        with pytest.raises(ec.DivergenceError):
            q.loss_curve(f)
        twin = pickle.loads(pickle.dumps(caught.value))
        assert str(twin) == str(caught.value)

    def test_of_a_simulation_too(self):
        with pytest.raises(DivergenceError):
            self.Q.simulate(ec.constant(3000, 5.0), seed=0, num_replicas=3)

    def test_is_not_a_few_steps_above_the_limit(self):
        f = ec.join([ec.constant(3, 1.4), ec.constant(50, 0.4)])
        assert_allclose(self.Q.expected_loss(f), sum(reference.parts(*pieces(self.Q), f.values())), rtol=1e-12)

    def test_of_an_eigenvalue_without_a_share_is_none(self):
        q = ec.NoisyQuadratic(ec.Spectrum([1.0, 1000.0], [1, 0]), 1.0, 1.0)
        assert q.expected_loss(ec.constant(10**4, 0.5)) == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"noise": -1.0}, ValueError, r"NoisyQuadratic: 'noise' must be >= 0, got -1.0"),
        ({"noise": [1.0, 1.0, -2.0, 1.0]}, ValueError, r"'noise' must be >= 0, got -2.0"),
        ({"noise": float("nan")}, ValueError, r"'noise' must be finite"),
        ({"noise": [1.0, 2.0]}, ValueError, r"'noise' must be a number or one for each of the 4 eigenvalues, got '2 v"),
        ({"noise": "loud"}, TypeError, r"'noise' must be a number"),
        ({"initial_error": -0.5}, ValueError, r"'initial_error' must be >= 0"),
        ({"initial_error": [1.0] * 5}, ValueError, r"'initial_error' must be .* 4 eigenvalues, got '5 values'"),
        ({"initial_error": [1, 2, 3, np.inf]}, ValueError, r"'initial_error' must be finite"),
        ({"momentum": -0.1}, ValueError, r"'momentum' must be >= 0"),
        ({"momentum": 1.0}, ValueError, r"'momentum' must be < 1"),
        ({"spectrum": [1.0]}, TypeError, r"'spectrum' must be a Spectrum"),
        ({"spectrum": ec.Spectrum([0.0, 1.0], [1, 1])}, ValueError, r"Call prepare"),
    ],
)
def test_refuses_a_bad_problem(arguments, error, match):
    with pytest.raises(error, match=match):
        ec.NoisyQuadratic(**{"spectrum": S, "noise": 1.0, "initial_error": 1.0, **arguments})


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda q: q.lower_bound(0, 1.0), ValueError, r"lower_bound: 'total_steps' must be >= 1, got 0"),
        (lambda q: q.lower_bound(10, 0.0), ValueError, r"lower_bound: 'max_lr' must be > 0, got 0.0"),
        (lambda q: q.lower_bound(10.0, 1.0), TypeError, r"'total_steps' must be an integer"),
        (lambda q: q.optimal_schedule(0, 1.0), ValueError, r"optimal_schedule: 'total_steps' must be >= 1, got 0"),
        (lambda q: q.search_best(0, 1.0), ValueError, r"search_best: 'total_steps' must be >= 1, got 0"),
        (lambda q: q.optimal_schedule(10, -1.0), ValueError, r"'max_lr' must be > 0, got -1.0"),
        (lambda q: q.expected_loss([0.1]), TypeError, r"expected_loss: 'schedule' must be a Schedule"),
        (lambda q: q.loss_curve(ec.constant(9, 0.1), 1), ValueError, r"'points' must be >= 2"),
        (lambda q: q.loss_curve(ec.constant(9, 0.1), [1, 10]), ValueError, r"'points' must be increasing"),
        (lambda q: q.loss_curve(ec.constant(9, 0.1), [0.5]), TypeError, r"'points' must be a number or"),
        (lambda q: q.simulate(ec.constant(9, 0.1), seed=-1), ValueError, r"'seed' must be >= 0"),
        (lambda q: q.simulate(ec.constant(9, 0.1), 0, 1), ValueError, r"'num_replicas' must be >= 2"),
        (lambda q: q.compare({}), TypeError, r"'schedules' must be a non-empty mapping"),
        (lambda q: q.compare({"a": 1}), TypeError, r"'schedule' must be a Schedule"),
        (
            lambda q: q.compare({"a": ec.constant(9, 0.1), "b": ec.constant(8, 0.1)}),
            ValueError,
            r"'schedules' must be of the same total_steps, got \[8, 9\]",
        ),
        (lambda q: q.compare({"a": ec.constant(9, 0.1)}, max_lr=0.01), ValueError, r"'max_lr' must be >= the largest"),
    ],
)
def test_refuses_a_bad_question(call, error, match):
    with pytest.raises(error, match=match):
        call(ec.NoisyQuadratic(S, 1.0, 1.0))


def test_there_is_no_certificate_with_momentum():
    q = ec.NoisyQuadratic(S, 1.0, 1.0, momentum=0.9)
    for call in (q.lower_bound, q.optimal_schedule):
        with pytest.raises(ValueError, match=r"'momentum' must be 0, got 0.9"):
            call(10, 1.0)


def test_is_a_value():
    q = ec.NoisyQuadratic(S, 1.0, [1, 2, 3, 4])
    twin = pickle.loads(pickle.dumps(q))
    assert twin == q
    assert hash(twin) == hash(q)
    assert q != ec.NoisyQuadratic(S, 2.0, [1, 2, 3, 4])
    assert q != "q"
    assert "noise=1, initial_error=1...4, momentum=0" in repr(q)
    with pytest.raises(AttributeError):
        q.momentum = 0.5
    with pytest.raises(ValueError, match="read-only"):
        q.noise[0] = 3.0


def test_parts_print_as_a_table():
    text = str(ec.NoisyQuadratic(S, 1.0, 1.0).loss_parts(ec.cosine(10, 0.5)))
    assert text.startswith("expected loss 0.")
    assert len(text.splitlines()) == 2 + len(ec.group(S))
