"""ScheduleLR, a schedule as a PyTorch learning-rate scheduler, and torch_schedule, from a model to its schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from eigencurve import _check
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.schedules.serial import schedule_from_dict
from eigencurve.schedules.units import Steps, whole_steps

try:
    import torch
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler
except ImportError as error:
    raise ImportError("eigencurve.adapters.torch needs PyTorch: pip install eigencurve[torch]") from error

from eigencurve.hessian.estimate import SpectrumEstimate, run_estimate, schedule_of
from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.settings import EstimateOptions, EstimateSettings

VERSION = 1
ON_RESUME = ("refuse", "extend", "adopt")


class ScheduleLR(LRScheduler):
    r"""PyTorch scheduler that sets the learning rate of every parameter group to a schedule.

    .. math:: \eta_{t,g} = f(t)\, \frac{\eta_{0,g}}{\eta_{0,0}}

    The first group gets f(t), and every other group keeps its ratio to the first. Only the ratios of the optimizer's
    own rates matter. The rate is f(0) before the first call of :meth:`step` and f(k) after k calls; beyond the last
    step it stays at f(T - 1).

    Call :meth:`step` once after every optimizer step, as for OneCycleLR. With gradient accumulation, call it once per
    update, not per microbatch; T counts updates. If mixed precision skips an optimizer step, call it nevertheless: the
    step counts, and there is no warning. With several processes, each one steps its own scheduler.

    Args:
        optimizer: Any PyTorch optimizer. The rate of its first group must be positive.
        schedule: Any schedule of this package.
        last_epoch: Number of the last step that was taken, as in PyTorch; -1 starts a new run.
        on_resume: What to do with the saved state of a different schedule (of another length, for example).
            ``"refuse"`` raises an error, ``"extend"`` continues from the saved step with the schedule of this
            scheduler, and ``"adopt"`` continues with the saved schedule.

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
        """Create a scheduler from a saved state alone, which contains the schedule."""
        scheduler = cls(optimizer, schedule_from_dict(_checked_state(state)["schedule"]))
        scheduler.load_state_dict(state)
        return scheduler

    def get_lr(self) -> list[float | torch.Tensor]:
        """Learning rate of every group at the current step."""
        rate = self.schedule(max(self.last_epoch, 0))
        return [rate * ratio for ratio in self.ratios]

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next step, or to step ``epoch``."""
        self._step_count += 1
        self._update_lr(epoch)

    def extend(self, schedule: Schedule) -> None:
        """Continue from the current step with another schedule, such as a longer one.

        Raises:
            ValueError: If the schedule ends before the current step.
        """
        longer = require_schedule("ScheduleLR.extend", schedule)
        self.schedule = _require_steps_left("ScheduleLR.extend", longer, self.last_epoch)
        self._set_rates()

    def state_dict(self) -> dict[str, Any]:
        """State as plain numbers, strings and lists, including the schedule; it loads with ``weights_only=True``."""
        return {
            "version": VERSION,
            "schedule": self.schedule.to_dict(),
            "last_epoch": self.last_epoch,
            "step_count": self._step_count,
            "ratios": list(self.ratios),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the step and the schedule of ``state_dict``, and set the optimizer's rates.

        Raises:
            ValueError: If the state is that of a different schedule and ``on_resume`` is ``"refuse"``: a length that
                changes on resume would silently change the curve.
        """
        state = _checked_state(state_dict)
        schedule = self._resumed_schedule(schedule_from_dict(state["schedule"]), int(state["last_epoch"]))
        if len(state["ratios"]) != len(self.optimizer.param_groups):
            need = f"of {len(self.optimizer.param_groups)} parameter groups"
            _check.refuse("ScheduleLR", "state_dict", need, len(state["ratios"]))
        self.schedule, self.ratios = schedule, [float(ratio) for ratio in state["ratios"]]
        self.last_epoch, self._step_count = int(state["last_epoch"]), int(state["step_count"])
        self._set_rates()

    def _resumed_schedule(self, saved: Schedule, step: int) -> Schedule:
        """Schedule to continue with, after a state of ``saved`` at ``step``."""
        if saved != self.schedule and self.on_resume == "refuse":
            remedy = (
                "To change the schedule, pass on_resume='extend', or resume with the saved one (ScheduleLR.resume or "
                "on_resume='adopt') and call extend."
            )
            need = f"the state of this scheduler's schedule, {self.schedule!r}"
            _check.refuse("ScheduleLR", "state_dict", need, f"{saved!r}", remedy)
        return _require_steps_left("ScheduleLR", self.schedule, step) if self.on_resume == "extend" else saved

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
    *,
    lr: float,
    weight_decay: float,
    min_lr: float | None = None,
    beta: float = 2.0,
    microbatch: int | None = None,
    **options: Unpack[EstimateOptions],
) -> tuple[Eigencurve, SpectrumEstimate]:
    """Measure the spectrum of a PyTorch model and return its Eigencurve schedule.

    Args:
        model: Trained or nearly trained model; spectra change early in training.
        loss_fn: ``loss_fn(model(x), y)``, the mean loss of a batch.
        batches: Tensors (x, y), a list of such pairs, or a DataLoader. A few hundred examples are enough.
        total_steps: Number of optimizer steps T of the run that the schedule is for.
        lr: Initial learning rate of that run.
        weight_decay: Weight decay of its optimizer, positive.
        min_lr: Learning rate of the last step. By default, the curve is not rescaled.
        beta: Ratio of the groups' edges; see :func:`eigencurve.eigencurve`.
        microbatch: Maximum number of examples in memory at a time.
        **options: Options of :func:`eigencurve.hessian.estimate_spectrum`: ``num_steps``, ``num_probes``, ``seed``,
            ``settle``, ``memory_budget``, ``checkpoint`` and ``progress``.

    Returns:
        The schedule, ready for :class:`ScheduleLR`, and the estimate behind it.
    """
    total = whole_steps("torch_schedule", "total_steps", total_steps, minimum=1)
    settings = EstimateSettings(weight_decay=weight_decay, total_steps=total, **options)
    estimate = run_estimate(HessianOperator(model, loss_fn, batches, microbatch=microbatch), settings)
    return schedule_of(estimate, lr, min_lr, beta), estimate


def _require_steps_left(function: str, schedule: Schedule, step: int) -> Schedule:
    if schedule.total_steps <= step:
        _check.refuse(function, "schedule", f"longer than the {step} steps already taken", schedule.total_steps)
    return schedule


def _checked_state(state: Any) -> dict[str, Any]:
    names = ("version", "schedule", "last_epoch", "step_count", "ratios")
    if not isinstance(state, dict) or any(name not in state for name in names) or state["version"] != VERSION:
        _check.refuse("ScheduleLR", "state_dict", f"the state of a ScheduleLR, version {VERSION}", state)
    return state


def _ratios(optimizer: Optimizer) -> list[float]:
    rates = [float(group.get("initial_lr", group["lr"])) for group in optimizer.param_groups]
    if rates[0] <= 0:
        remedy = "The other groups keep their ratio to this rate."
        _check.refuse("ScheduleLR", "optimizer", "one whose first group has a rate > 0", rates[0], remedy)
    return [rate / rates[0] for rate in rates]
