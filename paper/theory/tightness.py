"""How tight the paper's bounds are: the exact expected loss divided by the bound, on random problems."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from eigencurve import NoisyQuadratic, PowerLaw, Spectrum, eigencurve, step_decay
from eigencurve.figures.style import COLOURS
from eigencurve.schedules.allocation import optimal_allocation, sqrt_allocation
from eigencurve.spectrum.groups import group
from eigencurve.theory import bounds
from eigencurve.theory.recursion import LossParts
from paper.arrays import Array
from paper.engine.request import Request
from paper.page import ResultsPage, markdown_table, page_with_figure

SEED = 0
NUM_PROBLEMS = 2000
# The bound for step decay needs millions of steps, so it is checked on one problem in twenty.
STEP_DECAY_SHARE = 0.05

Ratios = dict[str, list[tuple[float, float, float]]]


def make(_request: Request) -> ResultsPage:
    """The page about the tightness of the bounds."""
    ratios = measure()
    return page_with_figure("theory/tightness", "How tight the paper's bounds are", figure(ratios), text(ratios))


def measure() -> Ratios:
    """Ratios of exact to bounded bias, variance and loss on ``NUM_PROBLEMS`` random problems, by bound."""
    generator = np.random.default_rng(SEED)
    ratios: Ratios = {}
    for _ in range(NUM_PROBLEMS):
        for name, values in _one(generator).items():
            ratios.setdefault(name, []).append(values)
    return ratios


def text(ratios: Ratios) -> str:
    """The table, in Markdown."""
    about = (
        f"{NUM_PROBLEMS} random problems, seed {SEED}: 2 to 8 eigenvalues, κ from 1.3 to 10⁴, shares over three orders "
        "of magnitude, σ² from 0.01 to 100, initial errors 1, T from κ to 100 κ. Each ratio is the exact expected loss "
        "of the bound's schedule, divided by the bound; a ratio of 1 means equality. The bound for step decay is a "
        "lower bound: there the ratio is the bound divided by the loss, and T is from 1.6 · 10⁶ to 6 · 10⁶."
    )
    columns = ["bound", "problems", *(f"{part}: median, largest" for part in ("bias", "variance", "total"))]
    rows = [
        [name, str(len(values)), *(_cell([v[i] for v in values]) for i in range(3))] for name, values in ratios.items()
    ]
    return f"{about}\n\n{markdown_table(columns, rows)}"


def figure(ratios: Ratios) -> Figure:
    """The distribution of the ratio of loss to bound, for each bound."""
    page = Figure(figsize=(8, 4.5), layout="constrained")
    axes = page.subplots()
    for i, (name, values) in enumerate(ratios.items()):
        total = np.sort([v[2] for v in values])
        axes.plot(total, np.linspace(0, 1, len(total)), label=name, color=COLOURS[i % len(COLOURS)])
    axes.set(xscale="log", xlabel="exact / bound", ylabel="share of the problems below", xlim=(1e-5, 2))
    axes.axvline(1.0, color="black", linewidth=1)
    axes.legend(frameon=False)
    return page


def _one(generator: np.random.Generator) -> dict[str, tuple[float, float, float]]:
    count, kappa = int(generator.integers(2, 9)), 10 ** generator.uniform(math.log10(1.3), 4)
    heights = np.concatenate(([0.0, 1.0], generator.random(count - 2)))
    spectrum = Spectrum(kappa**heights, 10 ** generator.uniform(-3, 0, count))
    steps = math.ceil(kappa * 10 ** generator.uniform(0, 2))
    noise = 10 ** generator.uniform(-2, 2)
    problem = NoisyQuadratic(spectrum, noise, 1.0)
    curve = problem.loss_parts(eigencurve(spectrum, steps, 1 / spectrum.L))
    groups = group(spectrum)
    lengths = optimal_allocation(groups.share, groups.lower / spectrum.L, steps)
    ratios = {
        "Proposition 2": _over(
            problem.loss_parts(bounds.inverse_time_of(problem, steps)), bounds.proposition_2(problem, steps)
        ),
        "Lemma 1, Δ ∝ √s": _over(curve, bounds.lemma_1(problem, sqrt_allocation(groups.share, steps))),
        "Theorem 1": _over(curve, bounds.theorem_1(problem, steps)),
        "Corollary 1": _corollary_1(1 + 10 ** generator.uniform(-1, 0.5), kappa, steps, noise),
    }
    if generator.random() < STEP_DECAY_SHARE:
        ratios["step decay, lower"] = _step_decay(problem, int(10 ** generator.uniform(6.2, 6.8)))
    if lengths[0] > 0:
        exact = problem.loss_parts(eigencurve(spectrum, steps, 1 / spectrum.L, allocation="optimal"))
        ratios["Lemma 1, optimal Δ"] = _over(exact, bounds.lemma_1(problem, lengths))
    if bounds.octave_count(problem) * _first_share(spectrum) >= 1:
        ratios["Corollary 2"] = _over(curve, bounds.corollary_2(problem, steps))
    return ratios


def _corollary_1(alpha: float, kappa: float, steps: int, noise: float) -> tuple[float, float, float]:
    law = PowerLaw(alpha, 1.0, kappa)
    exact = NoisyQuadratic(law.spectrum(64), noise, 1.0).loss_parts(eigencurve(law, steps, 1 / law.L))
    return _over(exact, bounds.corollary_1(law, steps, noise, 1.0))


def _step_decay(problem: NoisyQuadratic, steps: int) -> tuple[float, float, float]:
    rate = 1 / problem.spectrum.L
    parts = problem.loss_parts(step_decay(steps, rate))
    bound = bounds.step_decay_lower_bound(problem, steps, rate)
    return math.nan, bound / parts.variance, bound / parts.loss


def _first_share(spectrum: Spectrum) -> float:
    return float(spectrum.weights[spectrum.eigenvalues < 2 * spectrum.mu].sum())


def _over(parts: LossParts, bound: bounds.Bound) -> tuple[float, float, float]:
    return parts.bias / bound.bias, parts.variance / bound.variance, parts.loss / bound.total


def _cell(values: list[float]) -> str:
    known: Array = np.array(values)[np.isfinite(values)]
    return f"{np.median(known):.3g}, {known.max():.3g}" if len(known) else "-"
