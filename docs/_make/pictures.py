"""Draw the figures of the documentation with the library itself.

``python docs/_make/pictures.py`` writes all figures to docs/pictures; pass names to draw only some of them. The output
is deterministic: it contains no date and no random numbers, and the only data is a spectrum shipped with the package.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import eigencurve as ec
from eigencurve.figures.style import COLOURS, DASHES
from eigencurve.spectrum import prepare
from eigencurve.spectrum.zoo import ZOO, zoo_spectrum
from eigencurve.theory.bounds import inverse_time_of

FOLDER = Path(__file__).parent.parent / "pictures"
# 100 epochs of CIFAR-10 with batch size 128, as in the figures of the paper.
T, LR = 39_100, 0.1
NETWORK = "resnet20_cifar10"
GREY = "#767676"
# A fixed hash salt makes element ids reproducible. Drawing text as paths avoids a font dependency.
STYLE = {"svg.hashsalt": "eigencurve", "svg.fonttype": "path", "font.size": 11, "axes.spines.top": False,
         "axes.spines.right": False, "path.simplify": True, "path.simplify_threshold": 0.5}  # fmt: skip

PICTURES: dict[str, Callable[[], Figure]] = {}


def picture(draw: Callable[[], Figure]) -> Callable[[], Figure]:
    """Register a figure under the name of its function."""
    PICTURES[draw.__name__] = draw
    return draw


def network(weight_decay: float | None = None) -> ec.Spectrum:
    """The shipped ResNet-20 spectrum, prepared with its own weight decay by default."""
    return prepare(zoo_spectrum(NETWORK), ZOO[NETWORK].weight_decay if weight_decay is None else weight_decay)


@cache
def best_schedule(level: float) -> ec.Schedule:
    """The numerically best schedule for the shipped spectrum at noise σ² = ``level``."""
    spectrum = network()
    return ec.NoisyQuadratic(spectrum, noise=level).optimal_schedule(T, max_lr=2 / spectrum.L)


def panels(*titles: str, width: float = 10.5, height: float = 3.9) -> tuple[Figure, list[Axes]]:
    """A figure with one panel per title, side by side."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, len(titles))))
    for one, title in zip(axes, titles, strict=True):
        one.set_title(title, fontsize=12, loc="left")
    return figure, axes


def curves(axes: Axes, schedules: Mapping[str, ec.Schedule], scale: str = "linear") -> None:
    """Plot each schedule, divided by its initial learning rate, against the fraction of the run."""
    for k, (name, schedule) in enumerate(schedules.items()):
        last = schedule.total_steps - 1
        late = last - np.geomspace(1, last, 300)
        steps = np.unique(np.concatenate((np.linspace(0, last, 300), late)).round().astype(np.int64))
        rates = schedule(steps) / schedule.lr
        axes.plot(steps / last, rates, color=COLOURS[k], linestyle=DASHES[k], linewidth=2, label=name)
    axes.set(xlabel="fraction of training", ylabel="learning rate / initial value", yscale=scale)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def octave_bars(axes: Axes, spectrum: ec.Spectrum) -> None:
    """Plot the fraction of eigenvalues in each octave."""
    groups = ec.spectrum.group(spectrum)
    axes.bar(groups.lower, groups.share, width=groups.lower, align="edge", color=COLOURS[5], edgecolor="white")
    axes.set(xscale="log", yscale="log", xlabel="|eigenvalue| + weight decay", ylabel="fraction of eigenvalues")
    axes.grid(alpha=0.3)


@picture
def first() -> Figure:
    """README figure: the spectrum of a network and its Eigencurve schedule."""
    spectrum = network()
    figure, (left, right) = panels("Hessian spectrum of a trained ResNet-20", "Schedules, T = 39,100 steps")
    octave_bars(left, spectrum)
    chosen = {
        "eigencurve": ec.eigencurve(spectrum, T, LR),
        "cosine": ec.cosine(T, LR),
        "step decay": ec.step_decay(T, LR),
    }
    curves(right, chosen)
    return figure


