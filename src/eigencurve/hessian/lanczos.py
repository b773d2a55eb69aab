"""The Lanczos recurrence from any start vector, within a memory budget and resumable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal
from torch import Tensor

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve.hessian.basis import Basis, dot
from eigencurve.hessian.memory import MemoryPlan, plan_memory
from eigencurve.spectrum.quadrature import gauss_quadrature

BoolArray = NDArray[np.bool_]

# A residual of this many roundings of the largest |alpha| + 2 beta is nothing but rounding: the run is complete.
BREAKDOWN = 16
# Converged nodes closer than this many roundings of the largest are copies of one eigenvalue.
COPY = 16


class LinearOperator(Protocol):
    """What Lanczos needs to know of a symmetric matrix."""

    @property
    def dim(self) -> int: ...  # noqa: D102
    @property
    def dtype(self) -> torch.dtype: ...  # noqa: D102
    @property
    def device(self) -> torch.device: ...  # noqa: D102
    def __call__(self, vector: Tensor) -> Tensor: ...  # noqa: D102


class Problem(LinearOperator, Protocol):
    """An operator that knows what it is and whether other processes work on it too."""

    @property
    def leads(self) -> bool: ...  # noqa: D102
    def fingerprint(self) -> str: ...  # noqa: D102
    def smallest(self, value: int) -> int: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class LanczosRun:
    """The tridiagonal of a run.

    Attributes:
        alphas: its diagonal, one number a product.
        betas: its off-diagonal and, last, the norm of the residual: as many numbers.
        exact: the residual vanished, so that the nodes are eigenvalues and the measure is complete.
        num_distinct: how many nodes are not copies of another: what the products bought.
    """

    alphas: Array
    betas: Array
    exact: bool
    num_distinct: int

    @property
    def num_products(self) -> int:
        """How many products the run took."""
        return len(self.alphas)


class Recurrence:
    r"""A run in progress.

    .. math:: \beta_j v_{j+1} = H v_j - \alpha_j v_j - \beta_{j-1} v_{j-1}, \qquad \alpha_j = v_j^\top H v_j

    with every new vector projected off the rows of the basis, twice.
    """

    def __init__(self, operator: LinearOperator, plan: MemoryPlan) -> None:
        self.operator, self.plan = operator, plan
        self.basis = Basis(plan.num_rows, operator.dim, operator.dtype, plan.device)
        self.alphas: list[float] = []
        self.betas: list[float] = []
        self.exact = False
        # True while a step is written into the state: one interrupted here must not be saved.
        self.is_changing = False

    def start(self, vector: Tensor) -> None:
        """Begin with ``vector``, which is divided by its length."""
        self.basis.append(vector.to(self.plan.device), dot(vector, vector) ** 0.5)

    def step(self) -> None:
        """One product, one more row and column of the tridiagonal."""
        last = self.basis.last
        residual = self.operator(last.to(self.operator.device)).to(last.device)
        alpha = dot(last, residual)
        self.basis.project_off(residual)
        beta = dot(residual, residual) ** 0.5
        if not np.isfinite(alpha + beta):
            _check.refuse("lanczos", "operator", "one with finite products", alpha + beta)
        self.is_changing = True
        self._take(residual, alpha, beta)
        self.is_changing = False

    def _take(self, residual: Tensor, alpha: float, beta: float) -> None:
        self.alphas.append(alpha)
        self.betas.append(beta)
        size = max(abs(a) + 2 * b for a, b in zip(self.alphas, [*self.betas[:-1], 0.0], strict=True))
        self.exact = beta <= BREAKDOWN * torch.finfo(self.operator.dtype).eps * size
        if not self.exact and len(self.alphas) < self.plan.num_steps:
            if self.basis.is_full:
                self.basis.lock(np.array(self.alphas), np.array(self.betas))
            self.basis.append(residual, beta)

    def reopen(self) -> None:
        """Take the last step back where it ended the run and more steps are wanted now.

        The last step of a run keeps no vector to go on from; done again, it gives the same numbers and the vector.
        """
        ended = self.basis.coordinates.shape[1] == len(self.alphas)
        if ended and not self.exact and len(self.alphas) < self.plan.num_steps:
            self.alphas.pop()
            self.betas.pop()

    @property
    def is_done(self) -> bool:
        """Whether the run has ended early and exactly, or used up its steps."""
        return self.exact or len(self.alphas) >= self.plan.num_steps

    def result(self) -> LanczosRun:
        """The run so far."""
        return make_run(self.alphas, self.betas, self.exact, self.operator.dtype)


def make_run(alphas: list[float] | Array, betas: list[float] | Array, exact: bool, dtype: torch.dtype) -> LanczosRun:
    """Freeze a tridiagonal and count its distinct nodes."""
    diagonal, beside = frozen(np.asarray(alphas)), frozen(np.asarray(betas))
    return LanczosRun(diagonal, beside, exact, len(diagonal) - int(_copies(diagonal, beside, dtype).sum()))


def without_copies(run: LanczosRun, dtype: torch.dtype) -> tuple[Array, Array]:
    """The tridiagonal of the same measure with every group of copies merged into one node.

    A copy shares the weight of the eigenvalue that it copies (Greenbaum, Linear Algebra Appl. 113, 1989). The
    merged nodes go through Lanczos again, in float64 and with a diagonal matrix. Without copies it is the run's own.
    """
    if run.num_distinct == len(run.alphas):
        return run.alphas, run.betas
    nodes, weights = gauss_quadrature(run.alphas, run.betas)
    place = np.concatenate(([0], np.cumsum(~_copies(run.alphas, run.betas, dtype))))
    shares = np.bincount(place, weights)
    middles = np.bincount(place, nodes) / np.bincount(place)
    used = shares > 0
    return _diagonal_lanczos(middles[used], np.sqrt(shares[used]))


def _diagonal_lanczos(nodes: Array, start: Array) -> tuple[Array, Array]:
    size = len(nodes)
    basis, alphas, betas = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    vector, beta = start, float(np.linalg.norm(start))
    for j in range(size):
        basis[j] = vector / beta
        alphas[j] = basis[j] @ (nodes * basis[j])
        vector = nodes * basis[j]
        for _ in range(2):
            vector = vector - basis[: j + 1].T @ (basis[: j + 1] @ vector)
        beta = betas[j] = float(np.linalg.norm(vector))
    return alphas, betas[:-1]


def _copies(alphas: Array, betas: Array, dtype: torch.dtype) -> BoolArray:
    """For each node but the first, whether it copies the one before.

    Copies are as close as rounding brings them, and converged: the residual of one of them is as small. Nodes near
    zero may be as close, but they are on their way.
    """
    nodes, vectors = eigh_tridiagonal(alphas, betas[: len(alphas) - 1])
    width = COPY * torch.finfo(dtype).eps * np.abs(nodes).max()
    residuals = betas[-1] * np.abs(vectors[-1])
    close: BoolArray = (np.diff(nodes) <= width) & (np.minimum(residuals[1:], residuals[:-1]) <= width)
    return close


def lanczos(operator: LinearOperator, start: Tensor, num_steps: int, memory_budget: int | None = None) -> LanczosRun:
    r"""Run Lanczos from ``start``: a random probe for the density, a gradient for its own measure.

    The Gauss rule of the result (:func:`eigencurve.spectrum.quadrature.gauss_quadrature`) has the moments

    .. math:: \sum_i w_i \theta_i^k = \frac{v^\top H^k v}{v^\top v}, \qquad k < 2m.

    Args:
        operator: symmetric.
        start: a vector of ``operator.dim`` numbers, not zero.
        num_steps: m, at most; the run ends before where the Krylov space is exhausted.
        memory_budget: bytes for all vectors of the run; see :func:`plan_memory`.

    Raises:
        ValueError: a start vector that is zero, not finite or of another length; too small a budget.
    """
    steps = min(_check.whole("lanczos", "num_steps", num_steps, minimum=1), operator.dim)
    if start.shape != (operator.dim,) or start.dtype != operator.dtype:
        need = f"{operator.dim} numbers of type {operator.dtype}"
        _check.refuse("lanczos", "start", need, f"shape {tuple(start.shape)}, {start.dtype}")
    length = dot(start, start)
    if not 0 < length < float("inf"):
        _check.refuse("lanczos", "start", "finite and not zero", f"a squared length of {length}")
    run = Recurrence(operator, plan_memory(operator.dim, steps, memory_budget, operator.dtype, operator.device))
    run.start(start)
    while not run.is_done:
        run.step()
    return run.result()
