"""The paper's bounds on the expected loss, one function each, per dimension (divided by d).

Each function takes a :class:`NoisyQuadratic` without momentum. If σ² differs between eigenvalues, upper bounds use the
largest and lower bounds the smallest. docs/theory.md lists where these functions differ from the paper's text, with
the examples that show why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve.schedules.decays import InverseTime, inverse_time
from eigencurve.spectrum.groups import Groups, group, octave_index
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.theory.quadratic import NoisyQuadratic

# 2 e² rounded up, as in the paper.
PAPER_CONSTANT = 15.0


@dataclass(frozen=True)
class Bound:
    """A bound on the expected loss: the sum of a bias and a variance part.

    Attributes:
        bias: Bound on the loss that remains from the initial error.
        variance: Bound on the loss caused by the gradient noise.
    """

    bias: float
    variance: float

    @property
    def total(self) -> float:
        """The sum of both parts."""
        return self.bias + self.variance


def proposition_1(problem: NoisyQuadratic, total_steps: int) -> Bound:
    r"""A separate learning rate for each coordinate, :math:`\eta_{t,j} = \frac{1}{\lambda_j(t+1)}`, t = 1 ... T.

    .. math:: E[f(w_{T+1}) - f_*] \le \frac{1}{2(T+1)^2}\sum_j e_j + \frac{T}{2(T+1)^2}\,d\sigma^2

    with :math:`e_j = \lambda_j(w_{1j}-w_{*j})^2`. This is an equality if the noise has covariance σ²H.

    Reference: arXiv:2110.14109, Proposition 1.

    >>> from eigencurve import NoisyQuadratic, Spectrum
    >>> proposition_1(NoisyQuadratic(Spectrum([1.0, 4.0], [1, 1]), noise=1.0, initial_error=1.0), 9)
    Bound(bias=0.005, variance=0.045)
    """
    T = _steps("proposition_1", problem, total_steps)
    return Bound(_initial_loss(problem) / (T + 1) ** 2, 0.5 * T / (T + 1) ** 2 * _largest_noise(problem))


def proposition_2(problem: NoisyQuadratic, total_steps: int) -> Bound:
    r"""Inverse time decay :math:`\eta_t = \frac{1}{L+\mu t}`, t = 1 ... T (:func:`inverse_time_of`).

    .. math:: E[f(w_{T+1}) - f_*] \le \Bigl(\frac{L+\mu}{L+\mu T}\Bigr)^2 (f(w_1)-f_*)
              + \frac{\sigma^2}{2}\sum_j\Bigl(\frac{\lambda_j^2}{2\lambda_j-\mu}\,\frac{1}{L+\mu T}
              + \frac{\lambda_j^2}{(L+\mu T)^2}\Bigr)

    Reference: arXiv:2110.14109, Proposition 2.
    """
    T = _steps("proposition_2", problem, total_steps)
    mu, L, lam = problem.spectrum.mu, problem.spectrum.L, problem.spectrum.eigenvalues
    end = L + mu * T
    spread = lam**2 / (2 * lam - mu) / end + (lam / end) ** 2
    variance = 0.5 * _largest_noise(problem) * float(problem.spectrum.weights @ spread)
    return Bound(((L + mu) / end) ** 2 * _initial_loss(problem), variance)


def inverse_time_of(problem: NoisyQuadratic, total_steps: int) -> InverseTime:
    r"""The schedule of Proposition 2, from :math:`\frac{1}{L+\mu}` down to :math:`\frac{1}{L+\mu T}`."""
    T = _steps("inverse_time_of", problem, total_steps)
    mu, L = problem.spectrum.mu, problem.spectrum.L
    return inverse_time(T, 1 / (L + mu), 1 / (L + mu * T))


def lemma_1(problem: NoisyQuadratic, lengths: Sequence[float] | Array, beta: float = 2.0) -> Bound:
    r"""Eigencurve with initial rate 1/L and any interval lengths Δ_i.

    .. math:: E[f(w_T) - f_*] \le (f(w_0)-f_*)\,\frac{\kappa^2}{\Delta_0^2}
              + \frac{15}{2}\,\sigma^2\mu\sum_i \frac{2^{i+1}s_i}{L + \mu\sum_{j\le i}2^j\Delta_j}

    The paper states it for β = 2. For any β > 1 its proof gives :math:`\beta^i` instead of :math:`2^i` and
    :math:`\beta e^2` instead of 15; at β = 2 that is 14.8, and the paper's 15 is used.

    Args:
        problem: Problem without momentum.
        lengths: Interval length Δ_i >= 0 of each non-empty group of ``group(problem.spectrum, beta)``; the first, of
            the group at μ, must be positive.
        beta: Ratio of the groups' lower edges.

    Raises:
        ValueError: There are too many or too few lengths, one is negative, or the first is 0.

    Reference: arXiv:2110.14109, Lemma 1 (its Δ_1 is the length for the group i = 0).
    """
    _plain("lemma_1", problem)
    groups = group(problem.spectrum, beta)
    delta = _lengths(groups, lengths)
    mu, L = problem.spectrum.mu, problem.spectrum.L
    constant = PAPER_CONSTANT if beta == 2 else beta * math.e**2
    end = L + np.cumsum(groups.lower * delta)
    variance = 0.5 * constant * _largest_noise(problem) * float(np.sum(beta * groups.lower * groups.share / end))
    return Bound(_initial_loss(problem) * (L / mu / float(delta[0])) ** 2, variance)


def theorem_1(problem: NoisyQuadratic, total_steps: int) -> Bound:
    r"""Eigencurve with initial rate 1/L and the paper's interval lengths.

    .. math:: E[f(w_T) - f_*] \le (f(w_0)-f_*)\,\frac{\kappa^2\bigl(\sum_i\sqrt{s_i}\bigr)^2}{s_0T^2}
              + \frac{15\bigl(\sum_i\sqrt{s_i}\bigr)^2}{T}\,\sigma^2

    Reference: arXiv:2110.14109, Theorem 1.
    """
    T = _steps("theorem_1", problem, total_steps)
    groups = _with_first_group("theorem_1", group(problem.spectrum))
    spread = math.fsum(np.sqrt(groups.share)) ** 2
    bias = _initial_loss(problem) * (problem.spectrum.kappa / T) ** 2 * spread / float(groups.share[0])
    return Bound(bias, PAPER_CONSTANT * spread / T * _largest_noise(problem))


def power_law_constant(alpha: float) -> float:
    r"""The constant C(α) of Corollary 1, from its proof.

    .. math:: C(\alpha) = \frac{15}{\bigl(1 - 2^{(1-\alpha)/2}\bigr)^2}, \qquad \alpha > 1

    >>> round(power_law_constant(3.0), 12)
    60.0
    """
    exponent = _check.real("power_law_constant", "alpha", alpha)
    if exponent <= 1:
        _check.refuse(
            "power_law_constant", "alpha", "> 1", exponent, "For smaller exponents there is no such constant."
        )
    return PAPER_CONSTANT / math.expm1((1 - exponent) / 2 * math.log(2)) ** 2


def corollary_1(law: PowerLaw, total_steps: int, noise: float, initial_error: float) -> Bound:
    r"""Eigencurve with initial rate 1/L if the eigenvalues follow a power law of exponent α > 1.

    .. math:: E[f(w_T) - f_*] \le \Bigl((f(w_0)-f_*)\,\frac{\kappa^2}{T^2} + \frac{d\sigma^2}{T}\Bigr)\,C(\alpha)

    with C(α) from :func:`power_law_constant`. A power law has no individual eigenvalues, so σ² (``noise``) and the mean
    of :math:`\lambda_j(w_{0j}-w_{*j})^2` (``initial_error``) are single numbers.

    Reference: arXiv:2110.14109, Corollary 1.
    """
    if not isinstance(law, PowerLaw):
        _check.wrong_type("corollary_1", "law", "a PowerLaw", law)
    T = _check.whole("corollary_1", "total_steps", total_steps, minimum=1)
    sigma2 = _check.at_least("corollary_1", "noise", noise, 0.0)
    error = _check.at_least("corollary_1", "initial_error", initial_error, 0.0)
    constant = power_law_constant(law.alpha)
    return Bound(0.5 * error * (law.kappa / T) ** 2 * constant, sigma2 / T * constant)


def corollary_2(problem: NoisyQuadratic, total_steps: int) -> Bound:
    r"""Eigencurve in the worst case, in which all I octaves between μ and L have equal shares.

    .. math:: E[f(w_T) - f_*] \le (f(w_0)-f_*)\,\frac{\kappa^2I^2}{T^2} + \frac{15\,d\,I}{T}\,\sigma^2,
              \qquad I = \lfloor\log_2\kappa\rfloor + 1

    The paper writes log κ instead of I, but there are I octaves, because L is in the last one. The variance part holds
    for any spectrum. The bias part follows from Theorem 1 if :math:`s_0 \ge d/I`, which is checked.

    Reference: arXiv:2110.14109, Corollary 2.
    """
    T = _steps("corollary_2", problem, total_steps)
    num_octaves = octave_count(problem)
    share = float(_with_first_group("corollary_2", group(problem.spectrum)).share[0])
    if share < (1 - 1e-9) / num_octaves:
        remedy = "Use theorem_1, which holds for any spectrum."
        constraint = f"a spectrum with a share of at least 1/{num_octaves} in its first octave"
        _check.refuse("corollary_2", "spectrum", constraint, share, remedy)
    bias = _initial_loss(problem) * (problem.spectrum.kappa * num_octaves / T) ** 2
    return Bound(bias, PAPER_CONSTANT * num_octaves / T * _largest_noise(problem))


def octave_count(problem: NoisyQuadratic) -> int:
    """The number I of octaves [μ 2^i, μ 2^(i+1)) from μ to L, including empty ones."""
    return 1 + int(octave_index(problem.spectrum.L, problem.spectrum.mu))


def step_decay_lower_bound(problem: NoisyQuadratic, total_steps: int, lr: float) -> float:
    r"""A lower bound on the loss of step decay (:func:`step_decay` with factor 2 and its default intervals).

    .. math:: E[f(w_T) - f_*] \ge \frac{d\sigma^2}{1024}\,\frac{\log T}{T}
              \quad\text{if}\quad \eta_0 \le \frac1L, \quad \frac{T}{\log T} \ge
              \max\Bigl(2^{16}, \frac{1}{256}\,\frac{\sigma^2}{\min_j\lambda_j(w_{0j}-w_{*j})^2}\Bigr)

    Instead of the condition on the initial errors, :math:`T/\log T > 1/(8\eta_0\mu)` is also sufficient.

    Raises:
        ValueError: T is too small, or lr is above 1/L.

    Reference: arXiv:2110.14109, Theorem 2 and the remark after its proof; log is log2.
    """
    T = _steps("step_decay_lower_bound", problem, total_steps)
    _check_step_decay(problem, T, _check.positive("step_decay_lower_bound", "lr", lr))
    return float(problem.nodes.noise.min()) / 1024 * math.log2(T) / T


def minimax_rate(problem: NoisyQuadratic, total_steps: int) -> float:
    r"""The smallest loss that any method can guarantee for every starting point.

    .. math:: \frac{1}{2T}\sum_j\sigma_j^2 \;=\; \frac{d\sigma^2}{2T}

    The paper states Ω(dσ²/T). The constant is ½ because T gradients with Gaussian noise are T observations of
    :math:`w_{*j}` with variance :math:`\sigma^2/\lambda_j`. The certificate approaches this value from below as the
    initial error and the largest rate grow.

    Reference: arXiv:2110.14109, Table 1 and Section 2; Ge et al., 2019, arXiv:1904.12838.
    """
    T = _steps("minimax_rate", problem, total_steps)
    return 0.5 * float(problem.spectrum.weights @ problem.noise) / T


def _plain(function: str, problem: NoisyQuadratic) -> None:
    if not isinstance(problem, NoisyQuadratic):
        _check.wrong_type(function, "problem", "a NoisyQuadratic", problem)
    if problem.momentum:
        _check.refuse(function, "momentum", "0", problem.momentum, "The paper's bounds are for SGD without momentum.")
    if problem.noise_power:
        remedy = "The paper's bounds are for noise that does not depend on the rate."
        _check.refuse(function, "noise_power", "0", problem.noise_power, remedy)


def _steps(function: str, problem: NoisyQuadratic, total_steps: int) -> int:
    _plain(function, problem)
    return _check.whole(function, "total_steps", total_steps, minimum=1)


def _initial_loss(problem: NoisyQuadratic) -> float:
    return 0.5 * float(problem.spectrum.weights @ problem.initial_error)


def _largest_noise(problem: NoisyQuadratic) -> float:
    return float(problem.nodes.noise.max())


def _with_first_group(function: str, groups: Groups) -> Groups:
    if groups.index[0] != 0:
        remedy = "The smallest eigenvalue has weight zero: drop it."
        _check.refuse(function, "spectrum", "a spectrum with a positive share in [mu, mu beta)", 0.0, remedy)
    return groups


def _lengths(groups: Groups, lengths: Sequence[float] | Array) -> Array:
    delta = _check.vector("lemma_1", "lengths", lengths)
    _with_first_group("lemma_1", groups)
    if len(delta) != len(groups):
        _check.refuse("lemma_1", "lengths", f"one for each of the {len(groups)} non-empty groups", f"{len(delta)}")
    if (delta < 0).any():
        _check.refuse("lemma_1", "lengths", ">= 0", float(delta.min()))
    if delta[0] == 0:
        _check.refuse("lemma_1", "lengths", "> 0 for the group at mu", 0.0, "Without it the bias has no bound.")
    return delta


def _check_step_decay(problem: NoisyQuadratic, T: int, lr: float) -> None:
    name, nodes, span = "step_decay_lower_bound", problem.nodes, T / math.log2(T) if T > 1 else 0.0
    if lr > 1 / problem.spectrum.L:
        _check.refuse(name, "lr", f"<= 1/L = {1 / problem.spectrum.L:g}", lr)
    if span < 2**16:
        _check.refuse(name, "total_steps", "large enough that T / log2 T >= 65536", T, "That is T >= 1,333,443.")
    error, noise = float(nodes.error.min()), float(nodes.noise.min())
    started = error > 0 and span >= noise / (256 * error)
    if not started and not span > 1 / (8 * lr * problem.spectrum.mu):
        remedy = "Positive initial errors with T / log2 T >= noise / (256 min error) are also enough."
        _check.refuse(name, "total_steps", "large enough that T / log2 T > 1 / (8 lr mu)", T, remedy)
