"""ScheduleLR, a schedule as a PyTorch learning-rate scheduler, and torch_schedule, from a model to its schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

from eigencurve import _check
from eigencurve._moved import renamed
from eigencurve.adapters.groups import (
    CooldownOptions,
    RateReader,
    Schedules,
    distinct,
    joined_ratio,
    ratios_of,
    schedules_of,
)
from eigencurve.adapters.scheduler_state import checked_state, saved_schedules
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.cooldown import cooldown, spliced
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.schedules.units import Steps, whole_steps

try:
    import torch
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler
except ImportError as error:
    raise ImportError("eigencurve.adapters.torch needs PyTorch: pip install eigencurve[torch]") from error

from eigencurve.hessian.estimate import SpectrumEstimate, run_estimate, schedule_of, warn_if_unsettled
from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.settings import EstimateSettings

ON_RESUME = ("refuse", "extend", "adopt")


class ScheduleLR(LRScheduler):
    r"""PyTorch scheduler that sets the learning rate of every parameter group to a schedule.

    .. math:: \eta_{t,g} = f(t)\, \frac{\eta_{0,g}}{\eta_{0,0}}

    With one schedule, the first group gets f(t), and every other group keeps its ratio to the first. Only the ratios of
    the optimizer's own rates matter. With one schedule per group, each group gets exactly its own rate. The rate is
    f(0) before the first call of :meth:`step` and f(k) after k calls; beyond the last step it stays at f(T - 1).

    Call :meth:`step` once after every optimizer step, as for OneCycleLR. With gradient accumulation, call it once per
    update, not per microbatch; T counts updates. If mixed precision skips an optimizer step, call it nevertheless: the
    step counts, and there is no warning. With several processes, each one steps its own scheduler.

    Groups that ``optimizer.add_param_group`` adds during the run join at the next :meth:`step`, or at once if you call
    :meth:`join_new_groups`. With one schedule, a group that is added with a rate of its own starts with that rate and
    keeps its ratio to the current rate of the first group. A group that is added with the optimizer's default rate gets
    the ratio that it would have had from the beginning. With one schedule per group, an added group keeps its rate;
    :meth:`extend` gives it a schedule.

    Args:
        optimizer: Any PyTorch optimizer. With one schedule, the rate of its first group must be positive.
        schedule: Any schedule of this package for all groups; or a list with one schedule per group; or a mapping from
            the groups' names (``group["name"]``) to schedules. A group with None in place of a schedule keeps its
            initial rate. Groups with the same name keep their ratio to the first of them.
        last_epoch: Number of the last step that was taken, as in PyTorch; -1 starts a new run.
        on_resume: What to do with the saved state of a different schedule (of another length, for example).
            ``"refuse"`` raises an error, ``"extend"`` continues from the saved step with the schedule of this
            scheduler, and ``"adopt"`` continues with the saved schedule.
        scale_weight_decay: Whether to multiply the ``weight_decay`` of every group by f(t) / peak as well, as in AdamC
            (Defazio, 2025, arXiv:2506.02285). AdamW subtracts rate × weight decay × weight, so its decay then falls
            with the square of the rate. Meant for decoupled weight decay.

    Attributes:
        schedules: Schedule of each group, or None.

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
        self,
        optimizer: Optimizer,
        schedule: Schedules,
        last_epoch: int = -1,
        on_resume: str = "refuse",
        scale_weight_decay: bool = False,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            _check.wrong_type("ScheduleLR", "optimizer", "a torch.optim.Optimizer", optimizer)
        self.schedules = schedules_of("ScheduleLR", schedule, optimizer.param_groups)
        self.shared = isinstance(schedule, Schedule)
        self.on_resume = _check.choice("ScheduleLR", "on_resume", on_resume, ON_RESUME)
        self.ratios = ratios_of("ScheduleLR", schedule, optimizer.param_groups)
        self.weight_decays = _weight_decays(optimizer) if scale_weight_decay else None
        self._readers = [RateReader() for _ in self.schedules]
        super().__init__(optimizer, last_epoch)

    @classmethod
    def resume(cls, optimizer: Optimizer, state: dict[str, Any]) -> ScheduleLR:
        """Create a scheduler from a saved state alone, which contains the schedules."""
        saved = saved_schedules(checked_state("ScheduleLR", state))
        scaled = state.get("weight_decays") is not None
        scheduler = cls(optimizer, saved[0] if len(saved) == 1 else saved, scale_weight_decay=scaled)  # type: ignore[arg-type]
        scheduler.load_state_dict(state)
        return scheduler

    def __repr__(self) -> str:
        return f"ScheduleLR({self.schedule!r}, step {self.last_epoch}, {len(self.schedules)} groups)"

    @property
    def schedule(self) -> Schedule:
        """Schedule of all groups; if each has its own, that of the first group that has one."""
        return distinct(self.schedules)[0]

    def get_lr(self) -> list[float | torch.Tensor]:
        """Learning rate of every group at the current step."""
        step = max(self.last_epoch, 0)
        if self.shared:
            rate = self._readers[0](self.schedule, step)
            return [rate * ratio for ratio in self.ratios]
        groups = zip(self.base_lrs, self.schedules, self.ratios, self._readers, strict=True)
        return [float(kept) if f is None else read(f, step) * ratio for kept, f, ratio, read in groups]

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next step, or to step ``epoch``."""
        self._step_count += 1
        self._update_lr(epoch)

    def join_new_groups(self) -> None:
        """Let the groups that were added to the optimizer follow the schedule now, before the next :meth:`step`.

        Raises:
            ValueError: If a group has a rate of its own and the current rate of the schedule is zero.
        """
        self._join_new_groups()
        self._set_rates()

    def extend(self, schedule: Schedules, rewarm: int | None = None) -> None:
        """Continue from the current step with another schedule, such as a longer one.

        Args:
            schedule: One schedule if the scheduler has one; a list or a mapping if each group has its own.
            rewarm: Number of steps in which the rate goes linearly from its current value to that of the new schedule.
                None changes it at once, with a warning if the rate jumps up after a decay.

        Raises:
            ValueError: If the schedule ends before the current step.
        """
        if isinstance(schedule, Schedule) != self.shared:
            need = "one Schedule, as before" if self.shared else "a list or a mapping, as before"
            _check.refuse("ScheduleLR.extend", "schedule", need, schedule)
        self._join_new_groups()
        later = schedules_of("ScheduleLR.extend", schedule, self.optimizer.param_groups)
        extended: dict[tuple[int, int], Schedule] = {}  # groups that shared a schedule share the new one too
        for i, (old, new) in enumerate(zip(self.schedules, later, strict=True)):
            if old is None or new is None:
                self.schedules[i] = new
                continue
            key = (id(old), id(new))
            if key not in extended:
                extended[key] = spliced("ScheduleLR.extend", old, new, self.last_epoch, rewarm)
            self.schedules[i] = extended[key]
        self._set_rates()

    def cooldown(self, from_step: int | None = None, *, num_steps: Steps, **options: Unpack[CooldownOptions]) -> None:
        """Let the rate decay from ``from_step`` on, over ``num_steps`` steps.

        Every group that has a schedule decays in its own proportion.

        Args:
            from_step: First step of the decay; by default the next one.
            num_steps: Number of steps of the decay.
            **options: ``shape``, ``min_lr`` (the last rate of the first group) and ``spectrum``; see
                :func:`eigencurve.cooldown`.

        Raises:
            ValueError: If ``from_step`` is a step that was already taken.
        """
        self._join_new_groups()
        start = self.last_epoch if from_step is None else _check.whole("ScheduleLR.cooldown", "from_step", from_step, 0)
        if start < self.last_epoch:
            remedy = "Resume a checkpoint from before that step to decay from there."
            _check.refuse("ScheduleLR.cooldown", "from_step", f">= {self.last_epoch}, the next step", start, remedy)
        first = self.schedule(start)
        min_lr = options.get("min_lr")
        cooled: dict[int, Schedule] = {}
        for f in distinct(self.schedules):
            last = None if min_lr is None else min_lr / first * f(start)
            own: CooldownOptions = {**options, "min_lr": last}
            cooled[id(f)] = cooldown(f, start, num_steps, **own)
        self.schedules = [None if f is None else cooled[id(f)] for f in self.schedules]
        self._set_rates()

    def state_dict(self) -> dict[str, Any]:
        """State as plain numbers, strings and lists, including the schedules; it loads with ``weights_only=True``."""
        self._join_new_groups()
        common = {"last_epoch": self.last_epoch, "step_count": self._step_count, "ratios": list(self.ratios)}
        if self.shared and self.weight_decays is None:
            return {"version": 1, "schedule": self.schedule.to_dict(), **common}
        own = self.schedules[:1] if self.shared else self.schedules
        plain = [None if f is None else f.to_dict() for f in own]
        return {"version": 2, "schedules": plain, "weight_decays": self.weight_decays, **common}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the step and the schedules of ``state_dict``, and set the optimizer's rates.

        Raises:
            TypeError: If the state has a number of another type, such as a fractional step.
            ValueError: If the state is that of a different schedule and ``on_resume`` is ``"refuse"``: a length that
                changes on resume would silently change the curve. Or if it is damaged. The scheduler is not changed.
        """
        state = checked_state("ScheduleLR", state_dict)
        self._join_new_groups()
        count = len(self.optimizer.param_groups)
        if len(state["ratios"]) != count:
            remedy = "Give the optimizer the groups that it had when the state was saved."
            _check.refuse("ScheduleLR", "state_dict", f"of {count} parameter groups", len(state["ratios"]), remedy)
        saved = saved_schedules(state)
        schedules = self._resumed_schedules(saved, state["last_epoch"])
        shared = self.shared if self.on_resume == "extend" else len(saved) == 1
        self.shared, self.schedules = shared, schedules * count if shared else schedules
        self.ratios, self.weight_decays = state["ratios"], state.get("weight_decays", self.weight_decays)
        self.last_epoch, self._step_count = state["last_epoch"], state["step_count"]
        self._set_rates()

    def _resumed_schedules(self, saved: list[Schedule | None], step: int) -> list[Schedule | None]:
        """Schedules to continue with, after a state of ``saved`` at ``step``; one if all groups share it."""
        own = self.schedules[:1] if self.shared else self.schedules
        if saved != own and self.on_resume == "refuse":
            remedy = (
                "To change the schedule, pass on_resume='extend', or resume with the saved one (ScheduleLR.resume or "
                "on_resume='adopt') and call extend."
            )
            mine, theirs = (repr(f[0]) if len(f) == 1 else repr(f) for f in (own, saved))
            _check.refuse("ScheduleLR", "state_dict", f"the state of this scheduler's schedule, {mine}", theirs, remedy)
        if self.on_resume != "extend":
            return saved
        old = saved if len(saved) == len(own) else [None] * len(own)
        return [_continued(before, after, step) for before, after in zip(old, own, strict=True)]

    def _join_new_groups(self) -> None:
        """Let the groups that were added to the optimizer follow the schedule."""
        groups = self.optimizer.param_groups
        for group in groups[len(self.schedules) :]:
            rate, ratio = float(group["lr"]), 1.0
            if self.shared:
                current = self.schedule(max(self.last_epoch, 0))
                default = float(self.optimizer.defaults.get("lr", math.nan))
                ratio = joined_ratio("ScheduleLR", rate, default, float(groups[0]["initial_lr"]), current)
                rate = float(groups[0]["initial_lr"]) * ratio
            group["initial_lr"] = rate  # a scheduler that is made from the optimizer later finds the same ratio
            self.schedules.append(self.schedule if self.shared else None)
            self.ratios.append(ratio)
            self.base_lrs.append(rate)
            self._readers.append(RateReader())
            if self.weight_decays is not None:
                self.weight_decays.append(_initial_decay(group))

    def _update_lr(self, epoch: int | None = None) -> None:
        self._join_new_groups()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set_rates()

    def _set_rates(self) -> None:
        count = len(self.optimizer.param_groups)
        if count != len(self.schedules):
            remedy = "Groups were removed: make a new scheduler."
            _check.refuse("ScheduleLR", "optimizer", f"of {len(self.schedules)} parameter groups", count, remedy)
        self._last_lr = self.get_lr()
        seen: set[int] = set()
        for group, rate in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            if isinstance(group["lr"], torch.Tensor):
                if id(group["lr"]) in seen:  # PyTorch gives all groups the same tensor
                    group["lr"] = group["lr"].clone()
                seen.add(id(group["lr"]))
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        if self.weight_decays is not None:
            self._set_weight_decays(self.weight_decays)

    def _set_weight_decays(self, initial: list[float]) -> None:
        step = max(self.last_epoch, 0)
        for group, f, decay in zip(self.optimizer.param_groups, self.schedules, initial, strict=True):
            if f is not None:
                group["weight_decay"] = decay * (f(step) / f.lr)


