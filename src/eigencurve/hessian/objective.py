"""What is differentiated, and with respect to what: a loss in two halves and the chosen parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from eigencurve import _check
from eigencurve.hessian.batches import Batches


@dataclass(frozen=True)
class Objective:
    """A mean loss in two halves: ``outputs(model, batch)``, then ``loss(outputs, batch)``."""

    outputs: Callable[[nn.Module, Any], Any]
    loss: Callable[[Any, Any], Tensor]


def as_objective(loss_fn: Callable[[Any, Any], Tensor] | Objective) -> Objective:
    """``loss_fn(model(x), y)`` in two halves; an Objective is one already."""
    if isinstance(loss_fn, Objective):
        return loss_fn
    if not callable(loss_fn):
        raise TypeError(_check.sentence("HessianOperator", "loss_fn", "callable as loss_fn(outputs, y)", loss_fn))
    return Objective(lambda model, batch: model(batch[0]), lambda outputs, batch: loss_fn(outputs, batch[1]))


def chosen_parameters(function: str, model: nn.Module, patterns: str | Iterable[str] | None) -> dict[str, nn.Parameter]:
    """The trainable parameters whose names match, all of one floating type on one device."""
    wanted = ["*"] if patterns is None else [patterns] if isinstance(patterns, str) else list(patterns)
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not trainable:
        _check.refuse(function, "model", "a model with trainable parameters", "none that requires a gradient")
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in trainable):
            remedy = "The first of them are " + ", ".join(list(trainable)[:5]) + "."
            _check.refuse(function, "parameters", "a pattern that some trainable parameter matches", pattern, remedy)
    chosen = {name: p for name, p in trainable.items() if any(fnmatchcase(name, pattern) for pattern in wanted)}
    if len({(p.dtype, p.device) for p in chosen.values()}) > 1:
        kinds = sorted({f"{p.dtype} on {p.device}" for p in chosen.values()})
        _check.refuse(function, "model", "of one floating type on one device", ", ".join(kinds))
    dtype = next(iter(chosen.values())).dtype
    if dtype not in (torch.float32, torch.float64):
        _check.refuse(function, "model", "of type float32 or float64", dtype, "Call model.float() on a copy of it.")
    return chosen


def require_whole_statistics(function: str, model: nn.Module, batches: Batches) -> None:
    """Refuse batch norm that would normalise with the statistics of a microbatch in the place of its batch's."""
    if batches.num_pieces == batches.num_batches:
        return
    kinds = nn.modules.batchnorm._BatchNorm
    for name, module in model.named_modules():
        if isinstance(module, kinds) and (module.training or not module.track_running_stats):
            remedy = (
                f"Batch norm in train mode ({name}) makes the loss depend on how the batch is cut: microbatches would "
                "have another Hessian. Use mode='eval', or leave 'microbatch' out."
            )
            _check.refuse(function, "microbatch", "None with batch norm in train mode", batches.microbatch, remedy)
