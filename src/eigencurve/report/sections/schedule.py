"""The part about the schedule: curves beside those in common use, intervals, code."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eigencurve.figures.rates import MOST_INTERVALS, rates_figure
from eigencurve.planning.recipe import Recipe
from eigencurve.planning.snippets import snippet
from eigencurve.report.page import Markup, Section, code_block, facts, figure, paragraph, side_by_side, table
from eigencurve.report.svg import inline_svg
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.schedules.preview import first_step_below
from eigencurve.theory.candidates import usual_schedules

# Shown beside the schedule: those that people use today.
RIVALS = ("cosine", "linear", "step decay", "elastic step")
INTERVALS = (
    "Each interval serves one octave of the spectrum, the flattest directions first. Its length grows with the square"
    " root of the number of eigenvalues there. The rate is the peak rate over a denominator that begins at 1 and grows"
    " by the interval's slope with every step."
)
AXES = {"linear": "linear", "log": "logarithmic"}


def schedule_section(recipe: Recipe) -> Section:
    """The curve beside its rivals at the same rate, its intervals, and the code that uses it."""
    schedule = recipe.schedule
    body = schedule.schedule if isinstance(schedule, Warmup) else schedule
    blocks = [
        paragraph(
            f"The learning rate of every step, with peak rate {schedule.lr:g} over {schedule.total_steps:,} steps,"
            " beside schedules in common use with the same peak rate."
        ),
        facts(_facts(schedule)),
        _figures(recipe, _ends(schedule, body)),
    ]
    if isinstance(body, Eigencurve) and len(body.times) - 1 <= MOST_INTERVALS:
        blocks += [paragraph(INTERVALS), _interval_table(body)]
    blocks += [paragraph("To train with it in PyTorch:"), code_block(snippet("torch", recipe))]
    return Section("The schedule", blocks)


def _facts(schedule: Schedule) -> list[tuple[str, str]]:
    pairs = [("first rate", f"{schedule(0):.4g}"), ("last rate", f"{schedule(schedule.total_steps - 1):.4g}")]
    for divisor in (2, 10):
        step = first_step_below(schedule, schedule.lr / divisor)
        when = "never" if step is None else f"step {step:,} ({step / schedule.total_steps:.0%})"
        pairs.append((f"below 1/{divisor} of the peak from", when))
    return pairs


def _ends(schedule: Schedule, body: Schedule) -> list[float]:
    """Where the intervals of ``body`` meet, in steps of ``schedule``; none where they are too many to be told apart."""
    if not isinstance(body, Eigencurve) or len(body.times) - 1 > MOST_INTERVALS:
        return []
    return [schedule.total_steps - body.total_steps + time for time in body.times[1:-1].tolist()]


def _figures(recipe: Recipe, ends: Sequence[float]) -> Markup:
    shown: dict[str, Schedule] = {recipe.kind.replace("_", " "): recipe.schedule}
    if recipe.subject is not None:
        usual = usual_schedules(recipe.subject.spectrum, recipe.total_steps, recipe.lr)
        shown |= {name: usual[name] for name in RIVALS if name not in shown}
    marked = " Thin vertical lines: where one interval ends and the next begins." if ends else ""
    figures = []
    for scale, axis in AXES.items():
        text = f"Line chart of the learning rate over {recipe.total_steps:,} steps, {axis} axis: {', '.join(shown)}."
        picture = inline_svg(rates_figure(shown, scale, ends), f"rates-{scale}", text)
        figures.append(figure(picture, f"Learning rates on a {axis} axis.{marked}"))
    return side_by_side(*figures)


def _interval_table(curve: Eigencurve) -> Markup:
    rows = []
    for i in range(len(curve.times) - 1):
        start, end = float(curve.times[i]), float(curve.times[i + 1])
        slope = float(curve.denominators[i + 1] - curve.denominators[i]) / (end - start)
        share = f"{(end - start) / curve.total_steps:.2%}"
        rate = f"{curve(math.ceil(start)):.4g}"
        rows.append([str(i), f"{start:,.1f}", f"{end - start:,.1f}", share, f"{slope:.3e}", rate])
    columns = ["interval", "from step", "steps", "share of the run", "slope", "rate at its start"]
    return table("The intervals of the schedule", columns, rows)
