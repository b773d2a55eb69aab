"""From the settings of the page to its schedules and the quadratic they are compared on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eigencurve.planning.code import ScheduleCode
from eigencurve.planning.intervals import Interval, intervals_of
from eigencurve.planning.labels import BEST
from eigencurve.planning.result import BETA1, Training
from eigencurve.planning.spectrum import quadratic_of
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.schedules.kinds import own_settings, usual_settings
from eigencurve.schedules.sampling import peak_rate
from eigencurve.spectrum.source import SpectrumSource, with_inputs
from eigencurve.studio.state import Settings
from eigencurve.theory.optimal import Search
from eigencurve.theory.quadratic import NoisyQuadratic
from eigencurve.theory.tuning import rescaled

# Kinds on the page that are another kind with settings of their own.
VARIANTS: dict[str, tuple[str, dict[str, str]]] = {"wsd_sqrt": ("wsd", {"tail": "1-sqrt"})}


@dataclass(frozen=True, eq=False)
class CurvesView:
    """The schedules on the page.

    Attributes:
        recipes: ScheduleCode of each schedule, by kind. The numerically best schedule has none.
        schedules: Schedules to draw and download, by name. The numerically best one is scaled to the learning rate of
            the settings.
        compared: The same schedules for the comparison of losses, the numerically best one at its own rates.
        intervals: Intervals of the Eigencurve schedule, if it is shown.
    """

    recipes: Mapping[str, ScheduleCode]
    schedules: Mapping[str, Schedule]
    compared: Mapping[str, Schedule]
    intervals: tuple[Interval, ...]


def problem_of(settings: Settings, subject: SpectrumSource) -> tuple[NoisyQuadratic, float]:
    """Build the quadratic of the settings, and the highest rate that the bound and the search allow.

    That rate is the largest stable one, 2/L without momentum. If the rates are used as given and are higher, it is the
    given learning rate.
    """
    problem = quadratic_of(with_inputs(subject, settings.noise), settings.momentum, settings.nesterov)
    stable = problem.stable_rate
    return problem, max(stable, settings.lr) if settings.scale == "given" else stable


def recipe_of(kind: str, settings: Settings, subject: SpectrumSource) -> ScheduleCode:
    """Build the recipe of a schedule of that kind.

    Exponential and inverse time decay never reach 0. Unless the final rate is above 0, they end at their usual one.
    """
    kind, variant = VARIANTS.get(kind, (kind, {}))
    usual = usual_settings(kind, settings.lr) | variant
    last = settings.min_lr or usual.get("min_lr", settings.min_lr)
    chosen = {"beta": settings.beta, "allocation": settings.allocation, "min_lr": last}
    own = usual | own_settings(kind, chosen)
    used = subject if kind == "eigencurve" else None
    return ScheduleCode.of_kind(
        kind, settings.total_steps, settings.lr, training_in(settings, subject), used, settings=own
    )


def training_in(settings: Settings, subject: SpectrumSource) -> Training:
    """The optimizer of the settings, in the metric of the spectrum; no momentum is the usual β₁ of Adam."""
    optimizer = subject.optimizer
    if optimizer != "sgd":
        return Training(optimizer, settings.momentum or BETA1, weight_decay=settings.weight_decay)
    return Training(optimizer, settings.momentum, settings.nesterov, settings.weight_decay)


def curves_view(settings: Settings, subject: SpectrumSource, best: Search | None = None) -> CurvesView:
    """Build the schedules of the settings.

    Args:
        settings: Settings of the page.
        subject: Spectrum of the settings; see :func:`eigencurve.studio.source.subject_of`.
        best: The numerically best schedule for :func:`problem_of`, once it is known.
    """
    recipes = {kind: recipe_of(kind, settings, subject) for kind in settings.schedules}
    schedules: dict[str, Schedule] = {kind: recipe.schedule for kind, recipe in recipes.items()}
    compared = dict(schedules)
    if best is not None:
        compared[BEST] = best.schedule
        schedules[BEST] = rescaled(best.schedule, settings.lr / peak_rate(best.schedule))
    curve = schedules.get("eigencurve")
    intervals = intervals_of(curve, subject, settings.beta) if isinstance(curve, Eigencurve) else ()
    return CurvesView(recipes, schedules, compared, intervals)
