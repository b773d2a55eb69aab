"""Section about the schedule: its curve next to common schedules, its intervals, and code that uses it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eigencurve.figures.schedules import MOST_INTERVALS, rates_figure
from eigencurve.planning.doubts import length_doubt
from eigencurve.planning.labels import LABELS
from eigencurve.planning.limits import RateLimit
from eigencurve.planning.plan_view import rate_line
from eigencurve.planning.recipe import Recipe
from eigencurve.planning.snippets import snippet
from eigencurve.report.page import (
    Markup,
    Section,
    code_block,
    facts,
    figure,
    note,
    paragraph,
    side_by_side,
    table,
    with_commands,
)
from eigencurve.report.svg import inline_svg
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.schedules.sampling import first_step_below
from eigencurve.theory.candidates import usual_schedules

# Common schedules that are drawn for comparison.
RIVALS = ("cosine", "linear", "step decay", "elastic step")
INTERVALS = (
    "Each interval serves one group of eigenvalues, the flattest directions first. By default its length is"
    " proportional to the square root of the group's size. The learning rate is the peak rate divided by a denominator"
    " that starts at 1 and grows by the interval's slope at every step."
)
AXES = {"linear": "linear", "log": "logarithmic"}


def schedule_section(recipe: Recipe, limit: RateLimit | None = None) -> Section:
    """Build the section about the schedule.

    Args:
        recipe: The schedule.
        limit: Largest stable rate, if there is a spectrum.
    """
    schedule = recipe.schedule
    body = schedule.schedule if isinstance(schedule, Warmup) else schedule
    blocks = [
        paragraph(
            f"The learning rate over {schedule.total_steps:,} steps with a peak rate of {recipe.lr:.4g}, next to common"
            " schedules with the same peak rate."
        ),
        *([] if limit is None else [_rate(recipe.lr, limit)]),
        *(note(*with_commands(doubt)) for doubt in _doubts(recipe)),
        facts(_facts(schedule)),
        _figures(recipe, _ends(schedule, body)),
    ]
    if isinstance(body, Eigencurve) and len(body.times) - 1 <= MOST_INTERVALS:
        blocks += [paragraph(INTERVALS), _interval_table(body)]
    blocks += [paragraph("PyTorch code that trains with this schedule:"), code_block(snippet("torch", recipe))]
    return Section(f"The {LABELS.get(recipe.kind, recipe.kind)} schedule", blocks)


def _rate(lr: float, limit: RateLimit) -> Markup:
    """The peak rate and the limit of stability; a warning if the rate is above it."""
    return (paragraph if limit.allows(lr) else note)(rate_line(lr, limit))


def _doubts(recipe: Recipe) -> list[str]:
    """A sentence if an Eigencurve schedule without a final rate hardly decays."""
    if recipe.kind != "eigencurve" or recipe.subject is None or recipe.settings.get("min_lr") is not None:
        return []
    doubt = length_doubt(recipe.subject, recipe.total_steps - recipe.warmup_steps)
    return [doubt] if doubt else []


def _facts(schedule: Schedule) -> list[tuple[str, str]]:
    pairs = [("first rate", f"{schedule(0):.4g}"), ("last rate", f"{schedule(schedule.total_steps - 1):.4g}")]
    for divisor in (2, 10):
        step = first_step_below(schedule, schedule.lr / divisor)
        when = "never" if step is None else f"from step {step:,} ({step / schedule.total_steps:.0%})"
        pairs.append((f"below 1/{divisor} of the peak", when))
    return pairs


def _ends(schedule: Schedule, body: Schedule) -> list[float]:
    """Steps of ``schedule`` where the intervals of ``body`` meet; empty if there are too many to tell apart."""
    if not isinstance(body, Eigencurve) or len(body.times) - 1 > MOST_INTERVALS:
        return []
    return [schedule.total_steps - body.total_steps + time for time in body.times[1:-1].tolist()]


def _figures(recipe: Recipe, ends: Sequence[float]) -> Markup:
    shown: dict[str, Schedule] = {recipe.kind.replace("_", " "): recipe.schedule}
    if recipe.subject is not None:
        usual = usual_schedules(recipe.subject.spectrum, recipe.total_steps, recipe.lr)
        shown |= {name: usual[name] for name in RIVALS if name not in shown}
    marked = " Thin vertical lines separate the intervals." if ends else ""
    figures = []
    for scale, axis in AXES.items():
        text = f"Line chart of the learning rate over {recipe.total_steps:,} steps, {axis} axis: {', '.join(shown)}."
        picture = inline_svg(rates_figure(shown, scale, ends), f"rates-{scale}", text)
        figures.append(figure(picture, f"Learning rates on a {axis} axis, peak rate {recipe.lr:.4g}.{marked}"))
    return side_by_side(*figures)


def _interval_table(curve: Eigencurve) -> Markup:
    rows = []
    for i in range(len(curve.times) - 1):
        start, end = float(curve.times[i]), float(curve.times[i + 1])
        slope = float(curve.denominators[i + 1] - curve.denominators[i]) / (end - start)
        share = f"{(end - start) / curve.total_steps:.2%}"
        rate = f"{curve(math.ceil(start)):.4g}"
        rows.append([str(i), f"{start:,.1f}", f"{end - start:,.1f}", share, f"{slope:.3e}", rate])
    columns = ["interval", "from step", "steps", "share of the run", "slope", "rate at start"]
    return table("Intervals of the schedule", columns, rows)
