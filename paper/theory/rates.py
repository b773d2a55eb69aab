"""The convergence rates of the paper's first table, measured: loss · T/σ² against T and against κ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from eigencurve import NoisyQuadratic, PowerLaw, Schedule, Spectrum, constant, eigencurve, extra_term, step_decay
from eigencurve.figures.style import COLOURS, DASHES
from eigencurve.theory.bounds import inverse_time_of
from paper.engine.request import Request
from paper.page import ResultsPage, markdown_table, page_with_figure

NUM_NODES = 256
KAPPA = 64.0
HORIZONS = tuple(2**k for k in range(10, 21))
KAPPAS = tuple(4.0**k for k in range(1, 6))
# Exponent α of the power law p(λ) ∝ λ^-α. With α = 1 every octave has the same share, the paper's worst case.
SPECTRA = {"skewed (α = 2)": 2.0, "even octaves (α = 1)": 1.0, "uniform in λ (α = 0)": 0.0}
SCHEDULES = ("constant", "inverse time", "step decay", "eigencurve")


@dataclass(frozen=True)
class Sweep:
    """Losses times T/σ² per dimension, for several T or several κ."""

    spectrum: str  # name of the spectrum in `SPECTRA`
    along: str  # what varies: `"T"` or `"κ"`
    points: tuple[float, ...]  # values of T or κ
    scaled: dict[str, tuple[float, ...]]  # loss · T/σ² at each point, by schedule; `"certificate"` is the lower bound


def make(_request: Request) -> ResultsPage:
    """The page of measured rates."""
    sweeps = measure()
    return page_with_figure(
        "theory/rates", "The rates of the paper's schedules, measured", figure(sweeps), text(sweeps)
    )


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
    """256 eigenvalues on [1, κ] that follow the power law."""
    return PowerLaw(alpha, 1.0, kappa).spectrum(NUM_NODES)


def schedules_of(problem: NoisyQuadratic, total_steps: int) -> dict[str, Schedule]:
    """The paper's four schedules at the rates of its theory: 1/L, and 1/(L + μt) for inverse time decay."""
    rate = 1 / problem.spectrum.L
    return {
        "constant": constant(total_steps, rate),
        "inverse time": inverse_time_of(problem, total_steps),
        "step decay": step_decay(total_steps, rate),
        "eigencurve": eigencurve(problem.spectrum, total_steps, rate),
    }


def slope(sweep: Sweep, schedule: str, last: int) -> float:
    """The exponent of growth, d ln(loss · T) / d ln(point), fitted to the last ``last`` points."""
    x, y = np.log(sweep.points[-last:]), np.log(sweep.scaled[schedule][-last:])
    return float(np.polyfit(x, y, 1)[0])


def text(sweeps: list[Sweep]) -> str:
    """The tables, in Markdown."""
    parts = [
        "The tables show loss · T/σ² per dimension: the minimax rate is 1/2, and a loss of g · σ²/T appears as g. When "
        f"T varies, κ = {KAPPA:g}; when κ varies, T = 2^20. σ² = 1, initial errors 1, {NUM_NODES} eigenvalues on [1, "
        "κ]. Every schedule runs at the rate of the theory: 1/L, and 1/(L + μt) for inverse time decay.",
        *(_table(sweep) for sweep in sweeps),
        "## Growth with T and κ",
        _growth(sweeps),
    ]
    return "\n\n".join(parts)


def figure(sweeps: list[Sweep]) -> Figure:
    """One panel per sweep: against T in the first row, against κ in the second."""
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
    rows = [
        [f"{point:,.0f}", *(f"{sweep.scaled[name][i]:.4g}" for name in names)] for i, point in enumerate(sweep.points)
    ]
    return f"### {sweep.spectrum}, against {sweep.along}\n\n" + markdown_table([sweep.along, *names], rows)


def _growth(sweeps: list[Sweep]) -> str:
    columns = [
        "spectrum", "constant ~ T^", "inverse time ~ κ^", "mean(λ)/μ ~ κ^", "step decay per log2 T",
        "eigencurve, last 4 T", "extra term",
    ]  # fmt: skip
    rows = []
    for over_steps, over_kappa in zip(sweeps[::2], sweeps[1::2], strict=True):
        alpha = SPECTRA[over_steps.spectrum]
        means = [float(s.weights @ s.eigenvalues) for s in (spectrum_of(alpha, k) for k in KAPPAS)]
        mean_slope = float(np.polyfit(np.log(KAPPAS[-3:]), np.log(means[-3:]), 1)[0])
        step = over_steps.scaled["step decay"]
        per_log = (step[-1] - step[-5]) / math.log2(HORIZONS[-1] / HORIZONS[-5])
        flat = over_steps.scaled["eigencurve"][-4:]
        rows.append([
            over_steps.spectrum, f"{slope(over_steps, 'constant', 4):.2f}",
            f"{slope(over_kappa, 'inverse time', 3):.2f}", f"{mean_slope:.2f}", f"{per_log:.3f}",
            f"{min(flat):.3f} - {max(flat):.3f}", f"{extra_term(spectrum_of(alpha, KAPPA)):.2f}",
        ])  # fmt: skip
    return markdown_table(columns, rows)
