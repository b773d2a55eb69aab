"""range_test: the loss of a PyTorch model at increasing learning rates, and the rate that it suggests."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve.adapters.groups import ratios_of
from eigencurve.schedules.decays import constant

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
# Width of the smoothing kernel, as a fraction of the number of steps, and at least this many steps.
WIDTH, FEWEST = 0.03, 2.0
# Training has diverged if the loss is this many times its lowest value.
RISE = 4.0
# The usual rule of thumb: a tenth of the rate at which training diverges.
SAFETY = 10.0


@dataclass(frozen=True, eq=False, repr=False)
class RangeTest:
    """Losses at increasing learning rates, one step each.

    Attributes:
        rates: Learning rate of each step; the rate of the first parameter group if there are several.
        losses: Loss of the batch of each step, before the step. The last one may be infinite or NaN.
        stopped: Whether the test ended before its last rate, because the loss rose.
    """

    rates: Array
    losses: Array
    stopped: bool = False

    def __post_init__(self) -> None:
        rates = _check.vector("RangeTest", "rates", self.rates)
        losses = np.asarray(self.losses, dtype=np.float64)
        if losses.shape != rates.shape or (np.diff(rates) <= 0).any() or rates[0] <= 0:
            need = "increasing rates > 0 with one loss each"
            _check.refuse("RangeTest", "rates", need, f"{len(rates)} rates, {losses.size} losses")
        object.__setattr__(self, "rates", frozen(rates))
        object.__setattr__(self, "losses", frozen(losses))

    @property
    def smoothed(self) -> Array:
        """The finite losses, averaged with a Gaussian kernel over neighbouring steps."""
        finite = np.isfinite(self.losses)
        losses = self.losses[: len(finite) if finite.all() else int(np.argmin(finite))]
        places = np.arange(len(losses))
        kernel = np.exp(-0.5 * ((places[:, None] - places) / max(WIDTH * len(self.rates), FEWEST)) ** 2)
        return np.asarray(kernel @ losses / kernel.sum(axis=1))

    @property
    def noise(self) -> float:
        """The standard deviation of the losses around the smoothed ones, estimated from their median."""
        smoothed = self.smoothed
        return float(1.4826 * np.median(np.abs(self.losses[: len(smoothed)] - smoothed))) if len(smoothed) else 0.0

    @property
    def steepest(self) -> float | None:
        """The rate at which the smoothed loss falls fastest over ln(rate); None if it falls by less than the noise."""
        smoothed = self.smoothed
        if len(smoothed) < 2 or smoothed[0] - smoothed.min() <= self.noise:
            return None
        falling = np.gradient(smoothed, np.log(self.rates[: len(smoothed)]))[: int(np.argmin(smoothed)) + 1]
        return float(self.rates[int(np.argmin(falling))])

    @property
    def diverged_at(self) -> float | None:
        """The first rate after the minimum at which the loss has risen; None if it does not rise.

        The smoothed loss has risen if it is above the initial one, or four times the lowest, by more than three times
        the noise. If it is not but the test was stopped, or the loss is infinite, it is the last rate.
        """
        smoothed = self.smoothed
        if len(smoothed):
            lowest = int(np.argmin(smoothed))
            limit = min(smoothed[0], RISE * smoothed[lowest]) + 3 * self.noise
            above = np.flatnonzero(smoothed[lowest:] > limit)
            if len(above):
                return float(self.rates[lowest + above[0]])
        if len(smoothed) < len(self.rates):
            return float(self.rates[len(smoothed)])
        return float(self.rates[-1]) if self.stopped else None

    @property
    def tenth(self) -> float | None:
        """A tenth of the rate at which training diverges; None if it did not diverge."""
        return None if self.diverged_at is None else self.diverged_at / SAFETY

    @property
    def suggestion(self) -> float | None:
        """The smaller one of ``steepest`` and ``tenth``; None if neither is known."""
        return min((rate for rate in (self.steepest, self.tenth) if rate is not None), default=None)

    def __repr__(self) -> str:
        lines = [
            f"RangeTest({len(self.rates)} steps, rates {self.rates[0]:.3g} to {self.rates[-1]:.3g})",
            f"  steepest descent of the loss   {_shown(self.steepest)}",
            f"  divergence                     {_shown(self.diverged_at)}",
            f"  a tenth of the divergence      {_shown(self.tenth)}",
            f"  suggested rate                 {_shown(self.suggestion)}",
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class RangeSettings:
    """Settings of :func:`range_test`, which documents each of them."""

    min_lr: float = 1e-6
    max_lr: float = 10.0
    num_steps: int = 100
    stop_factor: float = RISE
    seed: int = 0

    def __post_init__(self) -> None:
        name = "range_test"
        low, high = _check.positive(name, "min_lr", self.min_lr), _check.positive(name, "max_lr", self.max_lr)
        if low >= high:
            _check.refuse(name, "max_lr", f"> min_lr = {low:g}", high)
        _check.whole(name, "num_steps", self.num_steps, minimum=2)
        if _check.real(name, "stop_factor", self.stop_factor) <= 1:
            _check.refuse(name, "stop_factor", "> 1", self.stop_factor)

    @property
    def rates(self) -> Array:
        """The rate of each step."""
        return np.geomspace(self.min_lr, self.max_lr, self.num_steps)


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

    settings = RangeSettings(min_lr, max_lr, num_steps, stop_factor, seed)
    return run_range_test(model, objective, loader, optimizer, settings)


def run_range_test(
    model: nn.Module,
    objective: Callable[[Any, Any], Tensor],
    loader: Iterable[Any],
    optimizer: Optimizer,
    settings: RangeSettings,
) -> RangeTest:
    """The same as :func:`range_test`, for batches of any structure and ``objective(model, batch)``, the mean loss."""
    if not isinstance(optimizer, Optimizer):
        _check.wrong_type("range_test", "optimizer", "a torch.optim.Optimizer", optimizer)
    device = next(model.parameters()).device
    with restored(model, optimizer), undisturbed(model, "train", settings.seed, generators_of(loader), device):
        losses = _losses(model, objective, _endless(loader, device), optimizer, settings)
    stopped = len(losses) < settings.num_steps
    result = RangeTest(settings.rates[: len(losses)], np.array(losses), stopped)
    if result.diverged_at is None:
        high = settings.max_lr
        remedy = f"Pass max_lr={10 * high:g}, for example, to see where training diverges."
        warnings.warn(f"range_test: the loss did not rise up to max_lr={high:g}. {remedy}", stacklevel=3)
    return result


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
    settings: RangeSettings,
) -> list[float]:
    ratios = ratios_of("range_test", constant(1, settings.min_lr), optimizer.param_groups)
    losses: list[float] = []
    average, weight, lowest = 0.0, 0.0, math.inf
    for rate in settings.rates.tolist():
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
        if not math.isfinite(losses[-1]) or average / weight > settings.stop_factor * max(lowest, 0.0):
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


def _shown(rate: float | None) -> str:
    return "not found" if rate is None else f"{rate:.3g}"