@picture
def one_rate() -> Figure:
    """Bias and variance of SGD in one direction, as functions of a constant learning rate."""
    steps, rates = 100, np.geomspace(1e-3, 0.5, 120)
    problem = ec.NoisyQuadratic(ec.Spectrum([1.0], [1.0]), noise=1.0, initial_error=30.0)
    parts = [problem.loss_parts(ec.constant(steps, rate)) for rate in rates]
    figure, (axes,) = panels("SGD in one direction (λ = 1): 100 steps at a constant learning rate", width=9)
    series = {
        "total": [p.loss for p in parts],
        "bias (remaining initial error)": [p.bias for p in parts],
        "variance (gradient noise)": [p.variance for p in parts],
    }
    for k, (name, values) in enumerate(series.items()):
        axes.plot(rates, values, color=COLOURS[k], linestyle=DASHES[k], linewidth=2, label=name)
    axes.set(xscale="log", yscale="log", xlabel="learning rate", ylabel="expected loss", ylim=(1e-4, 30))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


@picture
def each_its_own() -> Figure:
    """The best schedule of a single direction depends on its curvature."""
    steps = 10_000
    figure, (axes,) = panels("Best schedule for a single direction", width=9)
    for k, curvature in enumerate((0.0003, 0.01, 0.1, 1.0)):
        problem = ec.NoisyQuadratic(ec.Spectrum([curvature], [1.0]), noise=1.0, initial_error=1.0)
        best = problem.optimal_schedule(steps, max_lr=1.0)
        at = np.unique(np.geomspace(1, steps, 300).round().astype(np.int64)) - 1
        label = f"λ = {curvature:g}"
        axes.plot(at + 1, best(at), color=COLOURS[k], linestyle=DASHES[k], linewidth=2, label=label)
    axes.set(xscale="log", yscale="log", xlabel="step", ylabel="learning rate")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


@picture
def shares_of_time() -> Figure:
    """How Eigencurve divides the steps among the octaves, and the resulting schedule."""
    spectrum = ec.PowerLaw(alpha=1.3, mu=1.0, L=256.0).spectrum(num=2000)
    groups, curve = ec.spectrum.group(spectrum), ec.eigencurve(spectrum, 500, 1.0)
    figure, (left, right) = panels("Eigenvalues per octave", "Eigencurve: one interval per octave")
    tints = [mpl.colormaps["viridis"](k / (len(groups) - 1)) for k in range(len(groups))]
    left.bar(groups.index, groups.share, color=tints)
    left.bar(
        groups.index, np.sqrt(groups.share) / np.sqrt(groups.share).sum(), fill=False, edgecolor="black", width=0.5
    )
    left.set(xlabel="octave (flat to steep)", ylabel="fraction of eigenvalues (outline: of steps)")
    for k, tint in enumerate(tints):
        right.axvspan(curve.times[k], curve.times[k + 1], color=tint, alpha=0.45, linewidth=0)
    at = np.arange(500)
    right.plot(at, curve(at), color="black", linewidth=2)
    right.set(xlabel="step", ylabel="learning rate / initial value", xlim=(0, 500), ylim=(0, 1.02))
    return figure


@picture
def cosine() -> Figure:
    """Cosine decay compared with Eigencurve, for power laws and for a measured spectrum."""
    figure, (left, right) = panels("Power-law spectra λ^-α, κ = 10 T", "Trained ResNet-20, T = 39,100")
    laws = {f"eigencurve, α = {a:g}": ec.eigencurve(ec.PowerLaw(a, 1.0, 10.0 * T), T, LR) for a in (1.0, 1.2, 1.5)}
    curves(left, {"cosine": ec.cosine(T, LR), **laws})
    spectrum = network()
    found = {
        "eigencurve, β = 2": ec.eigencurve(spectrum, T, LR),
        "eigencurve, β → 1": ec.eigencurve(spectrum, T, LR, beta=1.0),
    }
    curves(right, {"cosine": ec.cosine(T, LR), **found, "elastic step": ec.elastic_step(T, LR)})
    return figure


