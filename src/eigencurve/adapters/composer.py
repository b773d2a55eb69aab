"""A schedule in the form that MosaicML Composer takes. Composer itself is not needed, nor is it used in the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule, require_schedule


def composer_scheduler(schedule: Schedule, lr: float | None = None) -> Callable[..., float]:
    r"""A ``ComposerScheduler``: from the trainer's state to what the optimizer's own rate is multiplied by.

    .. math:: \text{multiplier} = \frac{1}{\eta}\, f\bigl(\lfloor t / r \rfloor\bigr)

    with t the batches so far (``state.timestamp.batch``, which are updates) and r Composer's scale schedule ratio.
    Composer multiplies the initial rate of every group, so groups keep their ratios.

    Args:
        schedule: its steps are batches.
        lr: η, the rate that the optimizer was given; by default the schedule's own (after a warmup: its peak).

    >>> from types import SimpleNamespace as Namespace
    >>> import eigencurve as ec
    >>> state = Namespace(timestamp=Namespace(batch=Namespace(value=25)))
    >>> composer_scheduler(ec.linear(total_steps=100, lr=0.5))(state)
    0.75
    """
    require_schedule("composer_scheduler", schedule)
    rate = _check.positive("composer_scheduler", "lr", schedule.lr if lr is None else lr)

    def multiplier(state: Any, ssr: float = 1.0) -> float:
        return schedule(int(state.timestamp.batch.value / ssr)) / rate

    return multiplier
