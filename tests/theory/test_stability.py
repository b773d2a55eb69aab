import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigencurve.theory.stability import adam_stability_limit, largest_stable_adam_rate, stability_report

RATES = st.floats(1e-6, 10.0)
BETAS = st.floats(0.0, 0.99)
DECAYS = st.sampled_from([0.0, 1e-4, 0.1])


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
