"""range_test: the loss at increasing learning rates, for a PyTorch model that is left as it was."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from eigencurve import _check
from eigencurve.adapters.groups import ratios_of
from eigencurve.adapters.range_curve import RISE, RangeTest
from eigencurve.schedules.classic import constant

try:
    import torch
    from torch import Tensor, nn
    from torch.optim import Optimizer
except ImportError as error:
    raise ImportError("eigencurve.adapters.range_test needs PyTorch: pip install eigencurve[torch]") from error

from eigencurve.hessian.batches import generators_of
from eigencurve.hessian.isolation import undisturbed

# Memory of the running average of the loss that stops the test.
MEMORY = 0.8


def range_test(
    model: nn.Module,
    loss_fn: Callable[[Any, Any], Tensor],
    loader: Iterable[Any],
    optimizer: Optimizer,
    *,
    min_lr: float = 1e-6,
    max_lr: float = 10.0,
    num_steps: int = 100,
    stop_factor: float = RISE,
    seed: int = 0,
) -> RangeTest:
    r"""Train with a rate that rises exponentially, and return the losses and a suggested rate.

    .. math:: \eta_t = \eta_{\min}\,(\eta_{\max}/\eta_{\min})^{t/(n-1)}

    The first parameter group has this rate; the others keep their ratio to it. The test stops when the running average
    of the loss exceeds ``stop_factor`` times its lowest value. Afterwards the model, its gradients and buffers, the
    optimizer and all random states are what they were, bit for bit, also after an exception or Ctrl-C. This takes
    memory for a copy of the weights, the gradients and the optimizer's state.

    Args:
        model: Model to test; it is in training mode during the test.
        loss_fn: ``loss_fn(model(x), y)``, the mean loss of a batch.
        loader: Batches (x, y): a DataLoader or a list. It is repeated if it is shorter than the test.
        optimizer: Optimizer of the model, in any state.
        min_lr: First rate.
        max_lr: Last rate, unless the test stops before.
        num_steps: Number of steps n.
        stop_factor: Factor of the loss at which to stop, above 1.
        seed: Seed of the random states during the test.

    Warns:
        UserWarning: The loss did not rise up to ``max_lr``.

    Reference: Smith, 2017, arXiv:1506.01186, Section 3.3.
    """

    def objective(module: nn.Module, batch: Any) -> Tensor:
        x, y = batch
        return loss_fn(module(x), y)

    settings = {"min_lr": min_lr, "max_lr": max_lr, "num_steps": num_steps, "stop_factor": stop_factor, "seed": seed}
    return run_range_test(model, objective, loader, optimizer, **settings)  # type: ignore[arg-type]


def run_range_test(
    model: nn.Module,
    objective: Callable[[Any, Any], Tensor],
    loader: Iterable[Any],
    optimizer: Optimizer,
    *,
    min_lr: float = 1e-6,
    max_lr: float = 10.0,
    num_steps: int = 100,
    stop_factor: float = RISE,
    seed: int = 0,
) -> RangeTest:
    """The same as :func:`range_test`, for batches of any structure and ``objective(model, batch)``, the mean loss."""
    name = "range_test"
    low, high = _check.positive(name, "min_lr", min_lr), _check.positive(name, "max_lr", max_lr)
    if low >= high:
        _check.refuse(name, "max_lr", f"> min_lr = {low:g}", high)
    steps, factor = _check.whole(name, "num_steps", num_steps, minimum=2), _check.real(name, "stop_factor", stop_factor)
    if factor <= 1:
        _check.refuse(name, "stop_factor", "> 1", factor)
    if not isinstance(optimizer, Optimizer):
        _check.wrong_type(name, "optimizer", "a torch.optim.Optimizer", optimizer)
    rates = np.geomspace(low, high, steps)
    device = next(model.parameters()).device
    with restored(model, optimizer), undisturbed(model, "train", seed, generators_of(loader), device):
        losses = _losses(model, objective, _endless(loader, device), optimizer, rates.tolist(), factor)
    found = RangeTest(rates[: len(losses)], np.array(losses), stopped=len(losses) < steps)
    if found.diverged_at is None:
        remedy = f"Pass max_lr={10 * high:g}, for example, to see where training diverges."
        warnings.warn(f"range_test: the loss did not rise up to max_lr={high:g}. {remedy}", stacklevel=3)
    return found


@contextmanager
def restored(model: nn.Module, optimizer: Optimizer) -> Iterator[None]:
    """Run a block, then restore the weights and gradients of ``model`` and the state and settings of ``optimizer``."""
    parameters = dict.fromkeys(model.parameters()) | {p: None for g in optimizer.param_groups for p in g["params"]}
    weights = [(p, p.detach().clone(), p.grad, None if p.grad is None else p.grad.detach().clone()) for p in parameters]
    state = {parameter: copy.deepcopy(values) for parameter, values in optimizer.state.items()}
    settings = [
        {name: (value, copy.deepcopy(value)) for name, value in group.items() if name != "params"}
        for group in optimizer.param_groups
    ]
    flags: dict[str, Any] = {
        name: optimizer.__dict__[name] for name in ("_opt_called", "_step_count") if name in optimizer.__dict__
    }
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value, grad, grad_value in weights:
                parameter.copy_(value)
                if grad is not None and grad_value is not None:
                    grad.copy_(grad_value)
                parameter.grad = grad
            for group, before in zip(optimizer.param_groups, settings, strict=True):
                for name in set(group) - {"params", *before}:
                    del group[name]
                for name, (original, value) in before.items():
                    # A rate in a tensor stays the same tensor, because compiled steps refer to it.
                    group[name] = original.copy_(value) if isinstance(original, Tensor) else value
        optimizer.state.clear()
        optimizer.state.update(state)
        optimizer.__dict__.update(flags)


def _losses(
    model: nn.Module,
    objective: Callable[[Any, Any], Tensor],
    batches: Iterator[Any],
    optimizer: Optimizer,
    rates: list[float],
    stop_factor: float,
) -> list[float]:
    ratios = ratios_of("range_test", constant(1, rates[0]), optimizer.param_groups)
    losses: list[float] = []
    average, weight, lowest = 0.0, 0.0, math.inf
    for rate in rates:
        for group, ratio in zip(optimizer.param_groups, ratios, strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate * ratio)
            else:
                group["lr"] = rate * ratio
        optimizer.zero_grad()
        loss = objective(model, next(batches))
        losses.append(float(loss.detach()))
        average, weight = MEMORY * average + (1 - MEMORY) * losses[-1], MEMORY * weight + 1 - MEMORY
        lowest = min(lowest, average / weight)
        if not math.isfinite(losses[-1]) or average / weight > stop_factor * max(lowest, 0.0):
            break
        torch.autograd.backward(loss)
        optimizer.step()
    return losses


def _endless(loader: Iterable[Any], device: torch.device) -> Iterator[Any]:
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield _on(device, batch)
        if empty:
            remedy = "Pass a DataLoader or a list; an iterator can be read only once."
            _check.refuse("range_test", "loader", "batches that can be read repeatedly", "no batches", remedy)


def _on(device: torch.device, batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict) or hasattr(batch, "items"):
        return {name: _on(device, value) for name, value in batch.items()}
    return type(batch)(_on(device, value) for value in batch) if isinstance(batch, list | tuple) else batch
