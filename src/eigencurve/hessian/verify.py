"""Seeing, before hundreds of products are spent, that an operator is one symmetric matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from eigencurve import _check
from eigencurve.hessian.basis import dot

if TYPE_CHECKING:
    from eigencurve.hessian.lanczos import LinearOperator
    from eigencurve.hessian.operator import CurvatureOperator

# The random states that every product starts from, and another one that must not change its result.
SEED = 2110_14109
OTHER_SEED = SEED + 1
# Relative differences that rounding explains: sums in another order, and the same sum by another way.
TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-8}


def verify_operator(operator: CurvatureOperator) -> float | None:
    r"""Check that the same v gives the same Hv, and that u·Hv = v·Hu, on random u and v.

    The second Hv starts from other random states, so that active dropout shows. With finite differences the
    second one also has twice the step, whose difference to the first is the measured error that is returned.

    Raises:
        ValueError: naming which of the two does not hold, and the likely cause.
    """
    u, v = probe_vectors(operator)
    other = operator.fresh_product(v, OTHER_SEED)
    first = operator.fresh_product(v, SEED)
    _require_finite(operator, first)
    _require_same(operator, v, first, other)
    error = _difference_error(operator, v, first) if operator.product == "finite_difference" else None
    _require_symmetric(operator, u, v, first, error or 0.0)
    return error


def probe_vectors(operator: LinearOperator) -> tuple[Tensor, Tensor]:
    """The random u and v, the same for every operator of the same size and type."""
    generator = torch.Generator().manual_seed(SEED)
    u, v = (torch.randn(operator.dim, generator=generator, dtype=operator.dtype).to(operator.device) for _ in range(2))
    return u, v


def symmetry_gap(u: Tensor, v: Tensor, product: Tensor, other: Tensor, error: float = 0.0) -> tuple[float, float]:
    """|u·Hv - v·Hu| of the products Hv and Hu, and what rounding and a relative ``error`` of products allow."""
    gap = abs(dot(u, product) - dot(v, other))
    return gap, (TOLERANCE[u.dtype] + 3 * error) * (_norm(product) + _norm(other))


def relative_size(difference: Tensor, reference: Tensor) -> float:
    """The length of ``difference`` over that of ``reference``, or alone where that is zero."""
    size = _norm(reference)
    return _norm(difference) / size if size > 0 else _norm(difference)


def _require_finite(operator: CurvatureOperator, product: Tensor) -> None:
    if not bool(torch.isfinite(product).all()):
        remedy = "A function such as sqrt or norm at zero has a gradient but no second derivative there."
        _check.refuse(_name(operator), "model", "one with a finite Hessian", "products with NaN or inf", remedy)


def _require_same(operator: CurvatureOperator, v: Tensor, first: Tensor, other: Tensor) -> None:
    gap = relative_size(first - other, first)
    if gap <= TOLERANCE[operator.dtype]:
        return
    again = operator.fresh_product(v, SEED)
    random = relative_size(first - again, first) <= TOLERANCE[operator.dtype]
    names = [name for name, module in operator.model.named_modules() if _drops(operator, module)]
    if random and names:
        cause = f"Dropout is active in {', '.join(names[:3])}: use mode='eval'."
    elif random:
        cause = "The model draws random numbers, or the loader changes its examples: give a fixed list of batches."
    else:
        cause = "Non-deterministic kernels: see torch.use_deterministic_algorithms."
    need = "deterministic (the same v twice must give the same Hv)"
    _check.refuse(_name(operator), "model", need, f"a relative difference of {gap:.1e}", cause)


def _require_symmetric(operator: CurvatureOperator, u: Tensor, v: Tensor, product: Tensor, error: float) -> None:
    gap, allowed = symmetry_gap(u, v, product, operator.fresh_product(u, SEED, rebuild=False), error)
    if gap > allowed:
        cause = "A backward pass that is not the derivative of its forward pass (a custom function, .detach()) does so."
        need = "one with a symmetric Hessian (u·Hv = v·Hu)"
        _check.refuse(_name(operator), "model", need, f"a difference of {gap:.1e}, {allowed:.1e} allowed", cause)


def _difference_error(operator: CurvatureOperator, v: Tensor, first: Tensor) -> float:
    wide = operator.fresh_product(v, SEED, widen=2.0)
    return relative_size(first - wide, first)


def _drops(operator: CurvatureOperator, module: nn.Module) -> bool:
    active = operator.mode == "train" or (operator.mode == "keep" and module.training)
    rate = getattr(module, "p", 0.0) if isinstance(module, nn.modules.dropout._DropoutNd) else 0.0
    inner = getattr(module, "dropout", 0.0) if isinstance(module, nn.RNNBase | nn.MultiheadAttention) else 0.0
    return active and (rate > 0 or inner > 0)


def _norm(vector: Tensor) -> float:
    return math.sqrt(dot(vector, vector))


def _name(operator: CurvatureOperator) -> str:
    return type(operator).__name__
