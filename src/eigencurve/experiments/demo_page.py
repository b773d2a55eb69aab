"""The demo's figures, and one self-contained page that shows them."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from eigencurve._arrays import Array
from eigencurve._files import write_atomically
from eigencurve.hessian.estimate import SpectrumEstimate
from eigencurve.schedules.base import Schedule

mpl.use("Agg")
from matplotlib import pyplot as plt

SMOOTHED_OVER = 15
STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}img{width:100%}pre{overflow:auto}"
)


def write_page(
    folder: Path, estimate: SpectrumEstimate, schedules: dict[str, Schedule], losses: dict[str, Array], texts: list[str]
) -> Path:
    """Write three figures as PNG and ``index.html`` with them inside; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "spectrum": _saved(folder / "spectrum.png", lambda axes: _spectrum(axes, estimate)),
        "learning-rates": _saved(folder / "learning-rates.png", lambda axes: _rates(axes, schedules)),
        "training": _saved(folder / "training.png", lambda axes: _training(axes, losses)),
    }
    images = "".join(f'<h2>{name}</h2><img alt="{name}" src="{source}">' for name, source in figures.items())
    blocks = "".join(f"<pre>{html.escape(text)}</pre>" for text in texts)
    page = folder / "index.html"
    text = (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>eigencurve: the demo</title>"
        f"<style>{STYLE}</style>"
        f"<h1>From a network to its schedule</h1>{images}<h2>Tables</h2>{blocks}</html>"
    )
    write_atomically(page, text.encode())
    return page


def _saved(path: Path, draw: Callable[[Any], None]) -> str:
    """Draw one figure to ``path``; returns it as a data address."""
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    draw(axes)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


def _spectrum(axes: Any, estimate: SpectrumEstimate) -> None:
    octaves = estimate.octaves
    share = np.maximum(octaves.share, 1e-9)
    error = np.minimum(octaves.error, 0.99 * share)
    axes.bar(octaves.lower, share, width=octaves.lower, align="edge", alpha=0.5, label="share of the octave")
    axes.errorbar(octaves.lower * 2**0.5, share, yerr=error, fmt="none", ecolor="black", capsize=2, label="error")
    seen = estimate.weights > 1e-12
    axes.plot(
        np.abs(estimate.nodes[seen]) + estimate.weight_decay, estimate.weights[seen], ".", ms=3, label="Lanczos nodes"
    )
    axes.set(
        xscale="log", yscale="log", ylim=(max(share.min() / 10, 1e-8), 2), xlabel="|eigenvalue| + weight decay",
        ylabel="share of the parameters",
    )  # fmt: skip
    axes.legend()


def _rates(axes: Any, schedules: dict[str, Schedule]) -> None:
    for name, schedule in schedules.items():
        axes.plot(schedule.values(), label=name)
    axes.set(yscale="log", xlabel="step", ylabel="learning rate")
    axes.legend()


def _training(axes: Any, losses: dict[str, Array]) -> None:
    window = np.ones(SMOOTHED_OVER) / SMOOTHED_OVER
    for name, values in losses.items():
        axes.plot(np.convolve(values, window, mode="valid"), label=name)
    axes.set(yscale="log", xlabel="step", ylabel=f"training loss, mean of {SMOOTHED_OVER} steps and all starts")
    axes.legend()
