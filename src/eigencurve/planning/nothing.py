"""default_plan: a plan from nothing but the number of steps and the optimizer, by published runs."""

from __future__ import annotations

from eigencurve import _check
from eigencurve.planning.baselines import LABELS, shape_in_words, usual_schedules
from eigencurve.planning.result import OPTIMIZERS, Evidence, Plan, PlanInput, Source, training_of
from eigencurve.planning.warnings import checked_run, require_plausible
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.comparison import ComparisonRow, ComparisonTable, ranked
from eigencurve.schedules.units import Steps

PUBLISHED = "a 124M Llama under AdamW, 50,000 steps, peak rates 0.0005 and 0.001 (arXiv:2501.18965)"
# Final losses of these runs relative to a cosine to zero, minus 1: at the peak rate 0.001 and at 0.0005.
RELATIVE_LOSSES = {
    "wsd_40": (-0.0028, -0.0056),
    "wsd_60": (-0.0036, -0.0053),
    "wsd_90": (-0.0016, -0.0019),
    "wsd_20": (0.0011, -0.0031),
    "cosine_0": (0.0, 0.0),
    "cosine_10": (0.0066, 0.0022),
    "constant": (0.0602, 0.0431),
}
# The rule: the schedule that wins at the common peak rate, and loses at most 0.1 % at the other.
RECOMMENDED = "wsd_40"
# Halving the peak rate raised the final loss of these runs by this fraction.
HALF_RATE = (0.001, 0.007)
# A common peak rate of each optimizer, and the lowest and highest that people use.
USUAL_RATES = {"adam": (5e-4, 1e-4, 2e-3), "adamw": (5e-4, 1e-4, 2e-3), "sgd": (0.1, 0.01, 0.5)}
ABOUT_ADAMW = "The evidence is from AdamW; for SGD measure the spectrum of your model."
MEASURE_FIRST = (
    "Log two short runs that differ in their schedule, one of them with a decay, and pass the logs to plan: that "
    "replaces published evidence by your own run."
)


def default_plan(
    total_steps: Steps,
    *,
    optimizer: str | None = None,
    lr: float | None = None,
    max_lr: float | None = None,
    warmup_steps: int | None = None,
    momentum: float | None = None,
    nesterov: bool = False,
    weight_decay: float | None = None,
    batch_size: int | None = None,
) -> Plan:
    """The schedule that published runs favour.

    Args:
        total_steps: Number of steps T, including the warmup.
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``; by default SGD.
        lr: Peak rate. By default the usual one of the optimizer, at most ``max_lr``.
        max_lr: Highest rate allowed.
        warmup_steps: Length of the warmup. By default 2 % of the run, at most 2,000 steps, for Adam; none for SGD.
        momentum: Momentum of SGD, or β₁ of Adam; by default 0 for SGD and 0.9 for Adam.
        nesterov: Whether it is Nesterov momentum.
        weight_decay: Weight decay, for the generated code.
        batch_size: Batch size, for the generated code.

    >>> default_plan(50_000, optimizer="adamw").label
    'WSD, last 40 %'
    """
    steps, lr, max_lr, rise = checked_run(total_steps, lr, max_lr, warmup_steps)
    if optimizer is not None:
        _check.choice("plan", "optimizer", optimizer, OPTIMIZERS)
    sources: dict[str, Source] = {"optimizer": "assumed"} if optimizer is None else {}
    training = training_of(optimizer or "sgd", momentum, nesterov, weight_decay, batch_size, sources)
    name = str(training.optimizer)
    require_plausible("plan", name, lr=lr, max_lr=max_lr)
    usual, low, high = (rate if max_lr is None else min(rate, max_lr) for rate in USUAL_RATES[name])
    peak = usual if lr is None else lr
    warmup = usual_warmup(steps, name) if rise is None else rise
    schedules = usual_schedules(RELATIVE_LOSSES, steps, peak, warmup)
    inputs = (
        PlanInput("steps", f"{steps:,}", "given"),
        *training.inputs(),
        _rate_input(peak, lr is not None),
        *(() if max_lr is None else (PlanInput("highest rate", f"{max_lr:g}", "given"),)),
        PlanInput("warmup", f"{warmup:,} steps", "assumed" if rise is None else "given"),
        PlanInput("losses", PUBLISHED, "assumed", "your model may rank close schedules differently"),
    )
    return Plan(
        verdict=_verdict(schedules[RECOMMENDED], peak, (low, high), lr is not None),
        name=RECOMMENDED,
        label=LABELS[RECOMMENDED],
        schedule=schedules[RECOMMENDED],
        lr=peak,
        lr_range=(low, high),
        lr_limit="nothing is measured, so only a range test can tell",
        table=ComparisonTable(ranked([_row(name, schedule) for name, schedule in schedules.items()]), RECOMMENDED),
        inputs=inputs,
        evidence=Evidence("published runs", f"Final losses of {PUBLISHED}."),
        gap=None,
        warnings=(*((ABOUT_ADAMW,) if name == "sgd" else ()), MEASURE_FIRST),
        training=training,
    )


def usual_warmup(total_steps: int, optimizer: str) -> int:
    """A warmup of 2 % of the run, at most 2,000 steps, for Adam; none for SGD."""
    return min(total_steps // 50, 2000) if optimizer != "sgd" else 0


def _excess(name: str) -> tuple[float, float]:
    """Lowest and highest published loss relative to the recommended schedule, minus 1."""
    pairs = zip(RELATIVE_LOSSES[name], RELATIVE_LOSSES[RECOMMENDED], strict=True)
    low, high = sorted((1 + loss) / (1 + other) - 1 for loss, other in pairs)
    return low, high


def _row(name: str, schedule: Schedule) -> ComparisonRow:
    low, high = _excess(name)
    return ComparisonRow(name, schedule, excess=(low + high) / 2, excess_low=low, excess_high=high, label=LABELS[name])


def _verdict(schedule: Schedule, peak: float, usual: tuple[float, float], given: bool) -> str:
    low, high = (100 * abs(loss) for loss in RELATIVE_LOSSES[RECOMMENDED])
    to_ten, constant = (
        f"{100 * below:.1f} to {100 * above:.1f} %" for below, above in (_excess("cosine_10"), _excess("constant"))
    )
    tried = f" (try {usual[0]:g} to {usual[1]:g})" if usual[0] < usual[1] else ""
    rate = "Your peak rate" if given else f"A peak rate of {peak:g}{tried}"
    return (
        f"Decay to zero, late: {shape_in_words(schedule)}. In published runs this ended {low:.1f} to {high:.1f} % below"
        f" a cosine to zero, {to_ten} below a cosine to 10 % and {constant} below a constant rate. {rate} is unchecked:"
        " run a range test first, because nothing is measured yet."
    )


def _rate_input(peak: float, given: bool) -> PlanInput:
    if given:
        return PlanInput("peak rate", f"{peak:g}", "given")
    low, high = (f"{100 * rise:.1f}" for rise in HALF_RATE)
    effect = f"halving it changed the final losses above by {low} to {high} %; too high a rate diverges"
    return PlanInput("peak rate", f"{peak:g}", "assumed", effect)
