import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference import quadratic as reference
from tests.reference.problems import pieces, powers, problems, schedules

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


@given(q=problems(power=powers), data=st.data())
def test_noise_that_follows_the_rate_is_the_literal_loop(q, data):
    f = data.draw(schedules(2 / q.spectrum.L))
    bias, variance = reference.parts(*pieces(q), f.values().tolist(), power=q.noise_power)
    parts = q.loss_parts(f)
    # the 12 digits of the loop without a power, and the rounding of the power
    assert_allclose([parts.bias, parts.variance], [bias, variance], rtol=2e-12, atol=1e-280)


@pytest.mark.parametrize("power", [0.25, 1.0, 4.0])
def test_a_constant_rate_has_constant_noise(power):
    f = ec.constant(4000, 0.9)
    follows = ec.NoisyQuadratic(S, 3.0, 1.0, noise_power=power).expected_loss(f)
    assert_allclose(follows, ec.NoisyQuadratic(S, 3.0 * 0.9**power, 1.0).expected_loss(f), rtol=1e-14)


@pytest.mark.parametrize("gamma", [0.2, 0.5, 0.75])
def test_a_curvature_that_follows_the_rate_is_a_power_in_the_noise(gamma):
    lam, noise, error, first, power = 0.7, 3.0, 2.0, 0.4, gamma / (1 - gamma)
    rates = ec.cosine(300, 1.5).values()
    effective = first * (rates / first) ** (1 - gamma)
    q = ec.NoisyQuadratic(ec.Spectrum([lam], [1]), noise * first**-power, error, noise_power=power)
    loss = q.expected_loss(ec.piecewise(300, np.arange(300), effective))
    assert_allclose(2 * loss, reference.edge_of_stability(lam, noise, error, rates, first, gamma), rtol=1e-11)


def test_large_rates_with_a_large_power_are_no_divergence():
    """The noise is 1e28 times σ², far above the growth that counts as divergence."""
    q = ec.NoisyQuadratic(ec.Spectrum([1e-7], [1]), 1.0, 1.0, noise_power=4.0)
    assert_allclose(q.expected_loss(ec.constant(1000, 1e7)), 0.5e28)
    with pytest.raises(DivergenceError):
        q.expected_loss(ec.constant(1000, 3e7))


@pytest.mark.parametrize(
    "f",
    [ec.constant(4000, 0.9), ec.constant(4000, 1.0), ec.step_decay(4000, 0.7), ec.elastic_step(4000, 0.99)],
    ids=lambda f: f.kind,
)
def test_the_closed_form_of_equal_rates_is_exact(f):
    """Compared with 80-bit floats, because over so many steps the float64 loop itself is off by more than 1e-12."""
    q = ec.NoisyQuadratic(S, noise=3.0, initial_error=[1.0, 2.0, 3.0, 4.0])
    bias, variance = reference.parts(*pieces(q), f.values().tolist(), number=np.longdouble)
    parts = q.loss_parts(f)
    assert_allclose([parts.bias, parts.variance], [float(bias), float(variance)], rtol=1e-12)


def test_a_rate_at_the_edge_of_stability_keeps_the_bias_and_adds_the_noise():
    q = ec.NoisyQuadratic(ec.Spectrum([2.0], [1]), noise=1.0, initial_error=1.0)
    parts = q.loss_parts(ec.constant(1000, 1.0))  # x = 2: (1 - x)² = 1, x² = 4
    assert (parts.bias, parts.variance) == (0.5, 2000.0)


@settings(max_examples=50)
@given(q=problems(max_size=3, max_kappa=100, momentum=st.floats(0.01, 0.95), nesterov=True), data=st.data())
def test_momentum_is_the_two_by_two_recursion(q, data):
    f = data.draw(schedules(q.stable_rate, max_steps=60))
    expected = reference.momentum_loss(*pieces(q), f.values().tolist(), q.momentum, q.nesterov)
    # When momentum overshoots, moments cancel; the error is relative to the largest one, which stays below this.
    scale = (q.initial_error.max() + q.noise.max()) / (1 - q.momentum) ** 2
    assert_allclose(q.expected_loss(f), expected, rtol=1e-10, atol=1e-11 * scale)


