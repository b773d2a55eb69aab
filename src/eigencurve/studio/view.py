"""What the page shows, as numbers: from settings and a spectrum, in a fraction of a second."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array, IntArray
from eigencurve.planning.recipe import Recipe
from eigencurve.planning.subject import Subject
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.by_kind import own_settings, usual_settings
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.spectrum.groups import extra_term, group, log_density, octave_index
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.studio.state import Settings
from eigencurve.theory.blocks import Blocks, block_curve, blocks_of, peak_rate
from eigencurve.theory.certificate import certificates
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.nodes import Nodes, compress
from eigencurve.theory.optimal import Search
from eigencurve.theory.quadratic import NoisyQuadratic
from eigencurve.theory.tuning import best_scale, rescaled

BEST = "best"
# Times at which losses are given, evenly spaced and geometrically from the first step on.
NUM_EVEN, NUM_EARLY = 31, 30
# Steps at which rates are drawn whatever the curve, evenly spaced and geometrically towards the last one.
NUM_DRAWN, NUM_LATE = 121, 40
# Cells of ln λ and largest change of the rate within a block, from quick to fine; the next is taken where two
# in a row differ by more than PROMISED.
RESOLUTIONS = ((32, 0.1), (64, 0.02), (128, 0.005), (256, 0.001))
PROMISED = 0.01
# Intervals that a table shows one by one; where there are more, they are summed by octave.
MOST_INTERVALS = 32


@dataclass(frozen=True, eq=False)
class SpectrumView:
    """The spectrum as the schedule sees it: |λ| + weight decay.

    Attributes:
        mu, L: smallest and largest eigenvalue.
        num_nodes: how many eigenvalues represent it.
        dim: of how many parameters, where known.
        fraction_negative: the share that was negative as measured.
        extra_term: (Σ √s_i)²/d for β = 2.
        lower: lower edge of each octave, from μ on, without gaps.
        positive, negative: the share of the octave's eigenvalues that were positive and negative as measured.
        curve: eigenvalues at which ``density`` is given.
        density: the smooth share per octave there.
    """

    mu: float
    L: float
    num_nodes: int
    dim: int | None
    fraction_negative: float
    extra_term: float
    lower: Array
    positive: Array
    negative: Array
    curve: Array
    density: Array

    @property
    def kappa(self) -> float:
        """L/μ."""
        return self.L / self.mu


@dataclass(frozen=True)
class Interval:
    """A stretch of the schedule that belongs to the eigenvalues between two edges.

    Attributes:
        lower, upper: the eigenvalues' edges.
        share: of the eigenvalues.
        start, length: in steps; not whole numbers.
        first_lr, last_lr: the rates at its ends.
    """

    lower: float
    upper: float
    share: float
    start: float
    length: float
    first_lr: float
    last_lr: float


@dataclass(frozen=True, eq=False)
class LossRow:
    """What one schedule reaches on the quadratic; the numbers are infinite where it diverges.

    Attributes:
        name: of the schedule.
        peak: its highest rate on the quadratic.
        loss, bias, variance: after all steps.
        ratio: loss over the bound.
        curve: the loss at each of the marks.
    """

    name: str
    peak: float
    loss: float
    bias: float
    variance: float
    ratio: float
    curve: Array

    @property
    def diverges(self) -> bool:
        """Whether the rates were too high for the quadratic."""
        return not math.isfinite(self.loss)


@dataclass(frozen=True, eq=False)
class LossView:
    """Expected losses as training goes on.

    Attributes:
        marks: numbers of steps.
        rows: one a schedule, the lowest final loss first.
        bound: the certificate at each mark.
        max_lr: the rate that the bound allows.
        error: the largest relative difference of two resolutions, the finer of which is shown.
    """

    marks: IntArray
    rows: tuple[LossRow, ...]
    bound: Array
    max_lr: float
    error: float


@dataclass(frozen=True, eq=False)
class CurvesView:
    """The schedules.

    Attributes:
        recipes: how each is made, by kind.
        schedules: by name; the numerically best one among them, scaled to the learning rate of the settings.
        compared: the same, the numerically best one at its own rates.
        steps: by name, steps at which ``rates`` are given.
        rates: by name.
        intervals: of Eigencurve.
    """

    recipes: Mapping[str, Recipe]
    schedules: Mapping[str, Schedule]
    compared: Mapping[str, Schedule]
    steps: Mapping[str, IntArray]
    rates: Mapping[str, Array]
    intervals: tuple[Interval, ...]


@dataclass(frozen=True, eq=False)
class View:
    """Everything on the page but the texts: how the loss curves, the schedules, and what they reach."""

    spectrum: SpectrumView
    curves: CurvesView
    losses: LossView


def redraw(settings: Settings, subject: Subject, best: Search | None = None) -> View:
    """Compute all that the page shows. The page itself draws each of the three parts once that is computed.

    Args:
        settings: of the page.
        subject: from :func:`eigencurve.studio.source.subject_of`.
        best: the numerically best schedule for :func:`problem_of`, where it was searched for.
    """
    curves = curves_view(settings, subject, best)
    return View(spectrum_view(subject), curves, loss_view(settings, subject, curves.compared))


def problem_of(settings: Settings, subject: Subject) -> tuple[NoisyQuadratic, float]:
    """The quadratic of the settings, and the highest rate that the bound and the search for the best allow.

    That is 2/L, the largest at which no coordinate grows; where rates are taken as given, also theirs if higher.
    """
    problem = NoisyQuadratic(subject.spectrum, settings.noise, initial_error=1.0)
    stable = 2 / problem.spectrum.L
    return problem, max(stable, settings.lr) if settings.scale == "given" else stable


def recipe_of(kind: str, settings: Settings, subject: Subject) -> Recipe:
    """How the page makes a schedule of that kind.

    Exponential and inverse time decay never reach 0: without a last rate above 0 they end at their usual one.
    """
    usual = usual_settings(kind, settings.total_steps, settings.lr)
    last = settings.min_lr or usual.get("min_lr", settings.min_lr)
    chosen = {"beta": settings.beta, "allocation": settings.allocation, "min_lr": last}
    own = usual | own_settings(kind, chosen)
    used = subject if kind == "eigencurve" else None
    return Recipe(kind, settings.total_steps, settings.lr, used, settings=own, weight_decay=settings.weight_decay)


def spectrum_view(subject: Subject) -> SpectrumView:
    """The shares of every octave, positive and negative apart, and the smooth density."""
    spectrum = subject.spectrum
    lower, positive, negative = _octave_shares(subject)
    curve, density = _smooth(subject.prepared)
    return SpectrumView(
        mu=spectrum.mu,
        L=spectrum.L,
        num_nodes=len(spectrum),
        dim=spectrum.dim,
        fraction_negative=subject.fraction_negative,
        extra_term=extra_term(subject.prepared),
        lower=lower,
        positive=positive,
        negative=negative,
        curve=curve,
        density=density,
    )


def curves_view(settings: Settings, subject: Subject, best: Search | None = None) -> CurvesView:
    """The schedules of the settings, and the numerically best one where it is known."""
    recipes = {kind: recipe_of(kind, settings, subject) for kind in settings.schedules}
    schedules: dict[str, Schedule] = {kind: recipe.schedule for kind, recipe in recipes.items()}
    compared = dict(schedules)
    if best is not None:
        compared[BEST] = best.schedule
        schedules[BEST] = rescaled(best.schedule, settings.lr / peak_rate(best.schedule))
    steps = {name: _sampled(schedule) for name, schedule in schedules.items()}
    rates = {name: schedules[name](steps[name]) for name in schedules}
    curve = schedules.get("eigencurve")
    intervals = intervals_of(curve, subject, settings.beta) if isinstance(curve, Eigencurve) else ()
    return CurvesView(recipes, schedules, compared, steps, rates, intervals)


def intervals_of(curve: Eigencurve, subject: Subject, beta: float) -> tuple[Interval, ...]:
    """The pieces of an Eigencurve with the eigenvalues that each belongs to; by octave where they are many.

    On a piece the denominator rises by λ/L a step, λ the lower edge of its group: so the piece tells its group.
    """
    spectrum = subject.spectrum
    lengths = np.diff(curve.times)
    lam = np.diff(curve.denominators) / lengths * spectrum.L
    ratio = beta if beta > 1 and len(lengths) <= MOST_INTERVALS else 2.0
    used, first = np.unique(octave_index(lam * ratio**1e-6, spectrum.mu, ratio), return_index=True)
    starts = curve.times[first]
    ends = np.append(starts[1:], curve.total_steps)
    groups = group(subject.prepared, ratio)
    share = dict(zip(groups.index.tolist(), groups.share.tolist(), strict=True))
    return tuple(
        Interval(
            lower=spectrum.mu * ratio**i,
            upper=min(spectrum.mu * ratio ** (i + 1), spectrum.L),
            share=share.get(i, 0.0),
            start=start,
            length=end - start,
            first_lr=curve(math.ceil(start)),
            last_lr=curve(max(math.ceil(end) - 1, 0)),
        )
        for i, start, end in zip(used.tolist(), starts.tolist(), ends.tolist(), strict=True)
    )


def loss_view(settings: Settings, subject: Subject, schedules: Mapping[str, Schedule]) -> LossView:
    """The expected loss of every schedule along the run, and the certificate.

    Computed at two resolutions of spectrum and time; the finer one is shown, with the largest difference of the
    two. Where that exceeds ``PROMISED``, the resolution is doubled, three times at most.
    """
    problem, max_lr = problem_of(settings, subject)
    nodes, marks = problem.nodes, marks_for(settings.total_steps)
    evaluator = BlockEvaluator(nodes)
    scales = {name: _scale(settings, evaluator, schedule, max_lr, name) for name, schedule in schedules.items()}
    stiffness = max_lr * problem.spectrum.L
    coarse: dict[str, Array] = {}
    for num_cells, tolerance in RESOLUTIONS:
        few = compress(nodes, num_cells)
        fine = {
            name: _curve(few, blocks_of(schedule, marks, tolerance, stiffness).scaled(scales[name]))
            for name, schedule in schedules.items()
        }
        error = _difference(coarse, fine)
        if error <= PROMISED:
            break
        coarse = fine
    bound = certificates(nodes, marks, max_lr)
    rows = [
        _row(name, fine[name], scales[name] * peak_rate(schedule), bound[-1]) for name, schedule in schedules.items()
    ]
    return LossView(marks, tuple(sorted(rows, key=lambda row: row.loss)), bound, max_lr, error)


def marks_for(total_steps: int) -> IntArray:
    """Some sixty numbers of steps from 0 to T, evenly and geometrically spaced."""
    even, early = np.linspace(0, total_steps, NUM_EVEN), np.geomspace(1, total_steps, NUM_EARLY)
    return np.unique(np.concatenate((even, early)).round().astype(np.int64))


def _scale(settings: Settings, evaluator: BlockEvaluator, schedule: Schedule, max_lr: float, name: str) -> float:
    """What the rates of a schedule are multiplied by on the quadratic."""
    if name == BEST or settings.scale == "given":
        return 1.0
    if settings.scale == "theory":
        return max_lr / 2 / peak_rate(schedule)
    return best_scale(evaluator, schedule, max_lr)


def _curve(nodes: Nodes, blocks: Blocks) -> Array:
    """Bias and variance at the marks, one row each."""
    curve = block_curve(nodes, blocks)
    return np.stack((curve.bias, curve.variance))


def _difference(coarse: Mapping[str, Array], fine: Mapping[str, Array]) -> float:
    """The largest relative difference of the losses, where both are finite."""
    if not coarse:
        return math.inf
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = [coarse[name].sum(axis=0) / fine[name].sum(axis=0) for name in fine]
    return max((float(np.abs(r[np.isfinite(r)] - 1).max(initial=0.0)) for r in ratios), default=0.0)


def _row(name: str, curve: Array, peak: float, bound: float) -> LossRow:
    loss = curve.sum(axis=0)
    ratio = float(loss[-1] / bound) if bound else math.inf
    return LossRow(name, peak, float(loss[-1]), float(curve[0, -1]), float(curve[1, -1]), ratio, loss)


def _octave_shares(subject: Subject) -> tuple[Array, Array, Array]:
    """Lower edges of the octaves from μ to L, and the share of positive and of negative eigenvalues in each."""
    spectrum = subject.spectrum
    num = 1 + int(octave_index(spectrum.L, spectrum.mu))
    lower = np.asarray(spectrum.mu * 2.0 ** np.arange(num), dtype=np.float64)
    total = np.zeros(num)
    groups = group(subject.prepared, beta=2.0)
    total[groups.index] = groups.share
    if isinstance(subject.shape, PowerLaw):
        return lower, total, np.zeros(num)
    below = subject.shape.eigenvalues < 0
    index = octave_index(np.abs(subject.shape.eigenvalues[below]) + subject.weight_decay, spectrum.mu)
    negative = np.bincount(index, subject.shape.weights[below], num).astype(np.float64)
    return lower, np.maximum(total - negative, 0.0), negative


def _smooth(prepared: Spectrum | PowerLaw) -> tuple[Array, Array]:
    """Eigenvalues at eight places an octave, and the share per octave that the log-density has there."""
    density = log_density(prepared)
    u = np.linspace(density.edges[0], density.edges[-1], 2 * len(density.edges))
    return np.exp(u), math.log(2) * density(u)


def _sampled(schedule: Schedule) -> IntArray:
    """Steps that draw the curve: where it bends or jumps, evenly, and closer and closer towards the end."""
    total, last = schedule.total_steps, schedule.total_steps - 1
    stop = np.cumsum(blocks_of(schedule, np.array([total]), tolerance=0.1, stiffness=1.0).counts)
    even, late = np.linspace(0, last, NUM_DRAWN).round(), total - np.geomspace(1, total, NUM_LATE).round()
    return np.unique(np.concatenate((stop[:-1], stop - 1, even, late)).astype(np.int64))
