"""MatvecOperator: any symmetric matrix that is known by its products, whoever computes them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from scipy.sparse import issparse
from scipy.sparse.linalg import aslinearoperator
from torch import Tensor

from eigencurve import _check
from eigencurve.hessian.batches import tensor_bytes
from eigencurve.hessian.lanczos import Problem
from eigencurve.hessian.verify import TOLERANCE, probe_vectors, relative_size, symmetry_gap

DTYPES = {"float32": torch.float32, "float64": torch.float64}
VECTORS = ("numpy", "torch")


class Matrix(Protocol):
    """A NumPy, JAX or SciPy sparse matrix, a torch tensor, or a SciPy LinearOperator."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102


class MatvecOperator:
    """A symmetric matrix from its products alone, for :func:`estimate_spectrum`.

    Whatever computes the products does: NumPy, JAX, SciPy, a remote machine. Its vectors are on the host.

    Args:
        matvec: v -> Hv. It gets a vector of ``dim`` numbers, which it must leave as it is, and returns as many.
        dim: d.
        dtype: ``"float32"`` or ``"float64"``, of all vectors; None asks: float32 where that is what ``matvec`` makes
            of a float64 vector, else float64.
        vectors: what ``matvec`` takes: ``"numpy"`` arrays, which JAX takes too, or ``"torch"`` tensors.
        fingerprint: a name by which checkpoints know this problem. None hashes a product, every bit of it; so give
            a name where the same product may come out differently in its last bits.
        check: whether to spend three products on seeing that the same v gives the same Hv and that H is symmetric.

    Raises:
        TypeError: a ``matvec`` that is not callable or does not return real numbers.
        ValueError: a bad argument; products that are not finite, change from call to call, or are not symmetric.

    >>> operator = MatvecOperator(lambda v: np.array([1.0, 4.0]) * v, dim=2)
    >>> operator(torch.tensor([1.0, 1.0], dtype=torch.float64))
    tensor([1., 4.], dtype=torch.float64)
    """

    leads = True

    def __init__(
        self,
        matvec: Callable[[Any], Any],
        dim: int,
        *,
        dtype: str | None = None,
        vectors: str = "numpy",
        fingerprint: str | None = None,
        check: bool = True,
    ) -> None:
        if not callable(matvec):
            remedy = "A matrix goes into estimate_spectrum as it is."
            raise TypeError(_check.sentence("MatvecOperator", "matvec", "callable as matvec(v)", matvec, remedy))
        self._matvec, self._name = matvec, fingerprint
        self.dim = _check.whole("MatvecOperator", "dim", dim, minimum=1)
        self.vectors = _check.choice("MatvecOperator", "vectors", vectors, VECTORS)
        self.device = torch.device("cpu")
        self.dtype = (
            self._found_dtype() if dtype is None else DTYPES[_check.choice("MatvecOperator", "dtype", dtype, [*DTYPES])]
        )
        if check:
            self._verify()

    def __call__(self, vector: Tensor) -> Tensor:
        """H times ``vector``, a flat tensor of ``dim`` numbers."""
        if vector.shape != (self.dim,) or vector.dtype != self.dtype:
            got = f"shape {tuple(vector.shape)}, {vector.dtype}"
            _check.refuse("MatvecOperator", "vector", f"{self.dim} numbers of type {self.dtype}", got)
        # A copy: the result may be the argument itself, or memory that the next product is written to.
        return torch.from_numpy(np.array(self._product(vector), dtype=_numpy(self.dtype)))

    def fingerprint(self) -> str:
        """The name that was given, or a hash of a product: equal for equal problems only."""
        digest = hashlib.sha256(f"{type(self).__name__} {self.dim} {self.dtype} {self._name}".encode())
        if self._name is None:
            digest.update(tensor_bytes(self(probe_vectors(self)[1])))
        return digest.hexdigest()

    def smallest(self, value: int) -> int:
        """The smallest ``value`` of all processes that share the products; here there is one."""
        return value

    def _product(self, vector: Tensor) -> np.ndarray[Any, Any]:
        given = vector if self.vectors == "torch" else vector.numpy()
        result = self._matvec(given)
        product = result.detach().cpu().numpy() if isinstance(result, Tensor) else np.asarray(result)
        if product.dtype.kind not in "fiu":
            raise TypeError(_check.sentence("MatvecOperator", "matvec", "one that returns real numbers", product.dtype))
        if product.shape != (self.dim,):
            need = f"one that returns {self.dim} numbers, as many as 'dim' says"
            _check.refuse("MatvecOperator", "matvec", need, f"shape {product.shape}")
        return product

    def _found_dtype(self) -> torch.dtype:
        self.dtype = torch.float64
        product = self._product(probe_vectors(self)[1])
        return torch.float32 if product.dtype == np.float32 else torch.float64

    def _verify(self) -> None:
        u, v = probe_vectors(self)
        first = self(v)
        if not torch.equal(v, probe_vectors(self)[1]):
            _check.refuse("MatvecOperator", "matvec", "one that leaves its argument as it is", "one that writes to it")
        if not bool(torch.isfinite(first).all()):
            _check.refuse("MatvecOperator", "matvec", "one with finite products", "products with NaN or inf")
        change = relative_size(self(v) - first, first)
        if change > TOLERANCE[self.dtype]:
            need = "deterministic (the same v twice must give the same Hv)"
            remedy = "Fix its seed and its batches."
            _check.refuse("MatvecOperator", "matvec", need, f"a relative difference of {change:.1e}", remedy)
        gap, allowed = symmetry_gap(u, v, first, self(u))
        if gap > allowed:
            need = "that of a symmetric matrix (u·Hv = v·Hu)"
            _check.refuse("MatvecOperator", "matvec", need, f"a difference of {gap:.1e}, {allowed:.1e} allowed")


def as_operator(source: Problem | Matrix, check: bool = True) -> Problem:
    """``source`` as :func:`estimate_spectrum` needs it.

    Args:
        source: an operator, which is returned as it is; or a symmetric matrix: of NumPy, JAX, torch or SciPy, dense,
            sparse, or a ``LinearOperator``. A function alone has no dimension: make a :class:`MatvecOperator` of it.
        check: as in :class:`MatvecOperator`.

    >>> as_operator(np.diag([1.0, 2.0, 3.0])).dim
    3
    """
    if _is_problem(source):
        return source  # type: ignore[return-value]
    shape = getattr(source, "shape", None)
    if shape is None:
        remedy = "Give a function as MatvecOperator(matvec, dim=...)." if callable(source) else ""
        raise TypeError(_check.sentence("as_operator", "source", "an operator or a matrix", source, remedy))
    if len(shape) != 2 or shape[0] != shape[1]:
        _check.refuse("as_operator", "source", "a square matrix", f"shape {tuple(shape)}")
    if isinstance(source, Tensor):
        matrix, name = source.detach().cpu(), str(source.dtype).removeprefix("torch.")
        return MatvecOperator(lambda v: matrix @ v, len(matrix), dtype=name, vectors="torch", check=check)
    known = hasattr(source, "matvec") or issparse(source)
    linear = aslinearoperator(source if known else np.asarray(source))
    name = "float32" if linear.dtype == np.float32 else "float64"
    return MatvecOperator(linear.matvec, shape[0], dtype=name, check=check)


def _is_problem(source: object) -> bool:
    return callable(source) and all(
        hasattr(source, name) for name in ("dim", "dtype", "device", "leads", "fingerprint", "smallest")
    )


def _numpy(dtype: torch.dtype) -> type[np.floating[Any]]:
    return np.float32 if dtype == torch.float32 else np.float64
