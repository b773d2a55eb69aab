"""A schedule as a PyTorch learning-rate scheduler, and the one call from a model to its schedule."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.schedules.eigencurve import Eigencurve, eigencurve
from eigencurve.schedules.serial import schedule_from_dict
from eigencurve.schedules.units import Steps, whole_steps
from eigencurve.spectrum.spectrum import prepare

try:
    import torch
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler
except ImportError as error:
    raise ImportError("eigencurve.adapters.torch needs PyTorch: pip install eigencurve[torch]") from error

from eigencurve.hessian.estimate import SpectrumEstimate, estimate_spectrum
from eigencurve.hessian.operator import HessianOperator

VERSION = 1
ON_RESUME = ("refuse", "extend", "adopt")


class ScheduleLR(LRScheduler):
    r"""The learning rate of ``schedule`` in every group of ``optimizer``.

    .. math:: \eta_{t,g} = f(t)\, \frac{\eta_{0,g}}{\eta_{0,0}}

    so the first group gets f(t) and every other keeps its ratio to it. The optimizer's own rates matter by their
    ratios alone. Before the first call of :meth:`step` the rate is f(0); after k calls it is f(k); step T - 1, the
    last, is taken with f(T - 1), and later ones too.

    Call :meth:`step` once after every optimizer step, as for OneCycleLR. With gradient accumulation that is once per
    update, not per microbatch, and T counts updates. Where mixed precision skips an optimizer step, call it all the
    same: time goes on, and no warning is given. Of several processes each steps its own.

    Args:
        optimizer: any; its first group's rate must not be zero.
        schedule: any schedule of this package.
        last_epoch: the last step already taken, as in PyTorch; -1 begins anew.
        on_resume: what to do with a saved state of another schedule, of another horizon for instance: ``"refuse"``
            it; ``"extend"``, go on from the saved step with this scheduler's own schedule; or ``"adopt"`` the saved
            schedule.

    >>> import eigencurve as ec, torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    >>> scheduler = ScheduleLR(optimizer, ec.linear(total_steps=4, lr=0.1))
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> round(scheduler.get_last_lr()[0], 6)
    0.025
    """

    def __init__(
        self, optimizer: Optimizer, schedule: Schedule, last_epoch: int = -1, on_resume: str = "refuse"
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(_check.sentence("ScheduleLR", "optimizer", "a torch.optim.Optimizer", optimizer))
        self.schedule = require_schedule("ScheduleLR", schedule)
        self.on_resume = _check.choice("ScheduleLR", "on_resume", on_resume, ON_RESUME)
        self.ratios = _ratios(optimizer)
        super().__init__(optimizer, last_epoch)

    @classmethod
    def resume(cls, optimizer: Optimizer, state: dict[str, Any]) -> ScheduleLR:
        """A scheduler from a saved state alone: the schedule is in it."""
        scheduler = cls(optimizer, schedule_from_dict(_checked_state(state)["schedule"]))
        scheduler.load_state_dict(state)
        return scheduler

    def get_lr(self) -> list[float | torch.Tensor]:
        """The rate of every group at the current step."""
        rate = self.schedule(max(self.last_epoch, 0))
        return [rate * ratio for ratio in self.ratios]

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next step, or to step ``epoch``."""
        self._step_count += 1
        self._update_lr(epoch)

    def extend(self, schedule: Schedule) -> None:
        """Go on from the current step with another schedule, of another length for instance, on purpose.

        Raises:
            ValueError: a schedule that is over before the current step.
        """
        self.schedule = _not_over("ScheduleLR.extend", require_schedule("ScheduleLR.extend", schedule), self.last_epoch)
        self._set_rates()

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists: torch.load(weights_only=True) reads it. It holds the schedule itself."""
        return {
            "version": VERSION,
            "schedule": self.schedule.to_dict(),
            "last_epoch": self.last_epoch,
            "step_count": self._step_count,
            "ratios": list(self.ratios),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where ``state_dict`` was taken, and set the optimizer's rates accordingly.

        Raises:
            ValueError: the state of another schedule, unless ``on_resume`` says what to do with it. A horizon that
                changes on resume bends the curve unseen.
        """
        state = _checked_state(state_dict)
        schedule = self._schedule_after(schedule_from_dict(state["schedule"]), int(state["last_epoch"]))
        if len(state["ratios"]) != len(self.optimizer.param_groups):
            need = f"of {len(self.optimizer.param_groups)} parameter groups"
            _check.refuse("ScheduleLR", "state_dict", need, len(state["ratios"]))
        self.schedule, self.ratios = schedule, [float(ratio) for ratio in state["ratios"]]
        self.last_epoch, self._step_count = int(state["last_epoch"]), int(state["step_count"])
        self._set_rates()

    def _schedule_after(self, saved: Schedule, step: int) -> Schedule:
        """The schedule to go on with after a state of ``saved`` at ``step``."""
        if saved != self.schedule and self.on_resume == "refuse":
            remedy = (
                "To change it on purpose, say on_resume='extend', or resume with the saved one (ScheduleLR.resume, or "
                "on_resume='adopt') and call extend."
            )
            need = f"of this scheduler's own schedule, {self.schedule!r}"
            _check.refuse("ScheduleLR", "state_dict", need, f"{saved!r}", remedy)
        return _not_over("ScheduleLR", self.schedule, step) if self.on_resume == "extend" else saved

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set_rates()

    def _set_rates(self) -> None:
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self._last_lr = self.get_lr()


