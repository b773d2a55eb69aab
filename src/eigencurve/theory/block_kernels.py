"""The loops over blocks of steps with nearly equal rates, compiled by numba; as the other kernels are."""

from __future__ import annotations

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.theory.kernels import SMALLEST, compiled

# Below this the change of the rate within a block adds nothing that float64 can tell from rounding.
SMALLEST_LAG = 1e-6
# The exponential of less is no normal float64, and slow to compute with.
VANISHED = -700.0
# Nearer to the largest stable step, x = 2, a derivative is taken at that limit: elsewhere it would cancel.
NEAR_LIMIT = 1e-7


@compiled(fast=True)
def advance_blocks(
    lam: Array, noise: Array, bias: Array, variance: Array, counts: IntArray, rates: Array, rises: Array
) -> None:
    r"""Take ``bias`` and ``variance`` of every eigenvalue through blocks of steps, in place.

    With :math:`k = (1-x)^2`, x the block's mean rate times λ, :math:`K = k^n` and :math:`g = x/(2-x)` the variance
    (over σ²) at which a constant rate would come to rest, n steps whose g rises by δ a step give

    .. math:: b \leftarrow K b, \qquad v \leftarrow K v + \sigma^2\Bigl[g(1-K)
              + \delta\Bigl(\tfrac{n-1}2(1+K) + K - k\,\frac{1-K}{1-k}\Bigr)\Bigr]

    for :math:`v_{t+1} - g_t = k(v_t - g_t)` exactly. What is neglected is the change of k, and of δ, within a block.
    ``counts`` has the n of every block, ``rates`` its mean rate and ``rises`` its last rate less its first.
    """
    for block in range(len(counts)):
        n, eta = counts[block], rates[block]
        slope = rises[block] / max(n - 1, 1)
        for j in range(len(lam)):
            x = eta * lam[j]
            k = (1 - x) * (1 - x)
            if n == 1:
                keep, added = k, x * x
            else:
                log_keep = 2 * n * (np.log1p(-x) if x < 1 else np.log1p(x - 2))
                keep = np.exp(log_keep) if log_keep > VANISHED else 0.0
                lost, gap = -np.expm1(log_keep), x * (2 - x)
                added = x * x * n if gap == 0 else x * x * lost / gap
                if slope != 0 and n * abs(gap) > SMALLEST_LAG:
                    delta = 2 * lam[j] * slope / ((2 - x) * (2 - x))
                    added += delta * (0.5 * (n - 1) * (1 + keep) + keep - k * lost / gap)
            b = keep * bias[j]
            bias[j] = 0.0 if b < SMALLEST else b
            variance[j] = keep * variance[j] + added * noise[j]


@compiled(fast=True)
def scaled_losses(
    lam: Array, weights: Array, error: Array, noise: Array, counts: IntArray, rates: Array, rises: Array, scales: Array
) -> Array:
    """½ Σ w_j e_j after all blocks, for each factor that the rates are multiplied by; not finite where it diverges."""
    losses = np.empty(len(scales))
    for i in range(len(scales)):
        bias, variance = error.copy(), np.zeros(len(lam))
        advance_blocks(lam, noise, bias, variance, counts, rates * scales[i], rises * scales[i])
        losses[i] = 0.5 * np.sum(weights * (bias + variance))
    return losses


@compiled(fast=True)
def block_loss_and_gradient(
    lam: Array, weights: Array, error: Array, noise: Array, counts: IntArray, rates: Array, gradient: Array
) -> float:
    r"""½ Σ w_j e_j after blocks of constant rates, and its derivative in the rate of every block.

    .. math:: e \leftarrow K e + \sigma^2 g (1-K), \qquad
              \frac{\partial}{\partial x} = K'(e - \sigma^2 g) + \sigma^2 g'(1-K), \qquad a \leftarrow K a

    with :math:`K = (1-x)^{2n}`, :math:`g = x/(2-x)`, :math:`x = \eta\lambda_j` and the adjoint a, w/2 at the end.
    """
    blocks, nodes = len(counts), len(lam)
    trail, kept = np.empty((blocks, nodes)), np.empty((blocks, nodes))
    e = error.copy()
    for block in range(blocks):
        n, eta = counts[block], rates[block]
        for j in range(nodes):
            trail[block, j] = e[j]
            x = eta * lam[j]
            log_keep = 2 * n * (np.log1p(-x) if x < 1 else np.log1p(x - 2))
            gap = x * (2 - x)
            kept[block, j] = np.exp(log_keep) if log_keep > VANISHED else 0.0
            added = x * x * n if gap == 0 else -x * x * np.expm1(log_keep) / gap
            e[j] = kept[block, j] * e[j] + added * noise[j]
    loss = 0.0
    adjoint = 0.5 * weights
    for j in range(nodes):
        loss += adjoint[j] * e[j]
    for block in range(blocks - 1, -1, -1):
        n, eta = counts[block], rates[block]
        total = 0.0
        for j in range(nodes):
            x, keep = eta * lam[j], kept[block, j]
            steeper = 0.0 if x == 1 else -2 * n * keep / (1 - x)
            if abs(2 - x) < NEAR_LIMIT:
                added = 2 * x * n + x * x * n * (n - 1)
            else:
                added = 2 * (1 - keep) / ((2 - x) * (2 - x)) - x / (2 - x) * steeper
            total += adjoint[j] * lam[j] * (steeper * trail[block, j] + added * noise[j])
            a = keep * adjoint[j]
            adjoint[j] = 0.0 if a < SMALLEST else a
        gradient[block] = total
    return loss
