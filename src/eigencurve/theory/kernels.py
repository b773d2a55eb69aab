"""The loops over steps and eigenvalues, compiled by numba.

Every array is float64, contiguous and writable, so that each function is compiled once; the machine code is kept
on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

from eigencurve._arrays import Array

F = TypeVar("F", bound=Callable[..., Any])

# A run of this many equal rates is cheaper in closed form than step by step.
SHORTEST_RUN = 32
# An error below this, the smallest normal float64, is zero: what is smaller is slow to compute with and inexact.
SMALLEST = float(np.finfo(np.float64).tiny)


def compiled(fast: bool) -> Callable[[F], F]:
    """Numba's decorator, typed; ``fast`` lets it add up in any order. Other threads run meanwhile."""
    math = {"reassoc", "contract"} if fast else False
    return cast(Callable[[F], F], njit(cache=True, nogil=True, error_model="numpy", fastmath=math))


@compiled(fast=False)
def advance(lam: Array, noise: Array, bias: Array, variance: Array, rates: Array) -> None:
    r"""Take ``bias`` and ``variance`` of every eigenvalue through the steps of ``rates``, in place.

    .. math:: b_j \leftarrow (1-\eta\lambda_j)^2 b_j, \qquad
              v_j \leftarrow (1-\eta\lambda_j)^2 v_j + (\eta\lambda_j)^2\sigma_j^2

    A run of n equal rates is one step with :math:`(1-x)^{2n}` and
    :math:`x^2\sigma^2\,\frac{1-(1-x)^{2n}}{1-(1-x)^2}`, :math:`x = \eta\lambda_j`.
    """
    start = 0
    while start < len(rates):
        eta = rates[start]
        stop = start + 1
        while stop < len(rates) and rates[stop] == eta:
            stop += 1
        count = stop - start
        start = stop
        if count < SHORTEST_RUN:
            for _ in range(count):
                for j in range(len(lam)):
                    x = eta * lam[j]
                    keep = (1 - x) * (1 - x)
                    b = keep * bias[j]
                    bias[j] = 0.0 if b < SMALLEST else b
                    variance[j] = keep * variance[j] + x * x * noise[j]
        else:
            for j in range(len(lam)):
                x = eta * lam[j]
                # log |1 - x| without cancellation near x = 0 and near x = 2
                log_keep = 2 * count * (np.log1p(-x) if x < 1 else np.log1p(x - 2))
                keep = np.exp(log_keep)
                gap = x * (2 - x)
                added = x * x * count if gap == 0 else -x * x * np.expm1(log_keep) / gap
                b = keep * bias[j]
                bias[j] = 0.0 if b < SMALLEST else b
                variance[j] = keep * variance[j] + added * noise[j]


@compiled(fast=False)
def advance_momentum(lam: Array, noise: Array, momentum: float, bias: Array, variance: Array, rates: Array) -> None:
    r"""The same with heavy-ball momentum; rows 0, 1, 2 of ``bias`` and ``variance`` are E[u²], E[uz], E[z²].

    With :math:`u = \sqrt\lambda(w-w_*)` and z the velocity over :math:`\sqrt\lambda`, one step is
    :math:`z \leftarrow mz + u - \xi`, :math:`u \leftarrow u - xz`, and so

    .. math:: P = m E[uz] + E[u^2], \quad C = m^2E[z^2] + 2mE[uz] + E[u^2] + \sigma^2, \quad
              E[u^2] \leftarrow E[u^2] - 2xP + x^2C, \quad E[uz] \leftarrow P - xC, \quad E[z^2] \leftarrow C
    """
    for eta in rates:
        for j in range(len(lam)):
            x = eta * lam[j]
            for part in range(2):
                state = bias if part == 0 else variance
                a, b, c = state[0, j], state[1, j], state[2, j]
                p = momentum * b + a
                c = momentum * momentum * c + 2 * momentum * b + a + (0.0 if part == 0 else noise[j])
                a = a - 2 * x * p + x * x * c
                small = part == 0 and a + c < SMALLEST
                state[0, j] = 0.0 if small else a
                state[1, j] = 0.0 if small else p - x * c
                state[2, j] = 0.0 if small else c


@compiled(fast=True)
def loss_and_gradient(lam: Array, weights: Array, error: Array, noise: Array, rates: Array, gradient: Array) -> float:
    r"""½ Σ w_j e_j after all steps, and its derivative in every rate (written into ``gradient``).

    Backwards, with :math:`a_j = w_j/2` at the end,

    .. math:: \frac{\partial}{\partial\eta_t} = \sum_j a_j\bigl(-2\lambda_j(1-x_j)e_j + 2x_j\lambda_j\sigma_j^2\bigr),
              \qquad a_j \leftarrow (1-x_j)^2 a_j

    The errors :math:`e_j` are kept every √T steps and computed again in between, so memory grows as √T.
    """
    steps, nodes = len(rates), len(lam)
    length = int(np.ceil(np.sqrt(steps)))
    segments = (steps + length - 1) // length
    marks = np.empty((segments, nodes))
    trail = np.empty((length, nodes))
    e = error.copy()
    for t in range(steps):
        if t % length == 0:
            marks[t // length] = e
        eta = rates[t]
        for j in range(nodes):
            x = eta * lam[j]
            e[j] = (1 - x) * (1 - x) * e[j] + x * x * noise[j]
    loss = 0.0
    for j in range(nodes):
        loss += 0.5 * weights[j] * e[j]
    adjoint = 0.5 * weights
    for segment in range(segments - 1, -1, -1):
        first, last = segment * length, min(steps, (segment + 1) * length)
        trail[0] = marks[segment]
        for t in range(first, last - 1):
            eta = rates[t]
            for j in range(nodes):
                x = eta * lam[j]
                trail[t - first + 1, j] = (1 - x) * (1 - x) * trail[t - first, j] + x * x * noise[j]
        for t in range(last - 1, first - 1, -1):
            eta = rates[t]
            slope = 0.0
            for j in range(nodes):
                x = eta * lam[j]
                slope += adjoint[j] * lam[j] * (x * noise[j] - (1 - x) * trail[t - first, j])
                keep = (1 - x) * (1 - x) * adjoint[j]
                adjoint[j] = 0.0 if keep < SMALLEST else keep
            gradient[t] = 2 * slope
    return loss
