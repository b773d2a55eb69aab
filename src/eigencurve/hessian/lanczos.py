"""The Lanczos recurrence from any start vector: within a memory budget, and resumable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve._moved import renamed
from eigencurve.hessian.basis import Basis
from eigencurve.hessian.memory import MemoryPlan, plan_memory
from eigencurve.hessian.space import space_of
from eigencurve.spectrum.quadrature import eigenpairs

BoolArray = NDArray[np.bool_]

# The run is complete once the residual is below this many roundings of the largest |alpha| + 2 beta.
BREAKDOWN_ROUNDINGS = 16
# Converged nodes that differ by fewer roundings of the largest node than this are copies of one eigenvalue.
COPY_ROUNDINGS = 16
# Relative differences between two computations of a product that rounding explains.
TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-8}
# Number of sums that stand for a product.
SKETCH = 64


class LinearOperator(Protocol):
    """A symmetric matrix given by its products; with a ``space``, each process holds a part of every vector."""

    @property
    def dim(self) -> int: ...  # noqa: D102
    @property
    def dtype(self) -> torch.dtype: ...  # noqa: D102
    @property
    def device(self) -> torch.device: ...  # noqa: D102
    def __call__(self, vector: Tensor) -> Tensor: ...  # noqa: D102


class LanczosOperator(LinearOperator, Protocol):
    """A linear operator with a fingerprint for checkpoints, possibly shared by several processes."""

    @property
    def is_main_process(self) -> bool: ...  # noqa: D102
    def fingerprint(self) -> str: ...  # noqa: D102
    def min_over_processes(self, value: int) -> int: ...  # noqa: D102


def renew_operator(operator: LinearOperator) -> None:
    """Let an operator forget the state that it keeps between products, if it has any."""
    renew = getattr(operator, "renew", None)
    if renew is not None:
        renew()


@dataclass(frozen=True, eq=False)
class LanczosRun:
    """The tridiagonal matrix of a Lanczos run.

    Attributes:
        alphas: Diagonal, one number per product.
        betas: Off-diagonal, followed by the norm of the residual; as long as ``alphas``.
        exact: Whether the residual vanished, which makes the nodes eigenvalues and the measure complete.
        num_distinct: Number of nodes that are not copies of another node.
    """

    alphas: Array
    betas: Array
    exact: bool
    num_distinct: int

    @property
    def num_products(self) -> int:
        """Number of products of the run."""
        return len(self.alphas)

    def __repr__(self) -> str:
        return (
            f"LanczosRun({len(self.alphas)} steps, {self.num_distinct} distinct nodes{', exact' if self.exact else ''})"
        )


class Recurrence:
    r"""A Lanczos run in progress.

    .. math:: \beta_j v_{j+1} = H v_j - \alpha_j v_j - \beta_{j-1} v_{j-1}, \qquad \alpha_j = v_j^\top H v_j

    Every new vector is made orthogonal to the rows of the basis.
    """

    def __init__(self, operator: LinearOperator, plan: MemoryPlan) -> None:
        self.operator, self.plan = operator, plan
        self.space = space_of(operator)
        self.basis = Basis(plan.num_rows, self.space, operator.dtype, plan.device)
        self.alphas: list[float] = []
        self.betas: list[float] = []
        self.exact = False
        self.num_unused = 0
        self._is_probe = False
        self._sketch: Tensor | None = None
        # True while a step is being written into the state; an interrupted write must not be saved.
        self.is_changing = False

    def start(self, vector: Tensor, is_probe: bool = False) -> None:
        """Set the start vector, divided by its norm; the first step of a random probe leaves out unused entries.

        From a zero vector, the run is exact without a step.
        """
        self._is_probe = is_probe
        length = self.space.norm(vector)
        self.exact = length == 0
        if not self.exact:
            self.basis.append(vector.to(self.plan.device), length)

    def step(self) -> None:
        """Take one step: one product, and one more row and column of the tridiagonal."""
        last = self.basis.last
        residual = self.operator(last.to(self.operator.device)).to(last.device)
        if self._is_probe and not self.alphas:
            self._leave_out_unused(last, residual)
        if not self.alphas:
            self._sketch = self._sketched(last, residual)
        alpha = self.space.dot(last, residual)
        beta = self.basis.project_off(residual)
        if not np.isfinite(alpha + beta):
            _check.refuse("lanczos", "operator", "one with finite products", alpha + beta)
        self.is_changing = True
        self._append(residual, alpha, beta)
        self.is_changing = False

    def _leave_out_unused(self, probe: Tensor, product: Tensor) -> None:
        r"""Restrict a probe to the entries that the matrix acts on, and divide it and its product by its new norm.

        If the product with a random vector is exactly zero in an entry, that row of the matrix is zero, and by symmetry
        so is the column: an eigenvector of eigenvalue 0.
        """
        unused = product == 0
        count = int(self.space.sum(unused.sum()))
        if 0 < count < self.operator.dim:
            self.num_unused = count
            probe[unused] = 0
            length = self.space.norm(probe)
            probe /= length
            product /= length

    def require_unchanged(self, function: str, start: Tensor) -> None:
        r"""Take the first product once more, and refuse if it differs: the operator has changed during the run.

        A change by E changes the product with a random :math:`v_1` by :math:`\|E v_1\|`, which is
        :math:`\|E\|_F / \sqrt d` on average; the later steps do not show a change reliably. Because the first product
        is not kept, :math:`\alpha_1` is compared, and 64 sums of entries with the signs of :math:`v_1`. These change by
        as much as the product on average. A resumed run has :math:`\alpha_1` alone. Operators made with
        ``check=False`` are not checked.
        """
        if not getattr(self.operator, "is_checked", True):
            return
        vector = start / self.space.norm(start)
        product = self.operator(vector.to(self.operator.device)).to(vector.device)
        if self.num_unused:
            self._leave_out_unused(vector, product)
        size = self.space.norm(product)
        gap = abs(self.space.dot(vector, product) - self.alphas[0])
        if self._sketch is not None:
            gap = max(gap, float((self._sketched(vector, product) - self._sketch).norm()))
        if not gap <= TOLERANCE[self.operator.dtype] * size:
            need = "the same matrix until the end of the run"
            remedy = "Do not train, or change the examples, while a spectrum is measured."
            got = f"one whose first product has changed by {gap / size if size else gap:.1e} of its length"
            _check.refuse(function, "operator", need, got, remedy)

    def _sketched(self, vector: Tensor, product: Tensor) -> Tensor:
        """Sums of 64 parts of ``product``, with the signs of ``vector``."""
        parts = zip(product.tensor_split(SKETCH), vector.tensor_split(SKETCH), strict=True)
        sums = [torch.where(v < 0, -p, p).sum(dtype=torch.float64) for p, v in parts]
        return self.space.sum(torch.stack(sums)).cpu()

    def _append(self, residual: Tensor, alpha: float, beta: float) -> None:
        self.alphas.append(alpha)
        self.betas.append(beta)
        size = max(abs(a) + 2 * b for a, b in zip(self.alphas, [*self.betas[:-1], 0.0], strict=True))
        self.exact = beta <= BREAKDOWN_ROUNDINGS * torch.finfo(self.operator.dtype).eps * size
        if not self.exact and len(self.alphas) < self.plan.num_products:
            if self.basis.is_full:
                self.basis.lock(np.array(self.alphas), np.array(self.betas))
            self.basis.append(residual, beta)

    def reopen(self) -> None:
        """Undo the last step if it ended the run but the plan has more steps.

        The last step keeps no vector to continue from. Repeating it gives the same numbers, and the vector.
        """
        ended = self.basis.coordinates.shape[1] == len(self.alphas)
        if ended and not self.exact and len(self.alphas) < self.plan.num_products:
            self.alphas.pop()
            self.betas.pop()

    @property
    def is_done(self) -> bool:
        """Whether the run is exact or has used all its steps."""
        return self.exact or len(self.alphas) >= self.plan.num_products

    def result(self) -> LanczosRun:
        """The run so far."""
        return make_run(self.alphas, self.betas, self.exact, self.operator.dtype)


def make_run(alphas: list[float] | Array, betas: list[float] | Array, exact: bool, dtype: torch.dtype) -> LanczosRun:
    """A run from the numbers of its tridiagonal, with its distinct nodes counted."""
    diagonal, off_diagonal = frozen(np.asarray(alphas, dtype=np.float64)), frozen(np.asarray(betas, dtype=np.float64))
    if len(diagonal) == 0:
        return LanczosRun(diagonal, off_diagonal, exact, 0)
    nodes, _, residuals = _ritz(diagonal, off_diagonal)
    return LanczosRun(diagonal, off_diagonal, exact, len(diagonal) - int(_copies(nodes, residuals, dtype).sum()))


def shortened(run: LanczosRun, num_steps: int, dtype: torch.dtype) -> LanczosRun:
    """The run as it was after ``num_steps`` steps: the leading block of its tridiagonal."""
    if len(run.alphas) <= num_steps:
        return run
    return make_run(run.alphas[:num_steps], run.betas[:num_steps], False, dtype)


@dataclass(frozen=True, eq=False)
class Measure:
    """A tridiagonal with distinct nodes, and the norm of the residual of each node in ascending order."""

    alphas: Array
    betas: Array
    residuals: Array


def without_copies(run: LanczosRun, dtype: torch.dtype) -> Measure:
    """The tridiagonal of the same measure, with every group of copied nodes merged into one node.

    A copy takes a part of the weight of the eigenvalue that it copies (Greenbaum, Linear Algebra Appl. 113, 1989). The
    merged nodes pass through Lanczos again, in float64 and with a diagonal matrix.
    """
    nodes, weights, residuals = _ritz(run.alphas, run.betas)
    errors = np.maximum(residuals, _rounding(nodes, dtype))
    if run.num_distinct == len(run.alphas):
        return Measure(run.alphas, run.betas, errors)
    group = np.concatenate(([0], np.cumsum(~_copies(nodes, residuals, dtype))))
    shares = np.bincount(group, weights)
    means = np.bincount(group, nodes) / np.bincount(group)
    first = np.searchsorted(group, np.arange(len(shares)))
    used = shares > 0
    merged = diagonal_lanczos(means[used], np.sqrt(shares[used]))
    return Measure(*merged, np.minimum.reduceat(errors, first)[used])


def _ritz(alphas: Array, betas: Array) -> tuple[Array, Array, Array]:
    """Nodes of a tridiagonal in ascending order, their weights, and the norms of their residuals."""
    nodes, vectors = eigenpairs(alphas, betas)
    return nodes, vectors[0] ** 2, betas[-1] * np.abs(vectors[-1])


def _rounding(nodes: Array, dtype: torch.dtype) -> float:
    """The rounding error of the largest node."""
    return float(torch.finfo(dtype).eps * np.abs(nodes).max())


def diagonal_lanczos(nodes: Array, start: Array) -> tuple[Array, Array]:
    """The tridiagonal α, β of a diagonal matrix with distinct entries, with as many rows as the matrix."""
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


def _copies(nodes: Array, residuals: Array, dtype: torch.dtype) -> BoolArray:
    """For each node but the first, whether it is a copy of the node before it.

    Two nodes are copies if they agree up to rounding and one of them has converged to that accuracy. Nodes near zero
    can be as close without being converged.
    """
    width = COPY_ROUNDINGS * _rounding(nodes, dtype)
    close: BoolArray = (np.diff(nodes) <= width) & (np.minimum(residuals[1:], residuals[:-1]) <= width)
    return close


@renamed(num_steps="num_products")
def lanczos(operator: LinearOperator, start: Tensor, num_products: int, memory_budget: int | None = None) -> LanczosRun:
    r"""Run Lanczos from a start vector v, such as a random probe or a gradient.

    The Gauss rule of the result (:func:`eigencurve.spectrum.quadrature.gauss_quadrature`) matches the moments

    .. math:: \sum_i w_i \theta_i^k = \frac{v^\top H^k v}{v^\top v}, \qquad k < 2m.

    Args:
        operator: Symmetric operator.
        start: Start vector of ``operator.dim`` numbers, not zero.
        num_products: Maximum number of steps m; the run ends earlier if the Krylov space is exhausted.
        memory_budget: Upper limit in bytes for all vectors of the run; see :func:`plan_memory`.

    Raises:
        ValueError: If the start vector is zero, not finite or of the wrong length, or if the budget is too small.
    """
    steps = min(_check.whole("lanczos", "num_products", num_products, minimum=1), operator.dim)
    renew_operator(operator)
    space = space_of(operator)
    if start.shape != (space.size,) or start.dtype != operator.dtype:
        need = f"{space.size} numbers of type {operator.dtype}"
        _check.refuse("lanczos", "start", need, f"shape {tuple(start.shape)}, {start.dtype}")
    length = space.dot(start, start)
    if not 0 < length < float("inf"):
        _check.refuse("lanczos", "start", "finite and not zero", f"a squared length of {length}")
    run = Recurrence(operator, plan_memory(space.size, steps, memory_budget, operator.dtype, operator.device))
    run.start(start)
    while not run.is_done:
        run.step()
    run.require_unchanged("lanczos", start.to(run.plan.device))
    return run.result()
