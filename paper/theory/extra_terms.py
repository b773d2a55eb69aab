"""The extra terms of the paper's appendix, from the published spectra, with exact losses and certificates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from eigencurve import NoisyQuadratic, Schedule, eigencurve, extra_term, load_spectrum, step_decay
from eigencurve.figures.style import COLOURS
from eigencurve.spectrum import prepare
from eigencurve.theory.bounds import inverse_time_of, minimax_rate
from paper.data.folder import GOOGLENET_CIFAR10, RESNET_CIFAR10, RESNET_IMAGENET, VGG16_CIFAR10, published_path
from paper.engine.request import Request
from paper.page import ResultsPage, markdown_table, page_with_figure

NOISES = (1.0, 1e4)
ROWS = ("inverse time", "step decay", "eigencurve", "best found")


@dataclass(frozen=True)
class Setting:
    """A published spectrum and the run that the paper assumes for it."""

    title: str  # data and model
    file: str  # file name of the published spectrum
    weight_decay: float  # weight decay of the run
    total_steps: int  # total number of steps T of the run
    # The paper's extra terms for inverse time decay (κ), step decay (log T) and Eigencurve.
    published: tuple[float, float, float]


# 200 epochs of 391 batches on CIFAR-10, 90 epochs of 5,005 batches on ImageNet.
SETTINGS = (
    Setting("CIFAR-10 + ResNet18", RESNET_CIFAR10, 5e-4, 78_200, (3.39e5, 16.25, 8.15)),
    Setting("CIFAR-10 + GoogLeNet", GOOGLENET_CIFAR10, 5e-4, 78_200, (4.92e5, 16.25, 5.97)),
    Setting("CIFAR-10 + VGG16", VGG16_CIFAR10, 5e-4, 78_200, (6.50e5, 16.25, 7.12)),
    Setting("ImageNet + ResNet18", RESNET_IMAGENET, 1e-4, 450_450, (6.80e6, 18.78, 12.61)),
)


@dataclass(frozen=True)
class Cell:
    """One schedule on one spectrum: exact loss at its best rate up to 2/L, its bias, and its gap to the certificate."""

    loss: float
    bias: float
    gap: float


@dataclass(frozen=True)
class Block:
    """All numbers of one spectrum at one noise level."""

    setting: Setting
    noise: float
    terms: tuple[float, float, float]
    density_sum: float
    lower_bound: float
    minimax: float
    cells: dict[str, Cell]


def make(request: Request) -> ResultsPage:
    """The page of extra terms."""
    blocks = measure(request.data)
    return page_with_figure(
        "theory/extra-terms", "Extra terms, exact losses and certificates", figure(blocks), text(blocks)
    )


def measure(data: Path | None) -> list[Block]:
    """Every spectrum at every noise level, with initial errors 1 (a few minutes: one run has 450,450 steps)."""
    return [_block(setting, noise, data) for noise in NOISES for setting in SETTINGS]


def text(blocks: list[Block]) -> str:
    """The tables, in Markdown."""
    parts = [
        "The extra term is the factor by which the paper's rate of a schedule exceeds dσ²/T: κ for inverse time decay, "
        "log2 T for step decay, (Σ√s_i)²/d for Eigencurve. The published densities do not quite sum to 1: the paper "
        "computes (Σ√s_i)² from the raw densities, this table from the normalised shares.",
        _terms_table(blocks[: len(SETTINGS)]),
    ]
    for i, noise in enumerate(NOISES):
        parts.append(f"## Exact expected loss, σ² = {noise:g}")
        parts.append(
            "Loss per dimension with initial errors 1 (the loss starts at 0.5), every schedule at its best peak rate "
            "up to 2/L. In brackets: the gap to the certificate, below which no schedule with rates up to 2/L can get."
        )
        parts.append(_loss_table(blocks[i * len(SETTINGS) : (i + 1) * len(SETTINGS)]))
    return "\n\n".join(parts)


def figure(blocks: list[Block]) -> Figure:
    """Each schedule's loss divided by the certificate, one panel per noise level."""
    page = Figure(figsize=(12, 4.5), layout="constrained")
    for axes, noise in zip(page.subplots(1, len(NOISES)), NOISES, strict=True):
        chosen = [block for block in blocks if block.noise == noise]
        for k, name in enumerate(ROWS):
            at = np.arange(len(chosen)) + 0.2 * (k - 1.5)
            ratios = [1 + block.cells[name].gap for block in chosen]
            axes.bar(at, ratios, width=0.18, color=COLOURS[k], label=name)
        axes.axhline(1.0, color="black", linewidth=1, label="certificate")
        axes.set_xticks(range(len(chosen)), [block.setting.title.replace(" + ", "\n") for block in chosen])
        axes.set(yscale="log", ylabel="loss / certificate", title=f"σ² = {noise:g}")
    page.axes[0].legend(frameon=False)
    return page


def _block(setting: Setting, noise: float, data: Path | None) -> Block:
    path = published_path(data, setting.file)
    spectrum = prepare(load_spectrum(path), setting.weight_decay)
    problem = NoisyQuadratic(spectrum, noise, 1.0)
    steps, max_lr = setting.total_steps, 2 / spectrum.L
    found = problem.search_best(steps, max_lr)
    schedules: dict[str, Schedule] = {
        "inverse time": inverse_time_of(problem, steps),
        "step decay": step_decay(steps, 1 / spectrum.L),
        "eigencurve": eigencurve(spectrum, steps, 1 / spectrum.L),
    }
    table = problem.compare(schedules, max_lr=max_lr, tune_lr=True)
    cells = {row.name: Cell(row.loss or math.nan, row.bias or 0.0, row.gap or 0.0) for row in table.rows}
    cells["best found"] = Cell(found.loss, problem.loss_parts(found.schedule).bias, found.gap or 0.0)
    density_sum = math.fsum(np.loadtxt(path)[:, 1])
    bound = problem.lower_bound(steps, max_lr)
    terms = (spectrum.kappa, math.log2(steps), extra_term(spectrum))
    return Block(setting, noise, terms, density_sum, bound, minimax_rate(problem, steps), cells)


def _terms_table(blocks: list[Block]) -> str:
    names = ("inverse time (κ)", "step decay (log2 T)", "eigencurve")
    rows = [
        [name, *(f"{block.terms[i]:.4g} (paper {block.setting.published[i]:.4g})" for block in blocks)]
        for i, name in enumerate(names)
    ]
    raw = [f"{block.terms[2] * block.density_sum:.4g}" for block in blocks]
    rows += [["eigencurve, raw densities", *raw], ["minimax", *("1" for _ in blocks)]]
    return markdown_table(["schedule", *(block.setting.title for block in blocks)], rows)


def _loss_table(blocks: list[Block]) -> str:
    rows = [
        [name, *(f"{block.cells[name].loss:.4g} ({block.cells[name].gap:+.2%})" for block in blocks)] for name in ROWS
    ]
    biases = [f"{block.cells['eigencurve'].bias / block.cells['eigencurve'].loss:.1%}" for block in blocks]
    rows += [
        ["certificate", *(f"{block.lower_bound:.4g}" for block in blocks)],
        ["minimax σ²/(2T)", *(f"{block.minimax:.4g}" for block in blocks)],
        ["share of bias in eigencurve's loss", *biases],
    ]
    return markdown_table(["schedule", *(block.setting.title for block in blocks)], rows)