@picture
def when_it_helps() -> Figure:
    """Expected loss relative to the lower bound as the run gets longer, at two noise levels."""
    spectrum = ec.PowerLaw(alpha=1.3, mu=1e-3, L=1.0).spectrum(num=64)
    lengths = np.geomspace(30, 300_000, 13).round().astype(int).tolist()
    levels = (1.0, 100.0)
    figure, both = panels(*(f"Power law α = 1.3, κ = 1,000, σ² = {level:g}" for level in levels), height=4.4)
    for axes, level in zip(both, levels, strict=True):
        problem = ec.NoisyQuadratic(spectrum, noise=level, initial_error=1.0)
        tables = [problem.compare(_rivals(problem, steps), max_lr=1.0, tune_lr=True) for steps in lengths]
        for k, name in enumerate(_rivals(problem, lengths[0])):
            ratios = [1 + table[name].gap for table in tables]
            style = {"color": COLOURS[k], "linestyle": DASHES[k]}
            axes.plot(np.array(lengths) / spectrum.kappa, ratios, linewidth=2, label=name, **style)
        axes.axvline(1.0, color=GREY, linewidth=1)
        axes.annotate("T = κ", (1.0, 80), xytext=(4, 0), textcoords="offset points", color=GREY)
        axes.set(xscale="log", yscale="log", ylim=(0.9, 130), xlabel="T / κ", ylabel="expected loss / lower bound")
        axes.set_yticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.legend(*both[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def _rivals(problem: ec.NoisyQuadratic, steps: int) -> dict[str, ec.Schedule]:
    return {
        "eigencurve": ec.eigencurve(problem.spectrum, steps, 1.0),
        "cosine": ec.cosine(steps, 1.0),
        "step decay": ec.step_decay(steps, 1.0),
        "inverse time": inverse_time_of(problem, steps),
        "constant": ec.constant(steps, 1.0),
    }


@picture
def certificate() -> Figure:
    """Expected losses of five schedules and the lower bound, at two noise levels."""
    spectrum = network()
    levels = (1.0, 1e4)
    figure, both = panels(*(f"Noise σ² = {level:,.0f}" for level in levels), height=3.4)
    rate = 1 / spectrum.L
    entries = {
        "step decay": ec.step_decay(T, rate), "constant": ec.constant(T, rate), "cosine": ec.cosine(T, rate),
        "eigencurve": ec.eigencurve(spectrum, T, rate),
    }  # fmt: skip
    for axes, level in zip(both, levels, strict=True):
        problem = ec.NoisyQuadratic(spectrum, noise=level, initial_error=1.0)
        table = problem.compare({**entries, "best found": best_schedule(level)}, max_lr=2 / spectrum.L, tune_lr=True)
        names = [*entries, "best found"]
        bias = np.array([table[name].bias for name in names])
        variance = np.array([table[name].variance for name in names])
        axes.barh(names, bias, color=COLOURS[5], label="bias")
        axes.barh(names, variance, left=bias, color=COLOURS[4], label="variance")
        axes.axvline(table.lower_bound, color="black", linewidth=2, label="certificate (lower bound)")
        axes.set(xlabel="expected loss", xlim=(0, 0.45))
    figure.legend(*both[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


@picture
def negatives() -> Figure:
    """Positive and negative eigenvalues per octave, and the schedules for two ways of treating them."""
    spectrum, decay = zoo_spectrum(NETWORK), ZOO[NETWORK].weight_decay
    figure, (left, right) = panels("Signed eigenvalues of a trained ResNet-20", "Eigencurve schedules, T = 39,100")
    edges = decay * 2.0 ** np.arange(-1, 20)
    middles = np.sqrt(edges[1:] * edges[:-1])
    for k, (name, sign) in enumerate({"positive": 1, "negative": -1}.items()):
        share, _ = np.histogram(sign * spectrum.eigenvalues, edges, weights=spectrum.weights)
        seen = share > 0
        left.plot(middles[seen], share[seen], "os"[k] + "-", color=COLOURS[k], markersize=5, label=name)
    left.set(xscale="log", yscale="log", xlabel="|eigenvalue|", ylabel="fraction per octave")
    left.grid(alpha=0.3)
    left.legend(frameon=False)
    ways = {way: ec.eigencurve(prepare(spectrum, decay, negatives=way), T, LR) for way in ("abs", "drop")}
    curves(right, {f'negatives="{way}"': schedule for way, schedule in ways.items()})
    return figure


@picture
def weight_decay() -> Figure:
    """Eigencurve schedules for four values of the weight decay."""
    figure, (axes,) = panels("Eigencurve for a trained ResNet-20, T = 39,100", width=9)
    curves(axes, {f"weight decay {d:g}": ec.eigencurve(network(d), T, LR) for d in (5e-3, 5e-4, 5e-5, 5e-6)})
    return figure


@picture
def beta() -> Figure:
    """Eigencurve schedules for four group widths β."""
    spectrum = network()
    figure, (left, right) = panels("Eigencurve for a trained ResNet-20, T = 39,100", "The last 10% of training")
    chosen = {f"β = {b:g}": ec.eigencurve(spectrum, T, LR, beta=b) for b in (4.0, 2.0, 1.2)}
    chosen["β → 1"] = ec.eigencurve(spectrum, T, LR, beta=1.0)
    curves(left, chosen)
    curves(right, chosen)
    right.set(xlim=(0.9, 1.001), ylim=(0, 0.7))
    return figure


@picture
def noise() -> Figure:
    """The numerically best schedules at three noise levels."""
    spectrum = network()
    figure, (axes,) = panels("Numerically best schedules for the ResNet-20 spectrum, T = 39,100", width=9)
    found: dict[str, ec.Schedule] = {}
    for level, shown in ((1.0, "1"), (1e4, "10⁴"), (1e5, "10⁵")):
        best = best_schedule(level)
        found[f"σ² = {shown}, peak {best.values().max() * spectrum.L:.2g}/L"] = best
    for k, (name, best) in enumerate(found.items()):
        rates = best.values()
        at = np.unique(np.linspace(0, T - 1, 400).round().astype(int))
        axes.plot(at / (T - 1), rates[at] / rates.max(), color=COLOURS[k], linestyle=DASHES[k], linewidth=2, label=name)
    at = np.linspace(0, T - 1, 400).round().astype(np.int64)
    axes.plot(
        at / (T - 1), ec.eigencurve(spectrum, T, 1.0)(at), color=GREY, linestyle=":", linewidth=2, label="eigencurve"
    )
    axes.set(xlabel="fraction of training", ylabel="learning rate / peak value", ylim=(0, 1.05))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower left")
    return figure


@picture
def no_spectrum() -> Figure:
    """Schedules that need no measured spectrum."""
    figure, (left, right) = panels("Elastic step decay and cosine-power", "Eigencurve for assumed power laws")
    powers = {f"cosine-power, α = {a:g}": ec.cosine_power(T, LR, alpha=a) for a in (0.5, 2.0)}
    curves(left, {"cosine": ec.cosine(T, LR), "elastic step, r = 1/2": ec.elastic_step(T, LR), **powers})
    guesses = {"α = 1.2, κ = 5 T": (1.2, 5), "α = 1.5, κ = 5 T": (1.5, 5), "α = 1.5, κ = T/2": (1.5, 0.5)}
    curves(right, {name: ec.eigencurve(ec.PowerLaw(a, 1.0, k * T), T, LR) for name, (a, k) in guesses.items()})
    return figure


def drawn(name: str) -> bytes:
    """The content of a figure as an SVG file."""
    with mpl.rc_context(STYLE):
        target = io.BytesIO()
        PICTURES[name]().savefig(target, format="svg", metadata={"Date": None})
    return target.getvalue()


def main() -> None:
    """Draw the requested figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="names of the figures to draw (default: all)")
    parser.add_argument("--out", type=Path, default=FOLDER, help="output folder (default: docs/pictures)")
    chosen = parser.parse_args()
    for name in chosen.names or PICTURES:
        content = drawn(name)
        (chosen.out / f"{name}.svg").write_bytes(content)
        print(f"{name}.svg  {len(content) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
