"""The loss in two halves, and the parameters that it is differentiated with respect to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from eigencurve import _check
from eigencurve.hessian.batches import Batches
from eigencurve.hessian.space import own_part


@dataclass(frozen=True)
class Objective:
    """A mean loss in two halves: ``outputs(model, batch)``, then ``loss(outputs, batch)``."""

    outputs: Callable[[nn.Module, Any], Any]
    loss: Callable[[Any, Any], Tensor]


def as_objective(function: str, loss_fn: Callable[[Any, Any], Tensor] | Objective) -> Objective:
    """Split ``loss_fn(model(x), y)`` into its two halves; an Objective is returned unchanged."""
    if isinstance(loss_fn, Objective):
        return loss_fn
    if not callable(loss_fn):
        _check.wrong_type(function, "loss_fn", "callable as loss_fn(outputs, y)", loss_fn)
    return Objective(lambda model, batch: model(batch[0]), lambda outputs, batch: loss_fn(outputs, batch[1]))


def chosen_parameters(function: str, model: nn.Module, patterns: Sequence[str]) -> dict[str, nn.Parameter]:
    """The trainable parameters whose names match a pattern, all of one floating type on one device."""
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not trainable:
        _check.refuse(function, "model", "a model with trainable parameters", "none that requires a gradient")
    for pattern in patterns:
        if not any(_matches(name, [pattern], trainable) for name in trainable):
            remedy = "Its first trainable parameters are " + ", ".join(list(trainable)[:5]) + "."
            _check.refuse(function, "parameters", "a pattern that matches a trainable parameter", pattern, remedy)
    chosen = {name: p for name, p in trainable.items() if _matches(name, patterns, trainable)}
    kinds = {(p.dtype, p.device) for p in chosen.values()}
    if len(kinds) > 1:
        got = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        _check.refuse(function, "model", "of one floating type on one device", got)
    dtype, _ = kinds.pop()
    if dtype not in (torch.float32, torch.float64):
        _check.refuse(function, "model", "of type float32 or float64", dtype, "Call .float() on a copy of the model.")
    return chosen


def _matches(name: str, patterns: Iterable[str], names: Collection[str]) -> bool:
    """Whether some pattern matches a name. One that is a name itself matches only that: names may contain brackets."""
    return any(name == pattern if pattern in names else fnmatchcase(name, pattern) for pattern in patterns)


def other_parameters(model: nn.Module, names: Collection[str]) -> dict[str, Tensor]:
    """Parameters of ``model`` that are not in ``names``, frozen or not chosen; of distributed ones the own part."""
    return {name: own_part(p.detach()) for name, p in model.named_parameters() if name not in names}


def require_same_parameters(
    function: str,
    model: nn.Module,
    patterns: Iterable[str],
    chosen: Mapping[str, nn.Parameter],
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    """Refuse to use ``model`` if the operator's parameters are no longer those that ``patterns`` choose."""
    now = {name: p for name, p in model.named_parameters() if p.requires_grad and _matches(name, patterns, chosen)}
    kind = dtype, device
    changes = [f"{name} is no longer a trainable parameter of it" for name in chosen if name not in now]
    changes += [f"{name} has become a trainable parameter" for name in now if name not in chosen]
    changes += [f"{name} has been replaced" for name, p in now.items() if chosen.get(name, p) is not p]
    changes += [f"{name} is now {p.dtype} on {p.device}" for name, p in now.items() if (p.dtype, p.device) != kind]
    if changes:
        need = "the one that the operator was made for, with the same parameters"
        _check.refuse(function, "model", need, changes[0], "Make a new operator.")


def checked_loss(function: str, loss: Any, index: int) -> Tensor:
    """The loss of microbatch ``index`` as a scalar, if it is one that can be differentiated."""
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        got = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else loss
        _check.refuse(function, "loss_fn", "a scalar: the mean over the batch", got, "Use reduction='mean'.")
    if not loss.requires_grad:
        _check.refuse(function, "loss_fn", "a function of the parameters", "a loss without a gradient")
    if not bool(torch.isfinite(loss)):
        _check.refuse(function, "loss_fn", "finite", loss.item(), f"This is the loss of microbatch {index}.")
    return loss.reshape(())


def require_unsplit_batch_norm(function: str, model: nn.Module, batches: Batches) -> None:
    """Refuse microbatches if batch norm would use their statistics instead of the whole batch's."""
    name = _active_batch_norm(model)
    if batches.is_split and name is not None:
        remedy = (
            f"Batch norm in train mode ({name}) makes the loss depend on how the batch is split, so microbatches "
            "have another Hessian. Use mode='eval', or leave ", _check.Arg("microbatch"), " out.",
        )  # fmt: skip
        _check.refuse(function, "microbatch", "None with batch norm in train mode", batches.microbatch, remedy)


def require_separate_examples(function: str, model: nn.Module, mode: str) -> None:
    """Refuse to split a batch if batch norm makes the gradient of an example depend on the rest of its batch."""
    name = _active_batch_norm(model)
    if name is not None:
        remedy = (
            f"Batch norm in train mode ({name}) mixes the examples of a batch, so the gradient of one example does not "
            "exist. Use mode='eval'."
        )
        _check.refuse(function, "mode", "one in which examples are independent", mode, remedy)


def _active_batch_norm(model: nn.Module) -> str | None:
    """Name of the first batch norm that uses the statistics of the batch."""
    norms = nn.modules.batchnorm._BatchNorm
    modules = ((name, module) for name, module in model.named_modules() if isinstance(module, norms))
    return next((name for name, module in modules if module.training or not module.track_running_stats), None)
