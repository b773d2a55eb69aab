"""The report: a spectrum, its schedule, what to expect of it and how runs went, on one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eigencurve import _check
from eigencurve.planning.expectation import expect
from eigencurve.planning.recipe import Recipe
from eigencurve.planning.subject import Subject
from eigencurve.report.page import Section, paragraph
from eigencurve.report.page import page as build_page
from eigencurve.report.runs import Panel
from eigencurve.report.sections.expectation import expectation_section
from eigencurve.report.sections.runs import runs_section
from eigencurve.report.sections.schedule import schedule_section
from eigencurve.report.sections.settings import settings_section
from eigencurve.report.sections.spectrum import spectrum_section
from eigencurve.runs.origin import origin_here


@dataclass(frozen=True)
class Expectation:
    """The quadratic problem that schedules are compared on.

    Attributes:
        noise: σ².
        initial_error: of every coordinate.
        max_lr: the largest rate; None for 2/L.
        best: whether to search the numerically best schedule.
    """

    noise: float = 1.0
    initial_error: float = 1.0
    max_lr: float | None = None
    best: bool = True


def report_page(
    recipe: Recipe | None = None,
    expectation: Expectation | None = None,
    panels: Sequence[Panel] = (),
    command: str = "",
) -> str:
    """The page as HTML; it needs no network and no other file.

    Args:
        recipe: the schedule and, in it, the spectrum; None for a page about runs alone.
        expectation: on which problem to compare schedules; None leaves that part out.
        panels: finished runs, from :func:`eigencurve.report.runs.panels_of`.
        command: that makes the page, to be shown on it.
    """
    if recipe is None and not panels:
        _check.refuse("report_page", "panels", "finished runs where no spectrum is given", "none")
    sections: list[Section] = []
    settings = {"command": command} if command else {}
    title = "Training runs"
    if recipe is not None:
        subject = recipe.subject
        title = f"A schedule for {subject.name}" if subject is not None else f"A {recipe.kind} schedule"
        sections += _recipe_sections(recipe, expectation)
        settings |= _recipe_settings(recipe, expectation)
    if panels:
        sections.append(runs_section(panels))
    sections.append(settings_section(settings, origin_here()))
    return build_page(title, [paragraph(_intro(recipe))], sections)


def _recipe_sections(recipe: Recipe, expectation: Expectation | None) -> list[Section]:
    subject = recipe.subject
    if subject is None:
        return [schedule_section(recipe)]
    parts = [spectrum_section(subject), schedule_section(recipe)]
    if expectation is not None:
        e = expectation
        compared = expect(subject, recipe.total_steps, e.noise, e.initial_error, max_lr=e.max_lr, best=e.best)
        parts.append(expectation_section(subject, compared, e.noise, recipe.lr))
    return parts


def _recipe_settings(recipe: Recipe, expectation: Expectation | None) -> dict[str, str]:
    subject: Subject | None = recipe.subject
    shown = {"schedule": recipe.kind, "steps": f"{recipe.total_steps:,}", "learning rate": f"{recipe.lr:g}"}
    shown |= {"warmup steps": str(recipe.warmup_steps)} if recipe.warmup_steps else {}
    shown |= {name.replace("_", " "): str(value) for name, value in recipe.settings.items()}
    if subject is not None:
        shown |= {"spectrum": subject.name, "weight decay": f"{subject.weight_decay:g}"}
        shown |= {"measured on": subject.about} if subject.about else {}
        known = subject.measurement
        shown |= {"measured by": known.made_by} if known is not None and known.made_by else {}
    if expectation is not None:
        shown |= {"noise": f"{expectation.noise:g}", "initial error": f"{expectation.initial_error:g}"}
    return shown


def _intro(recipe: Recipe | None) -> str:
    if recipe is None:
        return "How schedules did in finished training runs."
    if recipe.subject is None:
        return f"A learning-rate schedule of {recipe.total_steps:,} steps."
    about = f" ({recipe.subject.about})" if recipe.subject.about else ""
    return (
        f"How the loss of {recipe.subject.name}{about} curves, the learning-rate schedule that this calls for over "
        f"{recipe.total_steps:,} steps, and how far from the best possible it is."
    )
