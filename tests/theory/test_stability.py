import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import quadratic as reference

import eigencurve as ec
from eigencurve.theory.stability import (
    adam_stability_limit,
    largest_stable_adam_rate,
    largest_stable_rate,
    stability_report,
    stable_rate_formula,
)

RATES = st.floats(1e-6, 10.0)
BETAS = st.floats(0.0, 0.99)
DECAYS = st.sampled_from([0.0, 1e-4, 0.1])


def largest_factor(x, m, nesterov):
    """The largest modulus of the eigenvalues of one step's matrix for (w, v), at λ = 1."""
    matrix = [[1 - x * (1 + m), -x * m * m], [1, m]] if nesterov else [[1 - x, -x * m], [1, m]]
    return np.abs(np.linalg.eigvals(matrix)).max()


@given(m=st.floats(0, 0.99), nesterov=st.booleans(), share=st.floats(0.01, 0.999))
def test_below_the_limit_every_error_shrinks_and_above_it_one_grows(m, nesterov, share):
    limit = largest_stable_rate(1.0, m, nesterov)
    assert largest_factor(share * limit, m, nesterov) < 1
    assert largest_factor(limit / share, m, nesterov) > 1


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("m", [0.3, 0.9])
def test_the_loss_shrinks_below_the_limit_and_explodes_above_it(m, nesterov):
    def loss(rate):
        return reference.momentum_loss([4.0], [1.0], [0.0], [1.0], [rate] * 500, m, nesterov)

    limit = largest_stable_rate(4.0, m, nesterov)
    assert loss(0.9 * limit) < 1e-3
    assert loss(1.1 * limit) > 1e3


def test_without_momentum_it_is_two_over_L():
    s = ec.Spectrum([0.5, 4.0], [1, 1])
    assert ec.NoisyQuadratic(s).stable_rate == largest_stable_rate(4.0) == 0.5
    assert ec.NoisyQuadratic(s, momentum=0.9, nesterov=True).stable_rate == pytest.approx(3.8 / 2.8 / 4)


@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.9, False), (0.9, True)])
def test_the_formula_is_the_number(momentum, nesterov):
    text = stable_rate_formula(momentum, nesterov).replace("(1+2m)L", "(1+2*m)*L").replace("2(", "2*(")
    assert eval(text, {"m": momentum, "L": 7.0}) == pytest.approx(largest_stable_rate(7.0, momentum, nesterov))


def spectral_radius(lam, lr, beta1, weight_decay, averaged=True):
    """Of one step of AdamW with P = 1 on λx²/2, as a matrix on (x, m); or of SGD, whose momentum is not averaged."""
    momentum = np.array([(1 - beta1) * lam if averaged else lam, beta1])
    step = np.array([1 - lr * weight_decay, 0.0]) - lr * momentum
    return np.abs(np.linalg.eigvals(np.stack([step, momentum]))).max()


@given(lr=RATES, beta1=BETAS, weight_decay=DECAYS)
def test_the_limit_separates_stable_from_unstable_steps(lr, beta1, weight_decay):
    limit = adam_stability_limit(lr, beta1, weight_decay)
    assert spectral_radius(0.999 * limit, lr, beta1, weight_decay) < 1
    assert spectral_radius(1.001 * limit, lr, beta1, weight_decay) > 1


@given(lr=st.floats(1e-3, 1.0), beta1=BETAS, weight_decay=st.floats(1e-2, 1.0))
def test_decoupled_decay_shifts_the_lower_end_by_itself(lr, beta1, weight_decay):
    """Negative curvature is stable down to -weight_decay, which is why `prepare` may add the decay."""
    assert spectral_radius(-0.99 * weight_decay, lr, beta1, weight_decay) < 1
    assert spectral_radius(-1.01 * weight_decay, lr, beta1, weight_decay) > 1


@given(lr=st.floats(1e-3, 1.0), momentum=st.floats(0.0, 0.95), weight_decay=st.floats(1e-2, 1.0))
def test_decoupled_decay_of_heavy_ball_shifts_by_less(lr, momentum, weight_decay):
    """docs/hessian.md: SGD sums its gradients, so decoupled decay adds (1 - m) times itself."""
    shift = (1 - momentum) * weight_decay
    assert spectral_radius(-0.99 * shift, lr, momentum, weight_decay, averaged=False) < 1
    assert spectral_radius(-1.01 * shift, lr, momentum, weight_decay, averaged=False) > 1


@given(lr=RATES, beta1=BETAS, weight_decay=DECAYS)
def test_the_largest_rate_is_the_inverse_of_the_limit(lr, beta1, weight_decay):
    limit = adam_stability_limit(lr, beta1, weight_decay)
    assert largest_stable_adam_rate(limit, beta1, weight_decay) == pytest.approx(lr, rel=1e-9)


def test_published_values():
    """arXiv:2207.14484: 38/η for β1 = 0.9; without momentum, the 2/η of gradient descent."""
    assert adam_stability_limit(1e-4) == pytest.approx(38e4)
    assert adam_stability_limit(0.5, beta1=0.0) == pytest.approx(4.0)


def test_the_report_compares_and_prints():
    report = stability_report(L=40.0, lr=1.0)
    assert not report.is_stable
    assert stability_report(L=37.0, lr=1.0).is_stable
    assert str(report) == "λ1 = 40, threshold at lr=1 is 38: 105 % of the limit"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: adam_stability_limit(0.0), r"'lr' must be > 0, got 0.0"),
        (lambda: adam_stability_limit(1.0, beta1=1.0), r"'beta1' must be < 1, got 1.0"),
        (lambda: adam_stability_limit(1.0, weight_decay=2.0), r"'weight_decay' must be < 2/lr = 2, got 2.0"),
        (lambda: largest_stable_adam_rate(-1.0), r"'L' must be > 0, got -1.0"),
        (lambda: stability_report(float("nan"), 1.0), r"'L' must be finite"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
