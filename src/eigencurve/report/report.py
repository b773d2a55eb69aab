"""The HTML report: a spectrum, its schedule, a comparison of expected losses, and finished runs, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eigencurve import _check
from eigencurve.planning.answer import Plan
from eigencurve.planning.comparison import compare_schedules
from eigencurve.planning.inputs import Inputs
from eigencurve.planning.limits import rate_limit
from eigencurve.planning.recipe import Recipe
from eigencurve.planning.subject import Subject
from eigencurve.report.page import Section, paragraph
from eigencurve.report.page import page as build_page
from eigencurve.report.runs import Panel
from eigencurve.report.sections.comparison import comparison_section
from eigencurve.report.sections.plan import plan_section
from eigencurve.report.sections.runs import runs_section
from eigencurve.report.sections.schedule import schedule_section
from eigencurve.report.sections.settings import settings_section
from eigencurve.report.sections.spectrum import spectrum_section
from eigencurve.runs.origin import origin_here


@dataclass(frozen=True)
class ComparisonSettings:
    """The quadratic problem on which the report compares schedules.

    Attributes:
        inputs: Gradient noise and start of the run.
        max_lr: Largest learning rate allowed. With None, it is the largest stable one.
        best: Whether to search for the numerically best schedule.
        momentum: Momentum of SGD.
        nesterov: Whether it is Nesterov momentum; otherwise heavy ball.
    """

    inputs: Inputs
    max_lr: float | None = None
    best: bool = True
    momentum: float = 0.0
    nesterov: bool = False


def report_page(
    recipe: Recipe | None = None,
    comparison: ComparisonSettings | None = None,
    panels: Sequence[Panel] = (),
    command: str = "",
    plan: Plan | None = None,
) -> str:
    """Build the report as a self-contained HTML page.

    Args:
        recipe: The schedule and its spectrum, or None for a page with runs only.
        comparison: Problem on which to compare schedules, or None to omit the comparison.
        panels: Finished runs, from :func:`eigencurve.report.runs.panels_of`.
        command: Command line that created the page, to be shown on it.
        plan: Answer to which schedule the run should use; the page opens with it.
    """
    if recipe is None and not panels:
        _check.refuse("report_page", "panels", "finished runs if there is no recipe", "none")
    sections: list[Section] = []
    settings = {"command": command} if command else {}
    title = "Training runs"
    if recipe is not None:
        subject = recipe.subject
        title = f"A schedule for {subject.name}" if subject is not None else f"A {recipe.kind} schedule"
        sections += _recipe_sections(recipe, comparison)
        settings |= _recipe_settings(recipe, comparison)
    if panels:
        sections.append(runs_section(panels))
    sections.append(settings_section(settings, origin_here()))
    if plan is None:
        return build_page(title, [paragraph(_intro(recipe))], sections)
    return build_page(title, [], sections, lead=plan_section(plan))


def _recipe_sections(recipe: Recipe, comparison: ComparisonSettings | None) -> list[Section]:
    subject = recipe.subject
    if subject is None:
        return [schedule_section(recipe)]
    training = recipe.training
    inertia = training.momentum if training.optimizer is not None else None
    limit = rate_limit(subject, training.optimizer, inertia, training.nesterov)
    parts = [spectrum_section(subject, limit), schedule_section(recipe, limit)]
    if comparison is not None:
        c = comparison
        compared = compare_schedules(
            subject, recipe.total_steps, c.inputs, c.momentum, c.nesterov, max_lr=c.max_lr, best=c.best
        )
        plain = rate_limit(subject, "sgd", c.momentum, c.nesterov)
        parts.append(comparison_section(compared, c.inputs, plain, recipe.lr, c.momentum, c.nesterov))
    return parts


def _recipe_settings(recipe: Recipe, comparison: ComparisonSettings | None) -> dict[str, str]:
    subject: Subject | None = recipe.subject
    shown = {"schedule": recipe.kind, "steps": f"{recipe.total_steps:,}", "learning rate": f"{recipe.lr:g}"}
    shown |= {"warmup steps": str(recipe.warmup_steps)} if recipe.warmup_steps else {}
    shown |= {name.replace("_", " "): str(value) for name, value in recipe.settings.items()}
    if subject is not None:
        shown |= {"spectrum": subject.name, "weight decay": f"{subject.weight_decay:g}"}
        shown |= {"measured on": subject.about} if subject.about else {}
        known = subject.measurement
        shown |= {"measured by": known.made_by} if known is not None and known.made_by else {}
    if comparison is not None:
        inputs = comparison.inputs
        shown |= {"noise": inputs.noise_text.replace("`", ""), "start": inputs.start_text}
        if comparison.momentum:
            shown |= {"momentum": f"{comparison.momentum:g}{' (Nesterov)' if comparison.nesterov else ''}"}
    return shown


def _intro(recipe: Recipe | None) -> str:
    if recipe is None:
        return "Results of finished training runs."
    if recipe.subject is None:
        return f"A learning-rate schedule of {recipe.total_steps:,} steps."
    about = f" ({recipe.subject.about})" if recipe.subject.about else ""
    return (
        f"The curvature of the loss of {recipe.subject.name}{about}, the learning-rate schedule that fits it over "
        f"{recipe.total_steps:,} steps, and how it compares with other schedules."
    )
