"""TimmSchedule: a schedule for timm's training script. timm itself is not imported, and not used in the tests."""

from __future__ import annotations

from typing import Any

from eigencurve.adapters.groups import Schedules
from eigencurve.adapters.torch import ScheduleLR


class TimmSchedule:
    r"""Scheduler with the interface that timm's training script expects of its ``lr_scheduler``.

    .. math:: \eta_{t,g} = f(t)\, \frac{\eta_{0,g}}{\eta_{0,0}}\, s_g

    :math:`s_g` is the group's ``lr_scale``, which timm's layer decay sets, and 1 by default. The script calls
    ``step_update(num_updates)`` after every update.

    Args:
        optimizer: Any PyTorch optimizer. The groups keep the ratios of their rates.
        schedule: Schedule whose steps are updates, or one per parameter group; see :class:`ScheduleLR`.
        on_resume: What to do with the saved state of a different schedule; see :class:`ScheduleLR`.
        scale_weight_decay: Whether the weight decay follows the rate; see :class:`ScheduleLR`.

    >>> import eigencurve as ec, torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    >>> lr_scheduler = TimmSchedule(optimizer, ec.linear(total_steps=4, lr=0.1))
    >>> lr_scheduler.step_update(num_updates=1)
    >>> round(optimizer.param_groups[0]["lr"], 6)
    0.075
    """

    def __init__(
        self, optimizer: Any, schedule: Schedules, on_resume: str = "refuse", scale_weight_decay: bool = False
    ) -> None:
        self.scheduler = ScheduleLR(optimizer, schedule, on_resume=on_resume, scale_weight_decay=scale_weight_decay)
        self._num_scaled = 0
        self._scale_new_groups()
        self.scheduler.step(0)

    def step_update(self, num_updates: int, metric: float | None = None) -> None:  # noqa: ARG002 -- timm's name
        """Set the rates of the next update, after ``num_updates`` updates."""
        if len(self.scheduler.optimizer.param_groups) > self._num_scaled:
            self.scheduler.join_new_groups()
            self._scale_new_groups()
        self.scheduler.step(num_updates)

    def step(self, epoch: int, metric: float | None = None) -> None:
        """Do nothing: timm's script calls this after every epoch, but the rates follow the updates."""

    def _scale_new_groups(self) -> None:
        """Multiply the ratio of every group that has joined by its ``lr_scale``, once."""
        for index in range(self._num_scaled, len(self.scheduler.ratios)):
            self.scheduler.ratios[index] *= float(self.scheduler.optimizer.param_groups[index].get("lr_scale", 1.0))
        self._num_scaled = len(self.scheduler.ratios)

    def cooldown(self, from_step: int | None = None, **settings: Any) -> None:
        """Let the rate decay from ``from_step`` on; see :meth:`ScheduleLR.cooldown`."""
        self.scheduler.cooldown(from_step, **settings)

    def state_dict(self) -> dict[str, Any]:
        """State of the :class:`ScheduleLR`."""
        return self.scheduler.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of ``state_dict``."""
        self.scheduler.load_state_dict(state_dict)
