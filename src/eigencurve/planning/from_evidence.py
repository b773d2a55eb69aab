"""A plan from nothing but the number of steps and the optimizer: published evidence."""

from __future__ import annotations

from eigencurve.planning.answer import Plan, PlanInput, PlanRow, RateRange, tail_sentence, training_inputs
from eigencurve.planning.evidence import (
    HALF_RATE,
    RECOMMENDED,
    RELATIVE_LOSSES,
    SOURCE,
    evidence_schedules,
    usual_rate,
    usual_warmup,
)  # fmt: skip
from eigencurve.planning.limits import require_meant
from eigencurve.planning.training import Training
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import after_warmup

MEASURE_FIRST = (
    "Log two short runs that differ in their schedule, one of them with a decay, and pass the logs to plan: that "
    "replaces published evidence by your own run."
)


def plan_from_evidence(
    total_steps: int,
    training: Training,
    lr: float | None = None,
    warmup_steps: int | None = None,
    max_lr: float | None = None,
) -> Plan:
    """The schedule that published runs favour.

    Args:
        total_steps: Number of steps T, including the warmup.
        training: Optimizer of the run and its settings.
        lr: Peak rate. By default the usual one of the optimizer, at most ``max_lr``.
        warmup_steps: Length of the warmup. By default the usual one of the optimizer.
        max_lr: Highest rate allowed.
    """
    optimizer = training.optimizer or "sgd"
    require_meant("plan", optimizer, lr=lr, max_lr=max_lr)
    usual = usual_rate(optimizer, max_lr)
    peak = usual.best if lr is None else lr
    rise = usual_warmup(total_steps, optimizer) if warmup_steps is None else warmup_steps
    schedules = {name: after_warmup(f, rise) for name, f in evidence_schedules(total_steps - rise, peak).items()}
    chosen = schedules[RECOMMENDED]
    rates = RateRange(peak, usual.low, usual.high, "nothing is measured, so only a range test can tell")
    rows = tuple(sorted((_row(name, f) for name, f in schedules.items()), key=lambda row: row.behind))
    known = (
        PlanInput("steps", f"{total_steps:,}", "given"),
        *training_inputs(training),
        _rate_input(peak, lr is not None),
        *(() if max_lr is None else (PlanInput("highest rate", f"{max_lr:g}", "given"),)),
        PlanInput("warmup", f"{rise:,} steps", "assumed" if warmup_steps is None else "given"),
        PlanInput("losses", SOURCE, "assumed", "your model may rank close schedules differently"),
    )
    notes = () if optimizer != "sgd" else ("The evidence is from AdamW; for SGD measure the spectrum of your model.",)
    return Plan(
        _verdict(chosen, rates, lr is not None), RECOMMENDED, chosen, rates, rows, known, None,
        (*notes, MEASURE_FIRST), training,
    )  # fmt: skip


def _verdict(chosen: Schedule, rates: RateRange, given: bool) -> str:
    low, high = (100 * abs(loss) for loss in RELATIVE_LOSSES[RECOMMENDED])
    tried = f" (try {rates.low:g} to {rates.high:g})" if rates.low < rates.high else ""
    where = "Your peak rate" if given else f"A peak rate of {rates.best:g}{tried}"
    limit = " is unchecked: run a range test first, because nothing is measured yet."
    return (
        f"Decay to zero, late: {tail_sentence(chosen)}. In published runs this ended {low:.1f} to {high:.1f} % below a "
        f"cosine to zero, {_behind('cosine to 10 %')} below a cosine to 10 % and {_behind('constant')} below a "
        f"constant rate. {where}{limit}"
    )


def _behind(name: str) -> str:
    low, high = sorted(_ratios(name))
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def _ratios(name: str) -> tuple[float, float]:
    """Losses at both published peak rates, relative to the recommended schedule."""
    pairs = zip(RELATIVE_LOSSES[name], RELATIVE_LOSSES[RECOMMENDED], strict=True)
    one, other = ((1 + loss) / (1 + best) - 1 for loss, best in pairs)
    return one, other


def _row(name: str, schedule: Schedule) -> PlanRow:
    low, high = sorted(_ratios(name))
    return PlanRow(name, schedule, None, None, None, (low + high) / 2, low, high)


def _rate_input(peak: float, given: bool) -> PlanInput:
    if given:
        return PlanInput("peak rate", f"{peak:g}", "given")
    low, high = (f"{100 * rise:.1f}" for rise in HALF_RATE)
    effect = f"halving it changed the final losses above by {low} to {high} %; too high a rate diverges"
    return PlanInput("peak rate", f"{peak:g}", "assumed", effect)
