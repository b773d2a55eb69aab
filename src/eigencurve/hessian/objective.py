"""The loss in two halves, and the parameters that it is differentiated with respect to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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


def chosen_parameters(function: str, model: nn.Module, patterns: str | Iterable[str] | None) -> dict[str, nn.Parameter]:
    """The trainable parameters whose names match a pattern, all of one floating type on one device."""
    wanted = ["*"] if patterns is None else [patterns] if isinstance(patterns, str) else list(patterns)
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not trainable:
        _check.refuse(function, "model", "a model with trainable parameters", "none that requires a gradient")
    for pattern in wanted:
        if not any(_matches(name, pattern, trainable) for name in trainable):
            remedy = "Its first trainable parameters are " + ", ".join(list(trainable)[:5]) + "."
            _check.refuse(function, "parameters", "a pattern that matches a trainable parameter", pattern, remedy)
    chosen = {name: p for name, p in trainable.items() if any(_matches(name, pattern, trainable) for pattern in wanted)}
    if len({(p.dtype, p.device) for p in chosen.values()}) > 1:
        kinds = sorted({f"{p.dtype} on {p.device}" for p in chosen.values()})
        _check.refuse(function, "model", "of one floating type on one device", ", ".join(kinds))
    dtype = next(iter(chosen.values())).dtype
    if dtype not in (torch.float32, torch.float64):
        _check.refuse(function, "model", "of type float32 or float64", dtype, "Call .float() on a copy of the model.")
    return chosen


def _matches(name: str, pattern: str, names: Collection[str]) -> bool:
    """Whether a pattern matches a name. One that is a name itself matches only that: names may contain brackets."""
    return name == pattern if pattern in names else fnmatchcase(name, pattern)


def other_parameters(model: nn.Module, names: Collection[str]) -> dict[str, Tensor]:
    """Parameters of ``model`` that are not in ``names``, frozen or not chosen; of distributed ones the own part."""
    return {name: own_part(p.detach()) for name, p in model.named_parameters() if name not in names}


def require_same_parameters(
    function: str,
    model: nn.Module,
    patterns: Iterable[str] | None,
    chosen: Mapping[str, nn.Parameter],
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    """Refuse to use ``model`` if the operator's parameters are no longer those that ``patterns`` choose."""
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if patterns is not None:
        found = {name: p for name, p in found.items() if any(_matches(name, pattern, chosen) for pattern in patterns)}
    changes = [f"{name} is no longer a trainable parameter of it" for name in chosen if name not in found]
    changes += [f"{name} has become a trainable parameter" for name in found if name not in chosen]
    changes += [f"{name} has been replaced" for name, p in found.items() if chosen.get(name, p) is not p]
    kind = (dtype, device)
    changes += [f"{name} is now {p.dtype} on {p.device}" for name, p in found.items() if (p.dtype, p.device) != kind]
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
    """Refuse microbatches if batch norm would use their statistics instead of those of the whole batch."""
    if batches.num_pieces == batches.num_batches:
        return
    for name in _active_batch_norms(model):
        remedy = (
            f"Batch norm in train mode ({name}) makes the loss depend on how the batch is split, so microbatches "
            "have another Hessian. Use mode='eval', or leave 'microbatch' out."
        )
        _check.refuse(function, "microbatch", "None with batch norm in train mode", batches.microbatch, remedy)


def require_separate_examples(function: str, model: nn.Module, mode: str) -> None:
    """Refuse to split a batch if batch norm makes the gradient of an example depend on the rest of its batch."""
    for name in _active_batch_norms(model):
        remedy = (
            f"Batch norm in train mode ({name}) mixes the examples of a batch, so the gradient of one example does not "
            "exist. Use mode='eval'."
        )
        _check.refuse(function, "mode", "one in which examples are independent", mode, remedy)


def _active_batch_norms(model: nn.Module) -> Iterator[str]:
    """Names of the batch norms that use the statistics of the batch."""
    kinds = nn.modules.batchnorm._BatchNorm
    for name, module in model.named_modules():
        if isinstance(module, kinds) and (module.training or not module.track_running_stats):
            yield name
