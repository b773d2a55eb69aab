"""Stability of an optimizer on a quadratic: the largest stable learning rate, and the largest stable eigenvalue."""

from __future__ import annotations

from dataclasses import dataclass

from eigencurve import _check

# The formula of largest_stable_adam_rate without weight decay, as text.
ADAM_RATE_FORMULA = "(2+2β₁)/((1-β₁)L)"


def largest_stable_rate(L: float, momentum: float = 0.0, nesterov: bool = False) -> float:
    r"""The largest constant rate at which the error of no eigenvalue up to L grows.

    .. math:: \frac{2}{L}, \qquad \frac{2(1+m)}{L} \;\text{(heavy ball)}, \qquad
              \frac{2(1+m)}{(1+2m)L} \;\text{(Nesterov momentum as in PyTorch)}

    With :math:`x = \eta\lambda`, one step multiplies (w - w*, v) by a matrix of trace :math:`1+m-qx` and determinant
    :math:`m` (heavy ball, q = 1) or :math:`m(1-x)` (Nesterov, q = 1 + m). Both of its eigenvalues are inside the unit
    circle if and only if |determinant| < 1 and |trace| < 1 + determinant. The limit is where trace = -1 - determinant.

    >>> largest_stable_rate(10.0), largest_stable_rate(10.0, 0.5), largest_stable_rate(10.0, 0.5, nesterov=True)
    (0.2, 0.3, 0.15)
    """
    return 2 * (1 + momentum) / (L * (1 + 2 * momentum) if nesterov else L)


def stable_rate_formula(momentum: float = 0.0, nesterov: bool = False) -> str:
    """The formula of :func:`largest_stable_rate` as text.

    >>> stable_rate_formula(), stable_rate_formula(0.9), stable_rate_formula(0.9, nesterov=True)
    ('2/L', '2(1+m)/L', '2(1+m)/((1+2m)L)')
    """
    if not momentum:
        return "2/L"
    return "2(1+m)/((1+2m)L)" if nesterov else "2(1+m)/L"


def adam_stability_limit(lr: float, beta1: float = 0.9, weight_decay: float = 0.0) -> float:
    r"""The largest eigenvalue of P⁻¹H at which Adam with a constant preconditioner P is stable.

    .. math:: \lambda_1(P^{-1}H) < \frac{(1+\beta_1)(2-\eta\,\omega)}{(1-\beta_1)\,\eta}

    η is the learning rate and ω the decoupled weight decay of AdamW. Without decay, the limit is
    :math:`\frac{2+2\beta_1}{(1-\beta_1)\eta}`, or 38/η for β₁ = 0.9. The moving average
    :math:`m \leftarrow \beta_1 m + (1-\beta_1) g` makes Adam a heavy ball with momentum β₁ and learning rate
    (1 - β₁)η, and a heavy ball is stable up to 2(1 + β₁)/((1 - β₁)η).

    In full, one eigendirection of :math:`P^{-1/2}HP^{-1/2}` with eigenvalue λ follows

    .. math:: m_{t+1} = \beta_1 m_t + (1-\beta_1)\lambda x_t, \qquad x_{t+1} = (1-\eta\omega)x_t - \eta m_{t+1},

    whose characteristic polynomial is
    :math:`z^2 - (1-\eta\omega+\beta_1-\eta(1-\beta_1)\lambda)z + \beta_1(1-\eta\omega)`. For 0 ≤ ηω < 2, both roots are
    inside the unit circle exactly if the polynomial is positive at z = 1, which says λ > -ω, and at z = -1, which is
    the limit above.

    Assumes that P changes slowly and that the bias correction of the first moment is over. Cohen et al. observe that
    in full-batch training the largest eigenvalue grows until it reaches this limit, and then stays close to it.

    Args:
        lr: Learning rate η.
        beta1: Decay rate of the first moment, in [0, 1); 0 gives the limit of RMSprop without momentum.
        weight_decay: Decoupled weight decay ω of AdamW; 0 for Adam. The L2 term of Adam belongs to H instead.

    Raises:
        ValueError: If an argument is out of range, or if ηω >= 2, for which no eigenvalue is stable.

    Reference: Cohen et al., Adaptive gradient methods at the edge of stability, arXiv:2207.14484, for ω = 0.

    >>> round(adam_stability_limit(lr=1e-3, beta1=0.9))
    38000
    """
    rate, beta1, decay = _checked("adam_stability_limit", "lr", lr, beta1, weight_decay)
    if rate * decay >= 2:
        _check.refuse("adam_stability_limit", "weight_decay", f"< 2/lr = {2 / rate:g}", decay)
    return (1 + beta1) * (2 - rate * decay) / ((1 - beta1) * rate)


def largest_stable_adam_rate(L: float, beta1: float = 0.9, weight_decay: float = 0.0) -> float:
    r"""The learning rate up to which Adam is stable if the largest eigenvalue of P⁻¹H is L.

    .. math:: \eta < \frac{2(1+\beta_1)}{(1-\beta_1)L + (1+\beta_1)\omega}

    This is the inverse of :func:`adam_stability_limit`, which has the derivation.

    Args:
        L: Largest eigenvalue of P⁻¹H, such as ``estimate.spectrum.L`` of a preconditioned operator, positive.
        beta1: Decay rate of the first moment, in [0, 1).
        weight_decay: Decoupled weight decay ω of AdamW; 0 for Adam.

    >>> round(largest_stable_adam_rate(L=38_000, beta1=0.9), 9)
    0.001
    """
    curvature, beta1, decay = _checked("largest_stable_adam_rate", "L", L, beta1, weight_decay)
    return 2 * (1 + beta1) / ((1 - beta1) * curvature + (1 + beta1) * decay)


@dataclass(frozen=True)
class StabilityReport:
    """A measured largest eigenvalue compared with the limit of stability; ``print`` shows one line.

    Attributes:
        L: Largest eigenvalue λ1.
        lr: Learning rate.
        limit: Largest stable eigenvalue at that rate.
    """

    L: float
    lr: float
    limit: float

    @property
    def is_stable(self) -> bool:
        """Whether λ1 is below the limit."""
        return self.limit > self.L

    def __str__(self) -> str:
        share = f"{100 * self.L / self.limit:.3g} % of the limit"
        return f"λ1 = {self.L:.4g}, threshold at lr={self.lr:g} is {self.limit:.4g}: {share}"


def stability_report(L: float, lr: float, beta1: float = 0.9, weight_decay: float = 0.0) -> StabilityReport:
    """Compare the largest eigenvalue of P⁻¹H with the limit of Adam; see :func:`adam_stability_limit`.

    >>> print(stability_report(L=36_100, lr=1e-3, beta1=0.9))
    λ1 = 3.61e+04, threshold at lr=0.001 is 3.8e+04: 95 % of the limit
    """
    limit = adam_stability_limit(lr, beta1, weight_decay)
    return StabilityReport(_check.real("stability_report", "L", L), float(lr), limit)


def _checked(function: str, name: str, value: float, beta1: float, weight_decay: float) -> tuple[float, float, float]:
    momentum = _check.at_least(function, "beta1", beta1, 0.0)
    if momentum >= 1:
        _check.refuse(function, "beta1", "< 1", momentum)
    decay = _check.at_least(function, "weight_decay", weight_decay, 0.0)
    return _check.positive(function, name, value), momentum, decay
