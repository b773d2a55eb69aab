"""The rates of the paper's first table, measured: loss · T/σ² against T and against κ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from eigencurve.figures.style import COLOURS, DASHES
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.classic import constant, step_decay
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.spectrum.groups import extra_term
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory.bounds import inverse_time_of
from eigencurve.theory.quadratic import NoisyQuadratic

NUM_NODES = 256
KAPPA = 64.0
HORIZONS = tuple(2**k for k in range(10, 21))
KAPPAS = tuple(4.0**k for k in range(1, 6))
# The exponent of the law p(λ) ∝ λ^-α. With α = 1 every octave is equally full, the paper's worst case.
SPECTRA = {"skewed (α = 2)": 2.0, "even octaves (α = 1)": 1.0, "uniform in λ (α = 0)": 0.0}
SCHEDULES = ("constant", "inverse time", "step decay", "eigencurve")


@dataclass(frozen=True)
class Sweep:
    """Losses times T/σ², per dimension.

    Attributes:
        spectrum: its name in ``SPECTRA``.
        along: ``"T"`` or ``"κ"``.
        points: the values of T or of κ.
        scaled: loss · T/σ² by schedule, one value a point; ``"certificate"`` too.
    """

    spectrum: str
    along: str
    points: tuple[float, ...]
    scaled: dict[str, tuple[float, ...]]


def measure() -> list[Sweep]:
    """Both sweeps for every spectrum, with σ² = 1 and initial errors 1 (about twenty seconds)."""
    return [
        sweep
        for name, alpha in SPECTRA.items()
        for sweep in (
            _sweep(name, "T", HORIZONS, [(alpha, KAPPA, steps) for steps in HORIZONS]),
            _sweep(name, "κ", KAPPAS, [(alpha, kappa, HORIZONS[-1]) for kappa in KAPPAS]),
        )
    ]


def spectrum_of(alpha: float, kappa: float) -> Spectrum:
    """256 eigenvalues of the law on [1, κ]."""
    return PowerLaw(alpha, 1.0, kappa).spectrum(NUM_NODES)


def schedules_of(problem: NoisyQuadratic, total_steps: int) -> dict[str, Schedule]:
    """The paper's four, at the rates of its theory: 1/L, and 1/(L + μt) for inverse time."""
    rate = 1 / problem.spectrum.L
    return {
        "constant": constant(total_steps, rate),
        "inverse time": inverse_time_of(problem, total_steps),
        "step decay": step_decay(total_steps, rate),
        "eigencurve": eigencurve(problem.spectrum, total_steps, rate),
    }


def slope(sweep: Sweep, schedule: str, last: int) -> float:
    """The exponent of growth, d ln(loss · T) / d ln(point), over the last points."""
    x, y = np.log(sweep.points[-last:]), np.log(sweep.scaled[schedule][-last:])
    return float(np.polyfit(x, y, 1)[0])


def text(sweeps: list[Sweep]) -> str:
    """The tables, in Markdown."""
    parts = [
        "loss · T/σ² per dimension, so that the minimax rate is 1/2 and a rate of σ²/T · g reads g. κ = "
        f"{KAPPA:g} where T varies, T = 2^20 where κ varies; σ² = 1, initial errors 1, {NUM_NODES} eigenvalues on "
        "[1, κ]. "
        "Every schedule has the rate of the theory: 1/L, and 1/(L + μt) for inverse time.",
        *(_table(sweep) for sweep in sweeps),
        "## What grows how",
        _growth(sweeps),
    ]
    return "\n\n".join(parts)


def figure(sweeps: list[Sweep]) -> Figure:
    """A panel a sweep: above against T, below against κ."""
    page = Figure(figsize=(13, 7.5), layout="constrained")
    panels = page.subplots(2, len(SPECTRA), sharey="row")
    for i, sweep in enumerate(sweeps):
        axes = panels[i % 2][i // 2]
        for k, name in enumerate((*SCHEDULES, "certificate")):
            style = {"color": COLOURS[k], "linestyle": DASHES[k], "marker": "."}
            axes.plot(sweep.points, sweep.scaled[name], label=name, **style)
        axes.set(xscale="log", yscale="log", xlabel=sweep.along, title=sweep.spectrum if sweep.along == "T" else "")
        axes.set_ylim(0.3, 300)
        axes.grid(alpha=0.3)
    for row in panels:
        row[0].set_ylabel("loss · T / σ²")
    panels[0][0].legend(frameon=False)
    return page


def _sweep(name: str, along: str, points: tuple[float, ...], cases: list[tuple[float, float, int]]) -> Sweep:
    columns: dict[str, list[float]] = {schedule: [] for schedule in (*SCHEDULES, "certificate")}
    for alpha, kappa, steps in cases:
        problem = NoisyQuadratic(spectrum_of(alpha, kappa), noise=1.0, initial_error=1.0)
        for schedule, f in schedules_of(problem, steps).items():
            columns[schedule].append(problem.expected_loss(f) * steps)
        columns["certificate"].append(problem.lower_bound(steps, 2 / problem.spectrum.L) * steps)
    return Sweep(name, along, points, {key: tuple(values) for key, values in columns.items()})


def _table(sweep: Sweep) -> str:
    names = (*SCHEDULES, "certificate")
    head = f"| {sweep.along} | " + " | ".join(names) + " |\n| --- " * 1 + "| --- " * len(names) + "|"
    rows = [
        f"| {point:,.0f} | " + " | ".join(f"{sweep.scaled[name][i]:.4g}" for name in names) + " |"
        for i, point in enumerate(sweep.points)
    ]
    return f"### {sweep.spectrum}, against {sweep.along}\n\n" + "\n".join([head, *rows])


def _growth(sweeps: list[Sweep]) -> str:
    lines = [
        "| spectrum | constant ~ T^ | inverse time ~ κ^ | mean(λ)/μ ~ κ^ | step decay per log2 T | "
        "eigencurve, last 4 T | extra term |",
        "| --- " * 7 + "|",
    ]
    for over_steps, over_kappa in zip(sweeps[::2], sweeps[1::2], strict=True):
        alpha = SPECTRA[over_steps.spectrum]
        means = [float(s.weights @ s.eigenvalues) for s in (spectrum_of(alpha, k) for k in KAPPAS)]
        mean_slope = float(np.polyfit(np.log(KAPPAS[-3:]), np.log(means[-3:]), 1)[0])
        step = over_steps.scaled["step decay"]
        per_log = (step[-1] - step[-5]) / math.log2(HORIZONS[-1] / HORIZONS[-5])
        flat = over_steps.scaled["eigencurve"][-4:]
        lines.append(
            f"| {over_steps.spectrum} | {slope(over_steps, 'constant', 4):.2f} "
            f"| {slope(over_kappa, 'inverse time', 3):.2f} | {mean_slope:.2f} "
            f"| {per_log:.3f} | {min(flat):.3f} - {max(flat):.3f} "
            f"| {extra_term(spectrum_of(alpha, KAPPA)):.2f} |"
        )
    return "\n".join(lines)
