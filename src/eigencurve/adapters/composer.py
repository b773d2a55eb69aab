"""composer_scheduler: a schedule for MosaicML Composer. Composer itself is not imported, and not used in the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule, require_schedule


def composer_scheduler(schedule: Schedule, lr: float | None = None) -> Callable[..., float]:
    r"""Convert a schedule to a ``ComposerScheduler``, a function from the trainer's state to a multiplier of the rate.

    .. math:: \text{multiplier} = \frac{1}{\eta}\, f\bigl(\lfloor t / r \rfloor\bigr)

    Here t is the number of batches so far (``state.timestamp.batch``; each is an update), and r is Composer's scale
    schedule ratio. Composer multiplies the initial rate of every group, so groups keep their ratios.

    Args:
        schedule: Schedule whose steps are batches.
        lr: Learning rate η that the optimizer was created with; by default ``schedule.lr``, the peak after a warmup.

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
