"""The usual schedules: the only list of their identifiers, labels and shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eigencurve.schedules.base import Schedule
from eigencurve.schedules.comparison import ComparisonTable
from eigencurve.schedules.compose import after_warmup
from eigencurve.schedules.decays import constant, cosine, exponential, inverse_time, linear
from eigencurve.schedules.staircases import elastic_step, step_decay
from eigencurve.schedules.wsd import wsd

if TYPE_CHECKING:
    from eigencurve.spectrum.power_law import PowerLaw
    from eigencurve.spectrum.spectrum import Spectrum


@dataclass(frozen=True)
class Baseline:
    """A usual schedule.

    Attributes:
        name: Stable identifier, in JSON and in tables.
        label: Name for people.
        make: Makes the schedule from its length, its peak rate, and the length of the whole run or None.
    """

    name: str
    label: str
    make: Callable[[int, float, int | None], Schedule]


def _wsd(percent: int) -> Baseline:
    def make(steps: int, lr: float, run_steps: int | None) -> Schedule:
        tail = steps * percent // 100 if run_steps is None else round(run_steps * percent / 100)
        return wsd(steps, lr, min(max(tail, 1), steps))

    return Baseline(f"wsd_{percent}", f"WSD, last {percent} %", make)


BASELINES = {
    baseline.name: baseline
    for baseline in (
        Baseline("constant", "constant", lambda steps, lr, _: constant(steps, lr)),
        Baseline("cosine_0", "cosine to 0", lambda steps, lr, _: cosine(steps, lr)),
        Baseline("cosine_10", "cosine to 10 %", lambda steps, lr, _: cosine(steps, lr, 0.1 * lr)),
        Baseline("linear_0", "linear to 0", lambda steps, lr, _: linear(steps, lr)),
        *map(_wsd, (10, 20, 40, 60, 80, 90)),
        Baseline("elastic_step", "elastic step", lambda steps, lr, _: elastic_step(steps, lr)),
        Baseline("step_decay", "step decay", lambda steps, lr, _: step_decay(steps, lr)),
        Baseline("exponential", "exponential", lambda steps, lr, _: exponential(steps, lr, lr / 1000)),
        Baseline("inverse_time", "inverse time", lambda steps, lr, _: inverse_time(steps, lr, lr / 100)),
    )
}
# Schedules that need a spectrum or a search.
EIGENCURVE, EIGENCURVE_OPTIMAL, OPTIMUM = "eigencurve", "eigencurve_optimal", "optimum"
LABELS = {name: baseline.label for name, baseline in BASELINES.items()} | {
    EIGENCURVE: "Eigencurve",
    EIGENCURVE_OPTIMAL: "Eigencurve, optimal lengths",
    OPTIMUM: "numerical optimum",
}


def usual_schedules(
    names: Iterable[str],
    total_steps: int,
    lr: float,
    warmup_steps: int = 0,
    run_steps: int | None = None,
    spectrum: Spectrum | PowerLaw | None = None,
) -> dict[str, Schedule]:
    """The schedules called ``names``, all with the same length, peak rate and warmup.

    Args:
        names: Identifiers. Eigencurve is left out if there is no spectrum, or if all its eigenvalues are equal.
        total_steps: Number of steps T, including the warmup.
        lr: Peak rate.
        warmup_steps: Number of steps of linear warmup.
        run_steps: Number of steps of which the tail of WSD is a share. By default T without the warmup.
        spectrum: Prepared spectrum, for Eigencurve.

    >>> list(usual_schedules(["cosine_0", "wsd_20"], 100, lr=1e-3, warmup_steps=10))
    ['cosine_0', 'wsd_20']
    """
    steps = total_steps - warmup_steps
    shapes: dict[str, Schedule] = {}
    for name in names:
        if name in BASELINES:
            shapes[name] = BASELINES[name].make(steps, lr, run_steps)
        elif spectrum is not None and spectrum.kappa > 1:
            from eigencurve.schedules.eigencurve import curve_of

            shapes[name] = curve_of(spectrum, steps, lr, allocation="sqrt" if name == EIGENCURVE else "optimal")
    return {name: after_warmup(shape, warmup_steps) for name, shape in shapes.items()}


def shape_in_words(schedule: Schedule) -> str:
    """How long a schedule holds its rate and how it ends, as a clause.

    >>> shape_in_words(wsd(1000, 0.1, 200))
    'hold the rate for 80 % of the run and decay over the last 20 %'
    """
    rates = schedule.values()
    held = int((rates >= 0.99 * rates.max()).nonzero()[0][-1]) + 1
    share = 1 - held / len(rates)
    if share < 0.005:
        return "hold the rate to the end"
    last = rates[-1] / rates.max()
    end = "" if last < 0.05 else f" to {100 * last:.0f} % of the peak"
    if share > 0.9:
        return f"decay from the beginning{end}"
    return f"hold the rate for {100 - 100 * share:.0f} % of the run and decay over the last {100 * share:.0f} %{end}"


def labelled(table: ComparisonTable, optimum: str = LABELS[OPTIMUM]) -> ComparisonTable:
    """``table`` with the labels of the usual schedules; ``optimum`` is that of the best schedule of a search."""
    labels = {**LABELS, OPTIMUM: optimum}
    return replace(table, rows=tuple(replace(row, label=labels.get(row.name, row.label)) for row in table.rows))
