"""WallClockLR: a schedule over a budget of time, for runs that end after hours instead of steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from eigencurve import _check
from eigencurve.adapters.groups import Schedules, distinct
from eigencurve.adapters.scheduler_state import REMEDY

try:
    import torch.distributed as dist
    from torch.optim import Optimizer
except ImportError as error:
    raise ImportError("eigencurve.adapters.wall_clock needs PyTorch: pip install eigencurve[torch]") from error

from eigencurve.adapters.torch import ScheduleLR


class WallClockLR(ScheduleLR):
    r"""PyTorch scheduler whose progress is the share of a time budget that has been used.

    .. math:: \eta = f\bigl(\lfloor T\, s / S \rfloor\bigr)

    Here s is the training time so far and S the budget, both in seconds. The T steps of the schedule are equal parts of
    the budget, so ``ec.cosine(10_000, lr=0.1)`` changes the rate every ten-thousandth of it. Call :meth:`step` after
    every optimizer step, and train while ``not scheduler.finished``.

    Saved states contain the time used, so a resumed run continues with the rest of the budget; the time in between does
    not count. With several processes, all use the time of the first, because weights diverge if rates differ.

    Args:
        optimizer: Any PyTorch optimizer.
        schedule: Schedule, or one per parameter group, all with the same T; see :class:`ScheduleLR`.
        seconds: Budget S.
        on_resume: What to do with the saved state of a different schedule; see :class:`ScheduleLR`.
        scale_weight_decay: Whether the weight decay follows the rate; see :class:`ScheduleLR`.
        clock: Function that returns the time in seconds.

    >>> import eigencurve as ec, torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    >>> times = iter([0.0, 1800.0])
    >>> scheduler = WallClockLR(optimizer, ec.linear(10_000, lr=0.1), seconds=3600, clock=lambda: next(times))
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.05]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedule: Schedules,
        seconds: float,
        on_resume: str = "refuse",
        scale_weight_decay: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = _check.positive("WallClockLR", "seconds", seconds)
        self.clock = clock
        self.elapsed = 0.0
        self._last_time: float | None = None
        super().__init__(optimizer, schedule, on_resume=on_resume, scale_weight_decay=scale_weight_decay)
        lengths = {f.total_steps for f in distinct(self.schedules)}
        if len(lengths) > 1:
            remedy = "Each is divided into equal parts of the budget."
            _check.refuse("WallClockLR", "schedule", "of one length for all groups", sorted(lengths), remedy)

    @classmethod
    def resume(cls, optimizer: Optimizer, state: dict[str, Any]) -> WallClockLR:
        """Create a scheduler from a saved state alone, which contains the schedules and the budget."""
        plain = ScheduleLR.resume(optimizer, state)
        scaled = plain.weight_decays is not None
        scheduler = cls(
            optimizer, plain.schedule if plain.shared else plain.schedules, state["seconds"], scale_weight_decay=scaled
        )
        scheduler.load_state_dict(state)
        return scheduler

    @property
    def finished(self) -> bool:
        """Whether the budget is used up."""
        return self.elapsed >= self.seconds

    def state_dict(self) -> dict[str, Any]:
        """State as plain numbers, strings and lists, including the time used so far."""
        return {**super().state_dict(), "elapsed": self.elapsed, "seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the time used, the schedules and the rates of ``state_dict``.

        Raises:
            ValueError: If the state has another budget, or another schedule and ``on_resume`` is ``"refuse"``.
        """
        if not isinstance(state_dict, dict) or not {"elapsed", "seconds"} <= state_dict.keys():
            _check.refuse("WallClockLR", "state_dict", "the state of a WallClockLR", state_dict)
        if state_dict["seconds"] != self.seconds:
            need = f"one with this scheduler's budget of {self.seconds:g} seconds"
            remedy = "Another budget would make the rate jump."
            _check.refuse("WallClockLR", "state_dict", need, state_dict["seconds"], remedy)
        elapsed = _check.at_least("WallClockLR", "elapsed", state_dict["elapsed"], 0.0, REMEDY)
        super().load_state_dict(state_dict)
        self.elapsed, self._last_time = elapsed, self.clock()

    def _update_lr(self, epoch: int | None = None) -> None:
        now = self.clock()
        self.elapsed = _agreed(self.elapsed + (0.0 if self._last_time is None else now - self._last_time))
        self._last_time = now
        total = self.schedule.total_steps
        place = int(total * self.elapsed / self.seconds) if epoch is None else epoch
        super()._update_lr(min(place, total - 1))


def _agreed(elapsed: float) -> float:
    """The time of the first process, in all of them."""
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return elapsed
    times = [elapsed]
    dist.broadcast_object_list(times, src=0)
    return times[0]