@pytest.mark.parametrize("nesterov", [False, True])
def test_tiny_momentum_tends_to_none(nesterov):
    f = ec.cosine(300, 0.8)
    plain = ec.NoisyQuadratic(S, 1.0, 1.0).expected_loss(f)
    assert_allclose(ec.NoisyQuadratic(S, 1.0, 1.0, 1e-12, nesterov).expected_loss(f), plain, rtol=1e-10)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_is_that_of_pytorch(nesterov):
    """The final weights are linear in the start and in the noise of each step: torch runs each of them alone."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    q = ec.NoisyQuadratic(S, [1.0, 0.5, 2.0, 0.1], [4.0, 1.0, 0.0, 2.0], 0.9, nesterov)
    f = ec.cosine(80, 0.9 * q.stable_rate)
    lam = torch.tensor(S.eigenvalues.copy())
    w = torch.zeros(f.total_steps + 1, len(S), dtype=torch.float64)
    w[-1] = torch.sqrt(torch.tensor(q.initial_error / S.eigenvalues))
    optimizer = torch.optim.SGD([w], lr=1.0, momentum=0.9, nesterov=nesterov)
    for step in range(f.total_steps):
        w.grad = lam * w
        w.grad[step] -= torch.sqrt(torch.tensor(q.noise * S.eigenvalues))
        optimizer.param_groups[0]["lr"] = f(step)
        optimizer.step()
    parts = q.loss_parts(f)
    each = 0.5 * (w.numpy() ** 2) @ (S.weights * S.eigenvalues)
    assert_allclose([parts.variance, parts.bias], [each[:-1].sum(), each[-1]], rtol=1e-11)


@given(q=problems(), data=st.data())
def test_octaves_and_curve_add_up(q, data):
    f = data.draw(schedules(1 / q.spectrum.L))
    parts, curve = q.loss_parts(f), q.loss_curve(f, points=7)
    assert_allclose(parts.octave_bias.sum(), parts.bias, rtol=1e-12, atol=1e-280)
    assert_allclose(parts.octave_variance.sum(), parts.variance, rtol=1e-12, atol=1e-280)
    assert parts.octave.tolist() == ec.spectrum.group(q.spectrum).index.tolist()
    assert (curve.steps[0], curve.steps[-1]) == (0, f.total_steps)
    assert_allclose(curve.loss[0], 0.5 * q.spectrum.weights @ q.initial_error, rtol=1e-12)
    # A point of the curve may split a run of equal rates, which changes the rounding.
    assert_allclose(curve.loss[-1], parts.loss, rtol=1e-12, atol=1e-280)
    assert_allclose(curve.octave_bias.sum(axis=1), curve.bias, rtol=1e-12, atol=1e-280)


def test_a_point_of_the_curve_is_the_loss_of_the_shorter_run():
    q = ec.NoisyQuadratic(S, 1.0, 1.0)
    f = ec.cosine(100, 0.9)
    curve = q.loss_curve(f, points=[3, 50])
    for step, loss in zip(curve.steps, curve.loss, strict=True):
        cut = ec.piecewise(int(step), np.arange(step), f.values()[:step])
        assert_allclose(loss, q.expected_loss(cut), rtol=1e-13)


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
    @pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.3, False), (0.3, True)])
    def test_is_reported_by_name(self, f, momentum, nesterov):
        q = ec.NoisyQuadratic(S, 1.0, 1.0, momentum, nesterov)
        with pytest.raises(
            DivergenceError, match=r"the schedule diverges, detected after .* at the eigenvalue 2"
        ) as caught:
            q.expected_loss(f)
        assert caught.value.eigenvalue == 2.0
        assert caught.value.limit == q.stable_rate
        assert 0 < caught.value.step <= f.total_steps
        with pytest.raises(ec.DivergenceError):
            q.loss_curve(f)
        twin = pickle.loads(pickle.dumps(caught.value))
        assert str(twin) == str(caught.value)

    def test_of_a_simulation_too(self):
        with pytest.raises(DivergenceError):
            self.Q.simulate(ec.constant(3000, 5.0), seed=0, num_replicas=3)

    def test_is_not_a_few_steps_above_the_limit(self):
        f = ec.schedules.join([ec.constant(3, 1.4), ec.constant(50, 0.4)])
        assert_allclose(self.Q.expected_loss(f), sum(reference.parts(*pieces(self.Q), f.values())), rtol=1e-12)

    def test_of_an_eigenvalue_without_a_share_is_none(self):
        q = ec.NoisyQuadratic(ec.Spectrum([1.0, 1000.0], [1, 0]), 1.0, 1.0)
        assert q.expected_loss(ec.constant(10**4, 0.5)) == pytest.approx(1 / 6)


def test_parts_print_as_a_table():
    text = str(ec.NoisyQuadratic(S, 1.0, 1.0).loss_parts(ec.cosine(10, 0.5)))
    assert text.startswith("expected loss 0.")
    assert len(text.splitlines()) == 2 + len(ec.spectrum.group(S))
