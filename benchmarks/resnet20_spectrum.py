"""The spectrum of a trained ResNet-20, errors along and across probes: ``python -m benchmarks.resnet20_spectrum``."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from eigencurve import Spectrum, extra_term
from eigencurve.hessian import (
    HessianOperator,
    Settling,
    SpectrumEstimate,
    estimate_noise,
    estimate_spectrum,
    keep_freed_memory,
    log_curve,
    probe_error,
)
from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum import group, prepare
from eigencurve.spectrum.files import spectrum_bytes
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.octaves import Octaves
from eigencurve.spectrum.quadrature import gauss_quadrature
from paper.arrays import Array
from paper.data.folder import RESNET_CIFAR10, published_spectrum
from paper.engine.request import Request
from paper.models.resnet import resnet20_problem
from paper.page import ResultsPage, made_by_line, markdown_table

SEED = 0
WEIGHT_DECAY = 5e-4
NUM_IMAGES = 200
NUM_PROBES = 3
COUNTS = (60, 100, 150, 250)
SETTLE = 0.02
# The gradient noise: batch size, number of examples for the gradients, sign vectors, and products for each of them.
BATCH_SIZE, NUM_EXAMPLES, NUM_SIGNS, NUM_STEPS = 128, 2000, 4, 60
MICROBATCH = 200


@dataclass(frozen=True)
class ProbeRow:
    """The estimate of one probe after some number of products. All errors are the largest |ln f/g| of schedules."""

    num_products: int  # number of products
    probe: int  # index of the probe
    num_counted: int  # number of counted eigenvalues
    extra: float  # extra term
    moved: float  # change over the last quarter of the products, which the rule for stopping sees
    along: float  # distance to the schedule of the same probe after all products
    predicted: float  # distance between two probes that this probe alone predicts
    actual: float  # largest distance to another probe after the same number of products
    weighted: float  # the same if every eigenvalue is weighted by the probe
    raw: float  # the same for the raw Lanczos nodes
    reference: float  # distance to the mean of all probes after all products
    weighted_reference: float  # the same if every eigenvalue is weighted by the probe


def make(request: Request) -> ResultsPage:
    """Measure the spectrum and the noise; unfinished runs resume from their checkpoints next to the store."""
    keep_freed_memory()
    operator, examples = resnet20_operator(request.data), resnet20_examples(request.data)
    estimate = estimate_spectrum(
        operator, COUNTS[-1], num_probes=NUM_PROBES, seed=SEED, settle=None, weight_decay=WEIGHT_DECAY,
        checkpoint=request.checkpoints / "resnet20_spectrum.npz",
    )  # fmt: skip
    noise, same = (
        estimate_noise(
            operator, estimate, BATCH_SIZE, examples=source, num_samples=count, num_products=NUM_STEPS, seed=SEED,
            checkpoint=request.checkpoints / f"resnet20_{name}.npz",
        )
        for name, source, count in (("noise", examples, NUM_SIGNS), ("noise_same", None, 1))
    )  # fmt: skip
    try:
        published = published_spectrum(request.data, RESNET_CIFAR10)
    except FileNotFoundError:
        published = None
    record = estimate.measurement(f"python -m benchmarks.resnet20_spectrum, seed {SEED}")
    # A resumed run does not know how long it took in all.
    record, noise = dataclasses.replace(record, seconds=0.0), dataclasses.replace(noise, seconds=0.0)
    content = spectrum_bytes(estimate.spectrum, ".npz", record, noise)
    body = "\n\n".join(_parts(estimate, noise, same, published))
    files = {"resnet20_spectrum.npz": content}
    return ResultsPage("resnet20_spectrum", "The spectrum of a trained ResNet-20", body, files=files)


def resnet20_operator(data: Path | None = None) -> HessianOperator:
    """The Hessian of the trained ResNet-20 on the first images.

    Raises:
        FileNotFoundError: The weights or the images are missing.
    """
    return HessianOperator(*resnet20_problem(data, NUM_IMAGES))


def resnet20_examples(data: Path | None = None) -> HessianOperator:
    """The same loss on more images, for its gradients; its products are not checked."""
    return HessianOperator(*resnet20_problem(data, NUM_EXAMPLES), microbatch=MICROBATCH, check=False)


def rows_of(estimate: SpectrumEstimate) -> list[ProbeRow]:
    """The errors of every probe after each number of products."""
    dim = estimate.spectrum.dim or 0
    runs = list(zip(estimate.alphas, estimate.betas, strict=True))
    count_all, weigh_all = (_settling(known) for known in (dim, None))
    reference, last = _curve(estimate.spectrum), [count_all.curve(*run) for run in runs]
    rows = []
    for k in [k for k in COUNTS if k < len(runs[0][0])] + [len(runs[0][0])]:
        blocks = [(alphas[:k], betas[:k]) for alphas, betas in runs]
        probes = [count_all.sharpened(*block) for block in blocks]
        curves = [count_all.curve(*block) for block in blocks]
        weighted = [weigh_all.curve(*block) for block in blocks]
        raw = [_curve(Spectrum(*gauss_quadrature(*block))) for block in blocks]
        for i, probe in enumerate(probes):
            actual, weighted_actual, raw_actual = (_to_others(i, each) for each in (curves, weighted, raw))
            rows.append(
                ProbeRow(
                    num_products=k,
                    probe=i,
                    num_counted=len(probe.counted),
                    extra=extra_term(prepare(probe.spectrum, WEIGHT_DECAY)),
                    moved=count_all.schedule_change(*blocks[i]),
                    along=_distance(curves[i], last[i]),
                    predicted=probe_error([probe], WEIGHT_DECAY, TYPICAL_STEPS, dim),
                    actual=actual,
                    weighted=weighted_actual,
                    raw=raw_actual,
                    reference=_distance(curves[i], reference),
                    weighted_reference=_distance(weighted[i], reference),
                )
            )
    return rows


def settled_rows(estimate: SpectrumEstimate, settle: float = SETTLE) -> list[list[str]]:
    """Where each probe would have stopped, with its errors; text for a table."""
    settling, reference = _settling(estimate.spectrum.dim), _curve(estimate.spectrum)
    rows = []
    for i, (alphas, betas) in enumerate(zip(estimate.alphas, estimate.betas, strict=True)):
        counts = (
            k for k in settling.step_counts(len(alphas)) if settling.schedule_change(alphas[:k], betas[:k]) < settle
        )
        k = next(counts, len(alphas))
        probe, curve = settling.sharpened(alphas[:k], betas[:k]), settling.curve(alphas[:k], betas[:k])
        errors = (
            settling.schedule_change(alphas[:k], betas[:k]), _distance(curve, settling.curve(alphas, betas)),
            probe_error([probe], WEIGHT_DECAY, TYPICAL_STEPS, estimate.spectrum.dim or 0), _distance(curve, reference),
        )  # fmt: skip
        rows.append([f"{i}", f"{k}", *map(_three_digits, errors)])
    return rows


def _parts(
    estimate: SpectrumEstimate, noise: NoiseEstimate, same: NoiseEstimate, published: Spectrum | None
) -> list[str]:
    rows, longest = rows_of(estimate), len(estimate.alphas[0])
    prepared = prepare(estimate.spectrum, WEIGHT_DECAY)
    return [
        f"The Hessian of the mean loss on the first {NUM_IMAGES} training images (lossless), in eval mode."
        f" {estimate.num_probes} random probes of {longest} products each gave {estimate.num_distinct:,} distinct nodes"
        f" (seed {SEED}, {torch.get_num_threads()} threads, {platform.machine()}). The mean of all probes has largest"
        f" eigenvalue {prepared.L - WEIGHT_DECAY:.2f}, kappa {prepared.kappa:.3g} and extra term"
        f" {extra_term(prepared):.2f}, and counts {len(estimate.counted)} eigenvalues one by one."
        f"{_published_sentence(published)}",
        f"All errors are the largest abs ln(f/g) between two schedules of T = {TYPICAL_STEPS:,} steps with weight decay"
        f" {WEIGHT_DECAY:g}.",
        "## Errors along one probe and across probes",
        f"*Along* compares a probe with the same probe after {longest} products. *Across* compares it with other probes"
        f" after the same number of products. The reference is the mean of all probes after {longest} products. Every"
        " entry is the largest one over the probes. Without counting, every eigenvalue is weighted by the probe.",
        overview_table(rows),
        "## Predicted and actual errors of each probe",
        "A single probe predicts both errors: the one along the probe is what the schedule moved over the last quarter"
        " of the products, and the one across probes follows from the standard errors of the octaves"
        " (`estimate.schedule_change` and `estimate.error_between_probes`).",
        probe_table(rows),
        f"With `settle={SETTLE:g}` the probes stop as follows.",
        markdown_table(
            ["probe", "products", "moved", "along", "across, predicted", "to the reference"], settled_rows(estimate)
        ),
        "## Shares of the octaves",
        octave_table(estimate.octaves, published),
        "## Gradient noise",
        noise_text(noise, same),
        noise_table(noise, same),
    ]


def overview_table(rows: Sequence[ProbeRow]) -> str:
    """The largest error over the probes after each number of products, in Markdown."""
    columns = [
        "products", "eigenvalues counted", "extra term", "along", "across", "to the reference", "across, not counted",
        "to the reference, not counted", "across, raw nodes",
    ]  # fmt: skip
    cells = []
    for k in sorted({row.num_products for row in rows}):
        chosen = [row for row in rows if row.num_products == k]
        errors = np.max([(r.along, r.actual, r.reference, r.weighted, r.weighted_reference, r.raw) for r in chosen], 0)
        counted, extra = _range(f"{r.num_counted}" for r in chosen), _range(f"{r.extra:.2f}" for r in chosen)
        cells.append([f"{k}", counted, extra, *map(_three_digits, errors)])
    return markdown_table(columns, cells)


def probe_table(rows: Sequence[ProbeRow]) -> str:
    """The predicted and actual errors of each probe, in Markdown."""
    columns = [
        "products", "probe", "moved", "along, actual", "across, predicted", "across, actual", "to the reference",
        "across, not counted",
    ]  # fmt: skip
    cells = [
        [
            f"{r.num_products}", f"{r.probe}",
            *map(_three_digits, (r.moved, r.along, r.predicted, r.actual, r.reference, r.weighted)),
        ]
        for r in rows
    ]  # fmt: skip
    return markdown_table(columns, cells)


def octave_table(octaves: Octaves, published: Spectrum | None) -> str:
    """The share of every octave with its standard error in Markdown, with the published shares if available."""
    measured = zip(octaves.index.tolist(), octaves.share.tolist(), octaves.error.tolist(), strict=True)
    # The shares of counted eigenvalues have no error beyond rounding.
    ours = {i: [f"{share:.3e}", f"{error:.1e}" if error > 1e-9 * share else "0"] for i, share, error in measured}
    theirs = {} if published is None else _shares(published)
    rows = [[f"{i}", *ours.get(i, ["-", "-"]), theirs.get(i, "-")] for i in sorted({*ours, *theirs})]
    return markdown_table(["octave i", "share measured here", "standard error", "share published"], rows)


def noise_text(noise: NoiseEstimate, same: NoiseEstimate) -> str:
    """A paragraph on the gradient noise, measured with more examples than the Hessian and with the same ones."""
    levels = "; ".join(
        f"{known.num_examples:,} images and {known.num_samples} sign vector{'s' if known.num_samples > 1 else ''} give"
        f" σ² = {known.sigma2:.2e} ± {known.sigma2_error:.1e}, γ = {known.exponent:.2f} ± {known.exponent_error:.2f},"
        f" tr C = {known.trace:.0f} for one example"
        for known in (noise, same)
    )
    return (
        f"The noise of batches of {noise.batch_size} in the octaves of the Hessian of {NUM_IMAGES} images, with"
        f" {NUM_STEPS} products for each sign vector and for the mean gradient: {levels}. The covariance follows about"
        f" C ∝ H^γ. The shipped spectrum has the noise of {noise.num_examples:,} images. In a trained network, few"
        " images have most of the gradient noise, so σ² depends on whether they are in the sample: compare the columns."
    )


def noise_table(noise: NoiseEstimate, same: NoiseEstimate) -> str:
    """The noise of every octave, in Markdown."""
    octaves = noise.octaves
    columns = ["octave i", "eigenvalues", *(f"σ², {known.num_examples:,} images" for known in (noise, same))]
    levels = [
        [f"{level:.2e} ± {error:.1e}" for level, error in zip(known.sigma2, known.error, strict=True)]
        for known in (octaves, same.octaves)
    ]
    rows = zip(octaves.index, octaves.num_eigenvalues, *levels, strict=True)
    return markdown_table(columns, [[f"{i}", f"{num:,.0f}", *text] for i, num, *text in rows])


def _settling(dim: int | None) -> Settling:
    return Settling(WEIGHT_DECAY, TYPICAL_STEPS, torch.float32, dim)


def _curve(spectrum: Spectrum) -> Array:
    return log_curve(spectrum, WEIGHT_DECAY, TYPICAL_STEPS)


def _distance(first: Array, second: Array) -> float:
    return float(np.abs(first - second).max())


def _to_others(index: int, curves: Sequence[Array]) -> float:
    """The largest distance from one curve to the others; 0 if there are none."""
    return max((_distance(curves[index], other) for i, other in enumerate(curves) if i != index), default=0.0)


def _range(words: Iterable[str]) -> str:
    ends = sorted({*words})
    return ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"


def _three_digits(value: float) -> str:
    return f"{value:.3f}"


def _published_sentence(published: Spectrum | None) -> str:
    if published is None:
        return ""
    known = prepare(published, WEIGHT_DECAY)
    return (
        " Published for this network, on another batch of images: largest eigenvalue"
        f" {known.L - WEIGHT_DECAY:.2f}, kappa {known.kappa:.3g}, extra term {extra_term(known):.2f}."
    )


def _shares(spectrum: Spectrum) -> dict[int, str]:
    groups = group(prepare(spectrum, WEIGHT_DECAY))
    return {int(i): f"{share:.3e}" for i, share in zip(groups.index, groups.share, strict=True)}


if __name__ == "__main__":
    make(Request()).write(Path("results"), made_by_line("python -m benchmarks.resnet20_spectrum"))
