"""Stand-in: Gauss quadrature of a tridiagonal, and the moment fit that sharpens it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.optimize import nnls

from eigencurve._arrays import Array
from eigencurve.spectrum.spectrum import Spectrum


def gauss_quadrature(alphas: Any, betas: Any) -> tuple[Array, Array]:
    """Nodes and weights of the tridiagonal."""
    al, be = np.asarray(alphas, dtype=np.float64), np.asarray(betas, dtype=np.float64)
    nodes, vectors = eigh_tridiagonal(al, be[: len(al) - 1])
    return nodes, vectors[0] ** 2


def sharpen(alphas: Any, betas: Any, scale: float) -> Spectrum:
    """A spectrum with the moments of the tridiagonal and the least second difference."""
    al, be = np.asarray(alphas, dtype=np.float64), np.asarray(betas, dtype=np.float64)
    th, S = eigh_tridiagonal(al, be[: len(al) - 1])  # noqa: N806
    res = be[-1] * np.abs(S[-1])
    gap = np.minimum(np.diff(th, prepend=-np.inf), np.diff(th, append=np.inf))
    ok = res < 1e-3 * gap
    lo, hi = (int(np.argmin(ok)), len(th) - int(np.argmin(ok[::-1]))) if not ok.all() else (len(th), len(th))
    if hi - lo < 8:
        return Spectrum(th, S[0] ** 2)
    kept = np.r_[0:lo, hi : len(th)]
    u = np.linspace(np.arcsinh(th[lo] / scale), np.arcsinh(th[hi - 1] / scale), 400)
    x = np.append(scale * np.sinh(u), 0.0)
    A, b = _system(al, be, x, S[:, kept])  # noqa: N806
    second = np.zeros((398, 401))
    i = np.arange(398)
    second[i, i], second[i, i + 1], second[i, i + 2] = 1, -2, 1
    q, _ = nnls(np.r_[A, 0.4 * second], np.r_[b, np.zeros(398)], maxiter=20000)
    return Spectrum(np.r_[th[kept], x], np.r_[S[0, kept] ** 2, q])


def _system(al: Array, be: Array, x: Array, S: Array) -> tuple[Array, Array]:  # noqa: N803
    k = len(al)
    P = np.empty((k, len(x)))  # noqa: N806
    P[0] = 1
    for j in range(1, k):
        P[j] = ((x - al[j - 1]) * P[j - 1] - (be[j - 2] * P[j - 2] if j > 1 else 0)) / be[j - 1]
    A = np.r_[P, P[1:] ** 2, P[1:-1] * P[2:]]  # noqa: N806
    b = np.r_[np.eye(k)[0] - S @ S[0], 1 - (S[1:] ** 2).sum(1), -(S[1:-1] * S[2:]).sum(1)]
    r = np.abs(A).max(1)
    return A / r[:, None], b / r
