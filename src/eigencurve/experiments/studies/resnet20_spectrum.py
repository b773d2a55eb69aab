"""The spectrum of a trained ResNet-20 on 200 images of CIFAR-10, estimated with several numbers of products."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from eigencurve import Spectrum, extra_term, group, prepare
from eigencurve._arrays import Array
from eigencurve._heap import keep_freed_memory
from eigencurve.experiments.data.augment import normalise
from eigencurve.experiments.data.folder import data_file
from eigencurve.experiments.data.published import RESNET_CIFAR10, published_spectrum
from eigencurve.experiments.engine.request import Request
from eigencurve.experiments.models.resnet import load_npz, resnet20
from eigencurve.experiments.page import ResultsPage, markdown_table
from eigencurve.hessian.estimate import estimate_spectrum
from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.settling import Settling, log_curve
from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum.files import spectrum_bytes
from eigencurve.spectrum.quadrature import gauss_quadrature

SEED = 0
WEIGHT_DECAY = 5e-4
NUM_IMAGES = 200
CHECKPOINT, IMAGES = "checkpoints/resnet20_cifar10.npz", "cifar10_lossless_subset.npz"
COUNTS = (100, 150, 250, 400, 600, 1000)


@dataclass(frozen=True)
class ProductsRow:
    """The estimate after some number of products.

    Attributes:
        num_products: Number of products.
        top: Largest eigenvalue.
        kappa: Condition number.
        extra: Extra term.
        sharpened_error: Largest |ln(f/f_end)| of the schedule from the sharpened spectrum.
        raw_error: The same from the raw Lanczos nodes.
    """

    num_products: int
    top: float
    kappa: float
    extra: float
    sharpened_error: float
    raw_error: float


def make(request: Request) -> ResultsPage:
    """Measure the spectrum; an unfinished run resumes from its checkpoint next to the store."""
    keep_freed_memory()
    operator = resnet20_operator(request.data)
    times = times_of(operator)
    begun = time.monotonic()
    estimate = estimate_spectrum(
        operator, COUNTS[-1], seed=SEED, settle=None, weight_decay=WEIGHT_DECAY,
        checkpoint=request.checkpoints / "resnet20_spectrum.npz",
    )  # fmt: skip
    seconds = time.monotonic() - begun
    alphas, betas = estimate.alphas[0], estimate.betas[0]
    rows, spectrum = rows_of(alphas, betas, operator.dim)
    try:
        published = published_spectrum(request.data, RESNET_CIFAR10)
    except FileNotFoundError:
        published = None
    how = (
        f"{estimate.num_products:,} products took {seconds:,.0f} s and gave {estimate.num_distinct:,} distinct nodes"
        f" (seed {SEED}, {torch.get_num_threads()} threads, {platform.machine()}). Whole calls of `estimate_spectrum`:"
        f" {times}."
    )
    measured = Spectrum(spectrum.eigenvalues, spectrum.weights, operator.dim)
    parts = [
        f"The Hessian of the mean loss on the first {NUM_IMAGES} training images (lossless), in eval mode. Schedules"
        f" have T = {TYPICAL_STEPS:,} steps and weight decay {WEIGHT_DECAY:g}.",
        how, table_of(rows), settled_at(alphas, betas, operator.dim), *_published_sentence(published),
        octaves_of(measured, published),
    ]  # fmt: skip
    files = {"resnet20_spectrum.npz": spectrum_bytes(measured, ".npz")}
    return ResultsPage("resnet20_spectrum", "The spectrum of a trained ResNet-20", "\n\n".join(parts), files=files)


def cifar_batch(path: str | os.PathLike[str], num_images: int = NUM_IMAGES) -> tuple[Tensor, Tensor]:
    """The first training images, normalised, and their labels."""
    with np.load(path, allow_pickle=False) as archive:
        images, labels = archive["train_images"][:num_images], archive["train_labels"][:num_images]
    return normalise(torch.from_numpy(images)), torch.from_numpy(labels).long()


def resnet20_operator(data: Path | None = None) -> HessianOperator:
    """The Hessian of the trained ResNet-20 on the first images.

    Raises:
        FileNotFoundError: The weights or the images are missing.
    """
    weights, images = (data_file(name, data) for name in (CHECKPOINT, IMAGES))
    model = resnet20()
    load_npz(model, weights)
    return HessianOperator(model, F.cross_entropy, cifar_batch(images))


def times_of(operator: HessianOperator) -> str:
    """Duration of calls of ``estimate_spectrum``: with 100 products, and until the schedule has settled."""
    words = []
    for settle, what in ((None, "num_steps=100"), (0.02, "settle=0.02")):
        begun = time.monotonic()
        found = estimate_spectrum(operator, 100, seed=SEED, settle=settle, weight_decay=WEIGHT_DECAY)
        words.append(f"{what}: {time.monotonic() - begun:.0f} s, {found.num_products} products")
    return "; ".join(words)


def rows_of(alphas: Array, betas: Array, dim: int) -> tuple[list[ProductsRow], Spectrum]:
    """The estimates after each number of products, and the spectrum from all of them, which errors refer to."""
    counts = [k for k in COUNTS if k < len(alphas)] + [len(alphas)]
    sharpened = {k: _sharpened(alphas[:k], betas[:k], dim) for k in counts}
    settled = _log_curve(sharpened[counts[-1]])
    rows = []
    for k in counts:
        prepared = prepare(sharpened[k], WEIGHT_DECAY)
        raw = Spectrum(*gauss_quadrature(alphas[:k], betas[:k]))
        errors = [float(np.abs(_log_curve(s) - settled).max()) for s in (sharpened[k], raw)]
        rows.append(ProductsRow(k, prepared.L - WEIGHT_DECAY, prepared.kappa, extra_term(prepared), *errors))
    return rows, sharpened[counts[-1]]


def settled_at(alphas: Array, betas: Array, dim: int, settle: float = 0.02) -> str:
    """A sentence that says where a run with early stopping would have ended, and its distance to the last curve."""
    settling = Settling(WEIGHT_DECAY, TYPICAL_STEPS, torch.float32, dim)
    last = _log_curve(_sharpened(alphas, betas, dim))
    for k in settling.step_counts(len(alphas)):
        if settling.moved(alphas[:k], betas[:k]) < settle:
            error = np.abs(_log_curve(_sharpened(alphas[:k], betas[:k], dim)) - last).max()
            return f"With settle={settle:g} the run ends after {k} products, {error:.3f} from the last curve."
    return f"With settle={settle:g} the run does not end early."


def _log_curve(spectrum: Spectrum) -> Array:
    return log_curve(spectrum, WEIGHT_DECAY, TYPICAL_STEPS)


def _sharpened(alphas: Array, betas: Array, dim: int) -> Spectrum:
    return Settling(WEIGHT_DECAY, TYPICAL_STEPS, torch.float32, dim).sharpened(alphas, betas).spectrum


def table_of(rows: list[ProductsRow]) -> str:
    """The rows in Markdown."""
    columns = [
        "products", "largest eigenvalue", "kappa", "extra term", "max abs ln(f/f_end)", "same, raw nodes",
    ]  # fmt: skip
    cells = [
        [
            f"{row.num_products:,}", f"{row.top:.2f}", f"{row.kappa:.3g}", f"{row.extra:.2f}",
            f"{row.sharpened_error:.3f}", f"{row.raw_error:.3f}",
        ]
        for row in rows
    ]  # fmt: skip
    return markdown_table(columns, cells)


def _published_sentence(published: Spectrum | None) -> list[str]:
    if published is None:
        return []
    reference = prepare(published, WEIGHT_DECAY)
    return [
        f"Published for this network, on another batch of images: largest eigenvalue"
        f" {reference.L - WEIGHT_DECAY:.2f}, kappa {reference.kappa:.3g}, extra term {extra_term(reference):.2f}."
    ]


def octaves_of(measured: Spectrum, published: Spectrum | None) -> str:
    """The share of every octave in Markdown, with the published shares if available."""
    ours, theirs = (_shares(spectrum) for spectrum in (measured, published))
    rows = [[f"{i}", ours.get(i, "-"), theirs.get(i, "-")] for i in sorted({*ours, *theirs})]
    return markdown_table(["octave i", "share measured here", "share published"], rows)


def _shares(spectrum: Spectrum | None) -> dict[int, str]:
    if spectrum is None:
        return {}
    groups = group(prepare(spectrum, WEIGHT_DECAY))
    return {int(i): f"{share:.3e}" for i, share in zip(groups.index, groups.share, strict=True)}
