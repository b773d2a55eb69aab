"""MatvecOperator: a symmetric matrix given by a function that computes its products."""

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
from eigencurve._check import Arg
from eigencurve.hessian.batches import tensor_bytes
from eigencurve.hessian.differences import relative_size
from eigencurve.hessian.lanczos import TOLERANCE, LanczosOperator
from eigencurve.hessian.preconditioned import PreconditionedOperator, precondition
from eigencurve.hessian.space import whole_space
from eigencurve.hessian.verify import probe_vectors, symmetry_gap

DTYPES = {"float32": torch.float32, "float64": torch.float64}
VECTORS = ("numpy", "torch")


class Matrix(Protocol):
    """A NumPy, JAX or SciPy sparse matrix, a torch tensor, or a SciPy LinearOperator."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102


class MatvecOperator:
    """A symmetric matrix defined by a matrix-vector product, for :func:`estimate_spectrum`.

    The function can use any library or machine: NumPy, JAX, SciPy, a remote server. Vectors are on the CPU.

    Args:
        matvec: Function v -> Hv. It must not change v.
        dim: Dimension d.
        dtype: Type of all vectors, ``"float32"`` or ``"float64"``. By default, float32 if ``matvec`` returns float32
            for a float64 vector, and float64 otherwise.
        vectors: Kind of vector that ``matvec`` takes: ``"numpy"`` arrays (also for JAX) or ``"torch"`` tensors.
        fingerprint: Name of this operator in checkpoints, which refuse another name, or another product.
        check: Whether to spend three products on checking that products are deterministic and symmetric.

    Raises:
        TypeError: If ``matvec`` is not callable or does not return real numbers.
        ValueError: If an argument is invalid, or if products are not finite, deterministic and symmetric.

    >>> operator = MatvecOperator(lambda v: np.array([1.0, 4.0]) * v, dim=2)
    >>> operator(torch.tensor([1.0, 1.0], dtype=torch.float64))
    tensor([1., 4.], dtype=torch.float64)
    """

    is_main_process = True

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
            remedy = "Pass a matrix to estimate_spectrum directly."
            _check.wrong_type("MatvecOperator", "matvec", "callable as matvec(v)", matvec, remedy)
        self._matvec, self._name = matvec, fingerprint
        self.dim = _check.whole("MatvecOperator", "dim", dim, minimum=1)
        self.vectors = _check.choice("MatvecOperator", "vectors", vectors, VECTORS)
        self.device = torch.device("cpu")
        chosen = None if dtype is None else DTYPES[_check.choice("MatvecOperator", "dtype", dtype, [*DTYPES])]
        self.dtype = self._detected_dtype() if chosen is None else chosen
        self.is_checked = check
        if check:
            self._verify()

    def __call__(self, vector: Tensor) -> Tensor:
        """Product of H and ``vector``, a flat tensor of ``dim`` numbers."""
        if vector.shape != (self.dim,) or vector.dtype != self.dtype:
            got = f"shape {tuple(vector.shape)}, {vector.dtype}"
            _check.refuse("MatvecOperator", "vector", f"{self.dim} numbers of type {self.dtype}", got)
        # Copy, because the result may be the argument itself or a buffer that the next call overwrites.
        return torch.from_numpy(np.array(self._product(vector), dtype=_numpy(self.dtype)))

    def __repr__(self) -> str:
        return f"MatvecOperator({self.dim:,} dimensions)"

    def preconditioned_by(self, diagonal: Tensor | np.ndarray[Any, Any]) -> PreconditionedOperator:
        """Return the operator in the metric P^(-1/2) H P^(-1/2) of a positive diagonal P, a flat tensor or array."""
        return precondition(self, diagonal, None)

    def fingerprint(self) -> str:
        """Hash of the given name or, without a name, of one product."""
        digest = hashlib.sha256(f"{type(self).__name__} {self.dim} {self.dtype} {self._name}".encode())
        if self._name is None:
            digest.update(tensor_bytes(self(probe_vectors(self)[1])))
        return digest.hexdigest()

    def identity_parts(self) -> dict[str, str]:
        """The settings and the given name, for checkpoints."""
        return {"settings": f"{type(self).__name__} {self.dim} {self.dtype}", "fingerprint": str(self._name)}

    def min_over_processes(self, value: int) -> int:
        """``value``: there is one process."""
        return value

    def _product(self, vector: Tensor) -> np.ndarray[Any, Any]:
        given = vector if self.vectors == "torch" else vector.numpy()
        result = self._matvec(given)
        product = result.detach().cpu().numpy() if isinstance(result, Tensor) else np.asarray(result)
        if product.dtype.kind not in "fiu":
            _check.wrong_type("MatvecOperator", "matvec", "one that returns real numbers", product.dtype)
        if product.shape != (self.dim,):
            need = (f"one that returns {self.dim} numbers, the value of ", Arg("dim"))
            _check.refuse("MatvecOperator", "matvec", need, f"shape {product.shape}")
        return product

    def _detected_dtype(self) -> torch.dtype:
        self.dtype = torch.float64
        product = self._product(probe_vectors(self)[1])
        return torch.float32 if product.dtype == np.float32 else torch.float64

    def _verify(self) -> None:
        space = whole_space(self.dim)
        u, v = probe_vectors(self)
        first = self(v)
        if not torch.equal(v, probe_vectors(self)[1]):
            _check.refuse("MatvecOperator", "matvec", "one that leaves its argument unchanged", "one that writes to it")
        if not bool(torch.isfinite(first).all()):
            _check.refuse("MatvecOperator", "matvec", "one with finite products", "products with NaN or inf")
        change = relative_size(space, self(v) - first, first)
        if change > TOLERANCE[self.dtype]:
            need = "deterministic (the same v twice must give the same Hv)"
            remedy = "Fix its seed and its batches."
            _check.refuse("MatvecOperator", "matvec", need, f"a relative difference of {change:.1e}", remedy)
        gap, allowed = symmetry_gap(space, u, v, first, self(u))
        if gap > allowed:
            need = "the product with a symmetric matrix (u·Hv = v·Hu)"
            _check.refuse("MatvecOperator", "matvec", need, f"a difference of {gap:.1e}, {allowed:.1e} allowed")


def as_operator(source: LanczosOperator | Matrix, check: bool = True) -> LanczosOperator:
    """Convert a matrix to an operator for :func:`estimate_spectrum`.

    Args:
        source: A symmetric matrix (NumPy, JAX, torch or SciPy, dense or sparse) or a SciPy ``LinearOperator``. An
            operator is returned unchanged. Wrap a function in a :class:`MatvecOperator`.
        check: Whether to check a matrix; see :class:`MatvecOperator`.

    >>> as_operator(np.diag([1.0, 2.0, 3.0])).dim
    3
    """
    if _is_operator(source):
        return source  # type: ignore[return-value]
    shape = getattr(source, "shape", None)
    if shape is None:
        remedy = "Wrap a function: MatvecOperator(matvec, dim=...)." if callable(source) else ""
        _check.wrong_type("as_operator", "source", "an operator or a matrix", source, remedy)
    if len(shape) != 2 or shape[0] != shape[1]:
        _check.refuse("as_operator", "source", "a square matrix", f"shape {tuple(shape)}")
    if isinstance(source, Tensor):
        matrix, name = source.detach().cpu(), str(source.dtype).removeprefix("torch.")
        return MatvecOperator(lambda v: matrix @ v, len(matrix), dtype=name, vectors="torch", check=check)
    is_linear = hasattr(source, "matvec") or issparse(source)
    linear = aslinearoperator(source if is_linear else np.asarray(source))
    name = "float32" if linear.dtype == np.float32 else "float64"
    return MatvecOperator(linear.matvec, shape[0], dtype=name, check=check)


def _is_operator(source: object) -> bool:
    names = ("dim", "dtype", "device", "is_main_process", "fingerprint", "min_over_processes")
    return callable(source) and all(hasattr(source, name) for name in names)


def _numpy(dtype: torch.dtype) -> type[np.floating[Any]]:
    return np.float32 if dtype == torch.float32 else np.float64