def torch_schedule(
    model: torch.nn.Module,
    loss_fn: Callable[[Any, Any], torch.Tensor],
    batches: Any,
    total_steps: Steps,
    lr: float,
    weight_decay: float,
    min_lr: float | None = None,
    beta: float = 2.0,
    microbatch: int | None = None,
    num_steps: int = 250,
    num_probes: int = 1,
    seed: int = 0,
    settle: float | None = 0.02,
    memory_budget: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> tuple[Eigencurve, SpectrumEstimate]:
    """From a model to its schedule in one call: measure the spectrum, prepare it, make the curve.

    Args:
        model: near the end of a training run; early spectra differ.
        loss_fn: ``loss_fn(model(x), y)``, the mean over a batch.
        batches: tensors (x, y), a list of such pairs, or a DataLoader; a few hundred examples do.
        total_steps: T of the run that the schedule is for.
        lr: its initial rate.
        weight_decay: of its optimizer, above 0.
        min_lr: of its last step; None leaves the curve alone.
        beta: of the schedule; see :func:`eigencurve.eigencurve`.
        microbatch: the most examples in memory at a time.
        num_steps: of Lanczos, at most; this and the following as in :func:`eigencurve.hessian.estimate_spectrum`.
        num_probes: how many random directions to average.
        seed: of the probes.
        settle: by how little the schedule must have moved for the estimate to stop.
        memory_budget: bytes for all vectors.
        checkpoint: a file to save to and go on from.
        progress: whether to show a bar on a terminal.

    Returns:
        The schedule, ready for :class:`ScheduleLR`, and the estimate that it was made from.
    """
    total = whole_steps("torch_schedule", "total_steps", total_steps, minimum=1)
    operator = HessianOperator(model, loss_fn, batches, microbatch=microbatch)
    estimate = estimate_spectrum(
        operator, num_steps, num_probes, seed, settle, weight_decay, total, memory_budget, checkpoint, progress
    )
    return eigencurve(prepare(estimate.spectrum, weight_decay), total, lr, min_lr, beta), estimate


def _not_over(function: str, schedule: Schedule, step: int) -> Schedule:
    if schedule.total_steps <= step:
        _check.refuse(function, "schedule", f"of more than {step} steps, the current one", schedule.total_steps)
    return schedule


def _checked_state(state: Any) -> dict[str, Any]:
    names = ("version", "schedule", "last_epoch", "step_count", "ratios")
    if not isinstance(state, dict) or any(name not in state for name in names) or state["version"] != VERSION:
        _check.refuse("ScheduleLR", "state_dict", f"the state of a ScheduleLR, version {VERSION}", state)
    return state


def _ratios(optimizer: Optimizer) -> list[float]:
    rates = [float(group.get("initial_lr", group["lr"])) for group in optimizer.param_groups]
    if rates[0] <= 0:
        remedy = "The other groups keep their ratio to it."
        _check.refuse("ScheduleLR", "optimizer", "one whose first group has a rate > 0", rates[0], remedy)
    return [rate / rates[0] for rate in rates]