@renamed(num_steps="num_products")
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
    **options: Any,
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
        **options: Options of :func:`eigencurve.hessian.estimate_spectrum`: ``num_products``, ``num_probes``, ``seed``,
            ``settle``, ``memory_budget``, ``checkpoint`` and ``progress``.

    Returns:
        The schedule, ready for :class:`ScheduleLR`, and the estimate behind it.

    Warns:
        UserWarning: The estimate has not settled, or the run is too short for the curve to decay.
    """
    total = whole_steps("torch_schedule", "total_steps", total_steps, minimum=1)
    settings = EstimateSettings(weight_decay=weight_decay, total_steps=total, **options)
    estimate = run_estimate(HessianOperator(model, loss_fn, batches, microbatch=microbatch), settings)
    warn_if_unsettled("torch_schedule", estimate)
    return schedule_of(estimate, lr, min_lr, beta), estimate


def _continued(old: Schedule | None, new: Schedule | None, step: int) -> Schedule | None:
    """``new``, with a warning if the rate jumps from the decayed one of ``old``."""
    return new if new is None else spliced("ScheduleLR", new if old is None else old, new, step, None)


def _weight_decays(optimizer: Optimizer) -> list[float]:
    if any("weight_decay" not in group for group in optimizer.param_groups):
        need = "left out for an optimizer without weight decay"
        _check.refuse("ScheduleLR", "scale_weight_decay", need, True)
    # As PyTorch does with "initial_lr": a resumed optimizer has the scaled value in "weight_decay".
    return [_initial_decay(group) for group in optimizer.param_groups]


def _initial_decay(group: dict[str, Any]) -> float:
    return float(group.setdefault("initial_weight_decay", group["weight_decay"]))
