import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference.problems import problems, schedules
from tests.spectrum.test_noise import noise
from tests.spectrum.test_start import START

import eigencurve as ec

S = ec.Spectrum([0.01, 0.1, 0.5, 2.0], [5, 3, 1, 1])
SCHEDULES = {"cosine": ec.cosine(200, 0.5), "eigencurve": ec.eigencurve(S, 200, 0.5), "linear": ec.linear(200, 0.1)}


@given(q=problems(), scale=st.floats(1e-3, 1e3), data=st.data())
def test_only_rate_times_eigenvalue_matters(q, scale, data):
    f = data.draw(schedules(1 / q.spectrum.L))
    s = q.spectrum
    other = ec.NoisyQuadratic(ec.Spectrum(s.eigenvalues * scale, s.weights), q.noise, q.initial_error)
    g = ec.piecewise(f.total_steps, np.arange(f.total_steps), f.values() / scale)
    # x and 1 - x have an error of 1e-16, and 1 - x may be zero
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
        ({"nesterov": True}, ValueError, r"'momentum' must be > 0 with nesterov=True, got 0.0"),
        ({"noise_power": -0.1}, ValueError, r"'noise_power' must be >= 0, got -0.1"),
        ({"noise_power": 4.5}, ValueError, r"'noise_power' must be <= 4, got 4.5"),
        ({"noise_power": "one"}, TypeError, r"'noise_power' must be a number"),
        (
            {"noise_power": 0.5, "momentum": 0.9},
            ValueError,
            r"'noise_power' must be 0 with momentum = 0.9, got 0.5. Noise that follows the rate is available for SGD w",
        ),
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
        (
            lambda q: q.compare({"a": ec.constant(9, 0.1), "b": ec.constant(9, 0.001)}, max_lr=0.01),
            ValueError,
            r"'max_lr' must be >= the largest rate of the schedules \(0.1\)",
        ),
    ],
)
def test_refuses_a_bad_question(call, error, match):
    with pytest.raises(error, match=match):
        call(ec.NoisyQuadratic(S, 1.0, 1.0))


def test_there_is_no_certificate_with_momentum():
    q = ec.NoisyQuadratic(S, 1.0, 1.0, momentum=0.9)
    with pytest.raises(ValueError, match=r"'momentum' must be 0, got 0.9. There is no certificate with momentum."):
        q.lower_bound(10, 1.0)
    found = q.search_best(10, q.stable_rate)
    assert (found.lower_bound, found.gap) == (None, None)


def test_is_a_value():
    q = ec.NoisyQuadratic(S, 1.0, [1, 2, 3, 4])
    twin = pickle.loads(pickle.dumps(q))
    assert twin == q
    assert hash(twin) == hash(q)
    assert q != ec.NoisyQuadratic(S, 2.0, [1, 2, 3, 4])
    assert q != "q"
    assert "noise=1, initial_error=1...4, momentum=0" in repr(q)
    heavy, nesterov = (ec.NoisyQuadratic(S, 1.0, 1.0, 0.9, kind) for kind in (False, True))
    assert heavy != nesterov
    assert "momentum=0.9, nesterov=True" in repr(nesterov)
    assert pickle.loads(pickle.dumps(nesterov)) == nesterov
    follows = ec.NoisyQuadratic(S, 1.0, [1, 2, 3, 4], noise_power=0.5)
    assert follows != q
    assert hash(follows) != hash(q)
    assert pickle.loads(pickle.dumps(follows)) == follows
    assert repr(follows).endswith("momentum=0, noise_power=0.5)")
    assert "noise_power" not in repr(q)
    with pytest.raises(AttributeError):
        q.momentum = 0.5
    with pytest.raises(ValueError, match="read-only"):
        q.noise[0] = 3.0


def test_measured_noise_and_start_are_read_by_octave():
    spectrum = ec.Spectrum([0.15, 0.3, 2.0, 3.0], [1, 6, 2, 1], dim=10)
    q = ec.NoisyQuadratic(spectrum, noise=noise(), initial_error=START)
    np.testing.assert_array_equal(q.noise, [0.5, 0.5, 1.0, 1.0])
    np.testing.assert_array_equal(q.initial_error, [1.0, 0.5, 2.0, 2.0])
    assert q == ec.NoisyQuadratic(spectrum, noise=q.noise, initial_error=q.initial_error)
    with pytest.raises(TypeError, match="'noise' must be"):
        ec.NoisyQuadratic(spectrum, noise=START)


def test_a_tiny_noise_power_tends_to_none():
    """The certificate is then computed step by step instead of in closed form."""
    plain, tiny = (ec.NoisyQuadratic(S, 3.0, 1.0, noise_power=power) for power in (0.0, 1e-10))
    f = ec.cosine(300, 0.8)
    assert plain == ec.NoisyQuadratic(S, 3.0, 1.0)
    assert_allclose(tiny.expected_loss(f), plain.expected_loss(f), rtol=1e-8)
    assert_allclose(tiny.lower_bound(300, 0.8), plain.lower_bound(300, 0.8), rtol=1e-8)


def test_compare_ranks_by_loss_with_the_gap_to_the_bound():
    q = ec.NoisyQuadratic(S, 1.0, 1.0)
    table = q.compare(SCHEDULES)
    assert (table.max_lr, table.lower_bound) == (q.stable_rate, q.lower_bound(200, q.stable_rate))
    losses = [row.loss for row in table.rows]
    assert losses == sorted(losses)
    assert table.reference == table.best.name
    for row in table.rows:
        assert row.loss == q.expected_loss(SCHEDULES[row.name]) == pytest.approx(row.bias + row.variance)
        assert (row.gap, row.excess) == (pytest.approx(row.loss / table.lower_bound - 1), row.loss / losses[0] - 1)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_tuning_lowers_every_loss(momentum):
    q = ec.NoisyQuadratic(S, 1.0, 1.0, momentum)
    plain, tuned = q.compare(SCHEDULES), q.compare(SCHEDULES, tune_lr=True)
    for row in plain.rows:
        assert tuned[row.name].loss <= row.loss * (1 + 1e-9)
        assert tuned[row.name].peak_lr <= q.stable_rate
        assert tuned[row.name].schedule.kind == row.schedule.kind
        assert (row.gap is None) == (plain.lower_bound is None) == (momentum > 0)


def test_a_schedule_that_diverges_is_the_last_row():
    table = ec.NoisyQuadratic(S, 1.0, 1.0).compare({**SCHEDULES, "too high": ec.constant(200, 5.0)})
    row = table.rows[-1]
    assert (row.name, row.diverged, row.loss, row.gap) == ("too high", True, None, None)
    assert table.max_lr == 5.0  # the bound must also hold for this one


def test_compare_with_noise_that_follows_the_rate():
    q = ec.NoisyQuadratic(S, 3.0, 1.0, noise_power=1.0)
    table = q.compare({"cosine": ec.cosine(200, 0.8), "constant": ec.constant(200, 0.8)}, tune_lr=True)
    assert table.lower_bound == q.lower_bound(200, q.stable_rate)
    assert all(row.gap > 0 for row in table.rows)
