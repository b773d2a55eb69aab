"""The diagonal preconditioner and the weight decay of PyTorch's adaptive optimizers, read from their state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Adagrad, Adam, AdamW, Optimizer, RMSprop

from eigencurve import _check
from eigencurve._check import Arg
from eigencurve.hessian.space import own_part


class AdaptiveState(NamedTuple):
    """The preconditioner and the weight decay of an optimizer.

    Attributes:
        diagonal: Diagonal of P, a flat tensor.
        weight_decay: Weight decay, one number or one per entry of ``diagonal``.
        decoupled: Whether the decay is decoupled from the gradient, as in AdamW.
    """

    diagonal: Tensor
    weight_decay: float | Tensor
    decoupled: bool


def read_optimizer(function: str, optimizer: Optimizer, parameters: Mapping[str, Tensor]) -> AdaptiveState:
    r"""Preconditioner P of the step :math:`w \leftarrow w - \eta P^{-1} m`, and its weight decay, for ``parameters``.

    η is the learning rate of the optimizer's first group. A group whose rate is r times as large divides its part of P
    by r, and multiplies its decoupled decay by r.

    Raises:
        TypeError: If the optimizer is of an unknown kind.
        ValueError: If a parameter does not belong to the optimizer or has no state yet, or if groups have different
            learning rates of which one is zero.
    """
    denominator = _denominator(function, optimizer)
    groups = {parameter: group for group in optimizer.param_groups for parameter in group["params"]}
    parts, decays, decoupled = [], [], []
    for name, parameter in parameters.items():
        group, state = _group_and_state(function, optimizer, groups, name, parameter)
        rate = _relative_rate(function, group, optimizer.param_groups[0])
        parts.append(own_part(denominator(state, group, parameter.dtype)).reshape(-1) / rate)
        decoupled.append(isinstance(optimizer, AdamW) or bool(group.get("decoupled_weight_decay", False)))
        decays.append(float(group["weight_decay"]) * (rate if decoupled[-1] else 1.0))
    return AdaptiveState(torch.cat(parts), *_joined_decay(parts, decays, decoupled))


def _adam(state: Mapping[str, Any], group: Mapping[str, Any], dtype: torch.dtype) -> Tensor:
    second: Tensor = state["max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq"].to(dtype)
    correction: float = 1 - float(group["betas"][1]) ** float(state["step"])
    return (second / correction).sqrt_().add_(group["eps"])


def _rmsprop(state: Mapping[str, Any], group: Mapping[str, Any], dtype: torch.dtype) -> Tensor:
    second: Tensor = state["square_avg"].to(dtype)
    if group["centered"]:
        second = second - state["grad_avg"].to(dtype).square()
    return second.sqrt().add_(group["eps"])


def _adagrad(state: Mapping[str, Any], group: Mapping[str, Any], dtype: torch.dtype) -> Tensor:
    total: Tensor = state["sum"].to(dtype)
    return total.sqrt().add_(group["eps"])


Denominator = Callable[[Mapping[str, Any], Mapping[str, Any], torch.dtype], Tensor]
DENOMINATORS: dict[type[Optimizer], Denominator] = {
    Adam: _adam, AdamW: _adam, RMSprop: _rmsprop, Adagrad: _adagrad,
}  # fmt: skip


def _denominator(function: str, optimizer: Optimizer) -> Denominator:
    for kind, denominator in DENOMINATORS.items():
        if isinstance(optimizer, kind):
            return denominator
    need = "an optimizer of the class " + ", ".join(kind.__name__ for kind in DENOMINATORS) + " of torch.optim"
    remedy = "For another optimizer, pass the diagonal of P itself."
    raise _check.ArgumentTypeError(function, "preconditioner", need, type(optimizer).__name__, remedy)


def _group_and_state(
    function: str, optimizer: Optimizer, groups: Mapping[Tensor, dict[str, Any]], name: str, parameter: Tensor
) -> tuple[dict[str, Any], dict[str, Any]]:
    if parameter not in groups:
        build = ("Build the operator on the model that the optimizer trains, or select ", Arg("parameters"), ".")
        _check.refuse(function, "preconditioner", f"an optimizer of the parameter {name}", "one of others", build)
    # Adagrad creates its state at step 0, before it has seen a gradient.
    state = optimizer.state.get(parameter)
    if not state or float(state["step"]) < 1:
        need, got = f"an optimizer with a state for the parameter {name}", "none"
        remedy = "Take at least one optimizer step, in which this parameter has a gradient, or load a saved state."
        _check.refuse(function, "preconditioner", need, got, remedy)
    return groups[parameter], state


def _relative_rate(function: str, group: Mapping[str, Any], first: Mapping[str, Any]) -> float:
    rate, reference = float(group["lr"]), float(first["lr"])
    if rate == reference:
        return 1.0
    if not (rate > 0 and reference > 0):
        need = "an optimizer with groups of one learning rate or of positive ones"
        _check.refuse(function, "preconditioner", need, f"rates of {reference:g} and {rate:g}")
    return rate / reference


def _joined_decay(parts: list[Tensor], decays: list[float], decoupled: list[bool]) -> tuple[float | Tensor, bool]:
    """Weight decay of all parameters together, and whether it is decoupled."""
    if len(set(decoupled)) == 1:
        if len(set(decays)) == 1:
            return decays[0], decoupled[0]
        return torch.cat([torch.full_like(part, d) for part, d in zip(parts, decays, strict=True)]), decoupled[0]
    # Decoupled decay is an L2 term in the metric P, so both kinds can be written as L2 terms.
    triples = zip(parts, decays, decoupled, strict=True)
    return torch.cat([d * part if own else torch.full_like(part, d) for part, d, own in triples]), False
