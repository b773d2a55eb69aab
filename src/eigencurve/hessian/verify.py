"""Checks that an operator is one symmetric matrix, before hundreds of products are spent on it."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from eigencurve import _check
from eigencurve._check import Arg, ArgumentWarning
from eigencurve.hessian.custom_functions import HookNotice, hooked_names, without_gradient_hooks
from eigencurve.hessian.differences import choose_step, relative_size
from eigencurve.hessian.lanczos import TOLERANCE, LinearOperator
from eigencurve.hessian.space import Space, space_of

if TYPE_CHECKING:
    from eigencurve.hessian.curvature import CurvatureOperator

# The seed that every product starts from, and another one that must give the same product.
SEED = 2110_14109
OTHER_SEED = SEED + 1
# A sum over the batch with a penalty, or with batch norm, differs from the sum of its halves by less than this share of
# the difference between that sum and their mean.
NEARLY_SUM = 0.25


def verify_operator(operator: CurvatureOperator) -> float | None:
    r"""Check on random u and v that Hv is reproducible and that u·Hv = v·Hu, and that the loss is a mean.

    The two computations of Hv start from different random states, which exposes active dropout. With finite
    differences, the step is chosen here, and the measured error of a product is returned.

    Raises:
        ValueError: If a check fails. The message names the check and the likely cause.
    """
    u, v = probe_vectors(operator)
    with HookNotice() as notice:
        other = operator.fresh_product(v, OTHER_SEED)
    first = operator.fresh_product(v, SEED)
    _require_finite(operator, first)
    _require_reproducible(operator, v, first, other)
    _require_mean(operator)
    error = None
    if operator.product == "finite_difference":
        operator.difference_step, error = choose_step(
            lambda vector, step: operator.fresh_product(vector, SEED, step=step),
            operator.space,
            v,
            operator.difference_step,
        )
        first = operator.fresh_product(v, SEED)
    if not operator.space.is_shared:  # fully_shard has hooks of its own
        _require_derivatives(operator, notice.has_hooks)
    _require_symmetric(operator, u, v, first, error or 0.0)
    return error


def probe_vectors(operator: LinearOperator) -> tuple[Tensor, Tensor]:
    """Random u and v, the same for all operators of the same size and type."""
    generator, space = torch.Generator().manual_seed(SEED), space_of(operator)
    u, v = (space.normal(generator, operator.dtype).to(operator.device) for _ in range(2))
    return u, v


def symmetry_gap(
    space: Space, u: Tensor, v: Tensor, product: Tensor, other: Tensor, error: float = 0.0
) -> tuple[float, float]:
    """|u·Hv - v·Hu| of the products Hv and Hu, and the gap that rounding and a relative ``error`` can explain."""
    gap = abs(space.dot(u, product) - space.dot(v, other))
    return gap, (TOLERANCE[u.dtype] + 3 * error) * (space.norm(product) + space.norm(other))


def _require_mean(operator: CurvatureOperator) -> None:
    """Compare the loss of the first microbatch with the losses of its halves."""
    losses = operator.losses_of_halves(SEED)
    if losses is None:
        return
    allowed = TOLERANCE[operator.dtype] * max(map(abs, losses))
    whole, mean, total = losses
    if not math.isfinite(allowed) or abs(whole - mean) <= allowed:
        return
    if abs(whole - total) <= allowed:
        got = f"a sum: {whole:.4g} for a batch, and {mean:.4g} on average for its halves"
        _check.refuse(_name(operator), "loss_fn", "the mean over the batch", got, "Use reduction='mean'.")
    if abs(whole - total) <= NEARLY_SUM * abs(total - mean):
        halves = f"the losses of its halves add up to {total:.4g}, so "
        advice: tuple[str, ...] = (
            Arg("loss_fn"),
            " seems to be a sum over the batch. Use its mean (reduction='mean').",
        )
    elif operator.is_split:
        halves = f"the mean of its halves {mean:.4g}, so the matrix depends on how it is split. "
        advice = (
            "If the loss is a mean over something else than rows, pass ", Arg("count"), "; otherwise leave ",
            Arg("microbatch"), " out.",
        )  # fmt: skip
    else:
        return
    text = f"{_name(operator)}: the loss of a batch is {whole:.4g}, and {halves}"
    warnings.warn(ArgumentWarning((text, *advice)), stacklevel=4)


def _require_finite(operator: CurvatureOperator, product: Tensor) -> None:
    if not bool(torch.isfinite(product).all()):
        remedy = "Functions such as sqrt or norm have no second derivative at zero."
        _check.refuse(_name(operator), "model", "one with a finite Hessian", "products with NaN or inf", remedy)


def _require_reproducible(operator: CurvatureOperator, v: Tensor, first: Tensor, other: Tensor) -> None:
    space = operator.space
    gap = relative_size(space, first - other, first)
    if gap <= TOLERANCE[operator.dtype]:
        return
    again = operator.fresh_product(v, SEED)
    seeded = relative_size(space, first - again, first) <= TOLERANCE[operator.dtype]
    names = [name for name, module in operator.model.named_modules() if _drops(operator, module)]
    if seeded and names:
        cause = f"Dropout is active in {', '.join(names[:3])}: use mode='eval'."
    elif seeded:
        cause = "The model draws random numbers, or the loader changes its examples: pass a fixed list of batches."
    else:
        cause = "The kernels are non-deterministic: see torch.use_deterministic_algorithms."
    need = "deterministic (the same v twice must give the same Hv)"
    _check.refuse(_name(operator), "model", need, f"a relative difference of {gap:.1e}", cause)


def _require_symmetric(operator: CurvatureOperator, u: Tensor, v: Tensor, product: Tensor, error: float) -> None:
    other = operator.fresh_product(u, SEED, rebuild=False)
    gap, allowed = symmetry_gap(operator.space, u, v, product, other, error)
    if gap > allowed:
        cause = "A backward pass is not the derivative of its forward pass (in a custom function, or after .detach())."
        need = "one with a symmetric Hessian (u·Hv = v·Hu)"
        _check.refuse(_name(operator), "model", need, f"a difference of {gap:.1e}, {allowed:.1e} allowed", cause)


def _require_derivatives(operator: CurvatureOperator, has_hooks: bool) -> None:
    """Refuse gradient hooks that change gradients, and custom functions with a wrong double backward."""
    names = hooked_names(operator.model) + ["its forward"] * has_hooks
    if names:
        with_hooks = operator.gradient()
        with without_gradient_hooks(operator.model):
            plain = operator.gradient()
        gap = relative_size(operator.space, with_hooks - plain, plain)
        if not gap <= TOLERANCE[operator.dtype]:
            got = f"a relative change of {gap:.1e} by hooks of {', '.join(names[:3])}"
            remedy = "Remove the hooks (handle.remove()) while you measure."
            _check.refuse(_name(operator), "model", "without hooks that change its gradients", got, remedy)
    for name, error in operator.wrong_functions().items():
        need = "made of functions whose backward can be differentiated"
        got = f"{name}, whose second derivatives are off by {error:.1e}"
        remedy = (
            "Its backward computes with detached tensors, or with numbers from them. Use product='finite_difference', "
            "or save tensors with ctx.save_for_backward and compute with these."
        )
        _check.refuse(_name(operator), "model", need, got, remedy)


def _drops(operator: CurvatureOperator, module: nn.Module) -> bool:
    """Whether ``module`` applies dropout in the operator's mode."""
    active = operator.mode == "train" or (operator.mode == "keep" and module.training)
    rate = getattr(module, "p", 0.0) if isinstance(module, nn.modules.dropout._DropoutNd) else 0.0
    inner = getattr(module, "dropout", 0.0) if isinstance(module, nn.RNNBase | nn.MultiheadAttention) else 0.0
    return active and (rate > 0 or inner > 0)


def _name(operator: CurvatureOperator) -> str:
    return type(operator).__name__
