"""A schedule behind the calls of timm's training script. timm itself is not needed, nor is it used in the tests."""

from __future__ import annotations

from typing import Any

from eigencurve.adapters.torch import ScheduleLR
from eigencurve.schedules.base import Schedule


class TimmSchedule:
    r"""What timm's script calls its ``lr_scheduler``: ``step_update(num_updates)`` after every update.

    .. math:: \eta_{t,g} = f(t)\, \frac{\eta_{0,g}}{\eta_{0,0}}\, s_g

    with :math:`s_g` the group's ``lr_scale``, which timm's layer decay sets; 1 where there is none.

    Args:
        optimizer: any; the groups keep the ratios of their rates.
        schedule: its steps are updates.
        on_resume: as in :class:`ScheduleLR`.

    >>> import eigencurve as ec, torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    >>> lr_scheduler = TimmSchedule(optimizer, ec.linear(total_steps=4, lr=0.1))
    >>> lr_scheduler.step_update(num_updates=1)
    >>> round(optimizer.param_groups[0]["lr"], 6)
    0.075
    """

    def __init__(self, optimizer: Any, schedule: Schedule, on_resume: str = "refuse") -> None:
        self.scheduler = ScheduleLR(optimizer, schedule, on_resume=on_resume)
        scales = [float(group.get("lr_scale", 1.0)) for group in optimizer.param_groups]
        self.scheduler.ratios = [ratio * scale for ratio, scale in zip(self.scheduler.ratios, scales, strict=True)]
        self.scheduler.step(0)

    def step_update(self, num_updates: int, metric: float | None = None) -> None:  # noqa: ARG002 -- timm's name
        """Set the rates of the update after ``num_updates`` of them."""
        self.scheduler.step(num_updates)

    def step(self, epoch: int, metric: float | None = None) -> None:
        """Nothing: timm's script calls it after every epoch, and the rates follow the updates."""

    def state_dict(self) -> dict[str, Any]:
        """That of :class:`ScheduleLR`."""
        return self.scheduler.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where ``state_dict`` was taken."""
        self.scheduler.load_state_dict(state_dict)
