"""The spectrum of a trained ResNet-20 on 200 images of CIFAR-10, at several numbers of products.

``python -m eigencurve.experiments.studies.resnet20_spectrum results`` measures it and writes
``resnet20_spectrum.md`` and ``.npz`` there. The folder that EIGENCURVE_DATA names must hold
``checkpoints/resnet20_cifar10.npz`` and ``cifar10_lossless_subset.npz``.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from eigencurve import Spectrum, __version__, extra_term, group, load_spectrum, prepare, save_spectrum
from eigencurve._arrays import Array
from eigencurve._heap import keep_freed_memory
from eigencurve.experiments.data.augment import normalise
from eigencurve.experiments.data.folder import data_file
from eigencurve.experiments.models.resnet import load_npz, resnet20
from eigencurve.hessian.estimate import estimate_spectrum
from eigencurve.hessian.lanczos import make_run, without_copies
from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.settling import Settling, log_curve
from eigencurve.spectrum.quadrature import gauss_quadrature, sharpen

MODULE = "eigencurve.experiments.studies.resnet20_spectrum"
WEIGHT_DECAY = 5e-4
TOTAL_STEPS = 39_100
NUM_IMAGES = 200
CHECKPOINT, IMAGES = "checkpoints/resnet20_cifar10.npz", "cifar10_lossless_subset.npz"
COUNTS = (100, 150, 250, 400, 600, 1000)


@dataclass(frozen=True)
class Row:
    """The estimate of one leading block."""

    num_products: int
    top: float
    kappa: float
    extra: float
    sharpened_error: float
    raw_error: float


def cifar_batch(path: str | os.PathLike[str], num_images: int = NUM_IMAGES) -> tuple[Tensor, Tensor]:
    """The first training images, normalised, and their labels."""
    with np.load(path, allow_pickle=False) as archive:
        images, labels = archive["train_images"][:num_images], archive["train_labels"][:num_images]
    return normalise(torch.from_numpy(images)), torch.from_numpy(labels).long()


def trained_data() -> Path:
    """The folder that has both the trained weights and the images.

    Raises:
        FileNotFoundError: one of them is missing.
    """
    return [data_file(name) for name in (CHECKPOINT, IMAGES)][1].parent


def resnet20_operator(data: Path) -> HessianOperator:
    """The Hessian of the trained ResNet-20 on the first images."""
    model = resnet20()
    load_npz(model, data / CHECKPOINT)
    return HessianOperator(model, F.cross_entropy, cifar_batch(data / IMAGES))


def times_of(operator: HessianOperator, seed: int) -> str:
    """What calls of ``estimate_spectrum`` take, sharpening included: 100 products, and as many as settle the curve."""
    words = []
    for settle, what in ((None, "100 products"), (0.02, "settle=0.02")):
        begun = time.monotonic()
        found = estimate_spectrum(
            operator, 100, seed=seed, settle=settle, weight_decay=WEIGHT_DECAY, total_steps=TOTAL_STEPS
        )
        words.append(f"{what}: {time.monotonic() - begun:.0f} s, {found.num_products} products")
    return "; ".join(words)


def rows_of(alphas: Array, betas: Array) -> tuple[list[Row], Spectrum]:
    """The estimates of the leading blocks, beside the settled curve: that of all products, sharpened."""
    counts = [k for k in COUNTS if k < len(alphas)] + [len(alphas)]
    sharpened = {k: _sharpened(alphas[:k], betas[:k]) for k in counts}
    settled = log_curve(sharpened[counts[-1]], WEIGHT_DECAY, TOTAL_STEPS)
    rows = []
    for k in counts:
        prepared = prepare(sharpened[k], WEIGHT_DECAY)
        raw = Spectrum(*gauss_quadrature(alphas[:k], betas[:k]))
        errors = [np.abs(log_curve(s, WEIGHT_DECAY, TOTAL_STEPS) - settled).max() for s in (sharpened[k], raw)]
        rows.append(Row(k, prepared.L - WEIGHT_DECAY, prepared.kappa, extra_term(prepared), *map(float, errors)))
    return rows, sharpened[counts[-1]]


def settled_at(alphas: Array, betas: Array, settle: float = 0.02) -> str:
    """Where a run that may stop would have stopped, and how far from the last curve, in a sentence."""
    settling = Settling(WEIGHT_DECAY, TOTAL_STEPS, torch.float32)
    last = log_curve(_sharpened(alphas, betas), WEIGHT_DECAY, TOTAL_STEPS)
    for k in settling.step_counts(len(alphas)):
        if settling.moved(alphas[:k], betas[:k]) < settle:
            error = np.abs(log_curve(_sharpened(alphas[:k], betas[:k]), WEIGHT_DECAY, TOTAL_STEPS) - last).max()
            return f"With settle={settle:g} the run ends after {k} products, {error:.3f} from the last curve."
    return f"With settle={settle:g} the run does not end before its last product."


def _sharpened(alphas: Array, betas: Array) -> Spectrum:
    run = make_run(alphas, betas, False, torch.float32)
    return sharpen(*without_copies(run, torch.float32), scale=WEIGHT_DECAY)


def table_of(rows: list[Row]) -> list[str]:
    """The rows in Markdown."""
    head = "| products | largest eigenvalue | kappa | extra term | max abs ln(f/f_end) | same, raw nodes |"
    lines = [
        f"| {row.num_products:,} | {row.top:.2f} | {row.kappa:.3g} | {row.extra:.2f} | {row.sharpened_error:.3f} "
        f"| {row.raw_error:.3f} |"
        for row in rows
    ]
    return [head, "| --- | --- | --- | --- | --- | --- |", *lines]


def octaves_of(measured: Spectrum, published: Spectrum | None) -> list[str]:
    """The share of every octave in Markdown, beside the published one where it is at hand."""
    ours = group(prepare(measured, WEIGHT_DECAY))
    shares = {int(i): f"{share:.3e}" for i, share in zip(ours.index, ours.share, strict=True)}
    theirs = {}
    if published is not None:
        groups = group(prepare(published, WEIGHT_DECAY))
        theirs = {int(i): f"{share:.3e}" for i, share in zip(groups.index, groups.share, strict=True)}
    rows = [f"| {i} | {shares.get(i, '-')} | {theirs.get(i, '-')} |" for i in sorted({*shares, *theirs})]
    return ["| octave i | share measured here | share published |", "| --- | --- | --- |", *rows]


def main() -> None:
    """Measure, and write the table and the spectrum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="where the results go")
    parser.add_argument("--products", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--checkpoint", type=Path, default=None, help="a file to save to and to go on from")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    keep_freed_memory()
    try:
        data = trained_data()
        operator = resnet20_operator(data)
    except FileNotFoundError as error:
        parser.error(str(error))
    times = times_of(operator, options.seed)
    begun = time.monotonic()
    estimate = estimate_spectrum(
        operator, options.products, seed=options.seed, settle=None, weight_decay=WEIGHT_DECAY,
        total_steps=TOTAL_STEPS, checkpoint=options.checkpoint,
    )  # fmt: skip
    seconds = time.monotonic() - begun
    rows, spectrum = rows_of(estimate.alphas[0], estimate.betas[0])
    path = data / "spectra" / "resnet-18_cifar10.txt"
    published = load_spectrum(path) if path.exists() else None
    how = (
        f"{estimate.num_products:,} products in {seconds:,.0f} s, {estimate.num_distinct:,} distinct nodes; shorter"
        f" calls, all included: {times}; seed {options.seed}, {torch.get_num_threads()} threads, {platform.machine()},"
        f" eigencurve {__version__}, torch {torch.__version__}"
    )
    measured = Spectrum(spectrum.eigenvalues, spectrum.weights, operator.dim)
    _write(options.folder, rows, measured, published, how, settled_at(estimate.alphas[0], estimate.betas[0]))


def _write(folder: Path, rows: list[Row], spectrum: Spectrum, published: Spectrum | None, how: str, stop: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    save_spectrum(spectrum, folder / "resnet20_spectrum.npz")
    beside = []
    if published is not None:
        reference = prepare(published, WEIGHT_DECAY)
        beside = [
            f"Published for this network, on another batch of images: largest eigenvalue "
            f"{reference.L - WEIGHT_DECAY:.2f}, kappa {reference.kappa:.3g}, extra term {extra_term(reference):.2f}.",
            "",
        ]
    lines = [
        "# The spectrum of a trained ResNet-20", "",
        f"The Hessian of the mean loss on the first {NUM_IMAGES} exact training images, in eval mode; weight decay "
        f"{WEIGHT_DECAY:g}, schedule of T = {TOTAL_STEPS:,} steps.", "",
        f"Command: `python -m {MODULE} results --products {rows[-1].num_products}`", "",
        f"Run: {how}.", "",
        *table_of(rows), "", stop, "", *beside, *octaves_of(spectrum, published),
    ]  # fmt: skip
    (folder / "resnet20_spectrum.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
