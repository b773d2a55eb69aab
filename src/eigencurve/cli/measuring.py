"""Measure a model for ``estimate`` and ``plan``: run Lanczos with a checkpoint, and encode the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from eigencurve._files import companion
from eigencurve.cli.output import command_line
from eigencurve.hessian import (
    NoiseEstimate,
    PreconditionedOperator,
    SpectrumEstimate,
    StartEstimate,
    estimate_noise,
    estimate_spectrum,
    estimate_start,
)
from eigencurve.hessian.checkpoint import saved_steps
from eigencurve.hessian.curvature import CurvatureOperator
from eigencurve.hessian.estimate import Interrupted
from eigencurve.planning.from_operator import decay_of
from eigencurve.runs.origin import origin_here
from eigencurve.spectrum.files import spectrum_bytes

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@dataclass(frozen=True)
class MeasuringSettings:
    """Options of a measurement; see :func:`eigencurve.hessian.estimate_spectrum`.

    Attributes:
        num_steps, num_probes, seed, settle, weight_decay, total_steps, memory_budget: Settings of the spectrum.
        checkpoint: File to save progress to; the noise and the start have their own files next to it.
        batch_size: Batch size of the run, to measure the gradient noise; None does not measure it.
    """

    num_steps: int
    total_steps: int
    num_probes: int = 1
    seed: int = 0
    settle: float | None = 0.02
    weight_decay: float | None = None
    memory_budget: int | None = None
    checkpoint: Path | None = None
    batch_size: int | None = None


@dataclass(frozen=True)
class Measured:
    """What was measured on a model."""

    spectrum: SpectrumEstimate
    noise: NoiseEstimate | None
    start: StartEstimate | None

    def content(self, suffix: str) -> bytes:
        """The file with everything that the format of ``suffix`` can hold."""
        if suffix == ".txt":
            return spectrum_bytes(self.spectrum.spectrum, suffix)
        versions = ", ".join(f"{name} {number}" for name, number in origin_here().versions.items())
        record = self.spectrum.measurement(f"{command_line()} ({versions})")
        return spectrum_bytes(self.spectrum.spectrum, suffix, record, self.noise, self.start)


def measure(
    operator: CurvatureOperator | PreconditionedOperator, settings: MeasuringSettings, start: tuple[Any, Any] | None
) -> Measured:
    """Measure the spectrum and, if asked for, the noise and the start, with a progress bar on a terminal.

    Args:
        operator: Hessian of the model, or one that wraps it.
        settings: Options of the measurement.
        start: State of the model at the start of its run, and the model; None does not measure the start.
    """
    decay = decay_of(operator) if settings.weight_decay is None else settings.weight_decay
    budget, noise, begun = settings.memory_budget, None, None
    with _resumable(settings.checkpoint):
        found = estimate_spectrum(
            operator, settings.num_steps, num_probes=settings.num_probes, seed=settings.seed, settle=settings.settle,
            weight_decay=decay, total_steps=settings.total_steps, memory_budget=budget, checkpoint=settings.checkpoint,
        )  # fmt: skip
    if settings.batch_size is not None:
        saved = _beside(settings.checkpoint, "noise")
        with _resumable(saved):
            noise = estimate_noise(
                operator, found, settings.batch_size, seed=settings.seed, memory_budget=budget, checkpoint=saved
            )
    if start is not None:
        saved = _beside(settings.checkpoint, "start")
        with _resumable(saved):
            begun = estimate_start(operator, start, found, memory_budget=budget, checkpoint=saved)
    return Measured(found, noise, begun)


@contextmanager
def _resumable(checkpoint: Path | None) -> Iterator[None]:
    """Say where a run resumes, and after Ctrl-C how to resume it, in the words of the command line."""
    if checkpoint is not None and (done := saved_steps(checkpoint)):
        typer.echo(f"resuming from step {done} of {checkpoint}", err=True)
    try:
        yield
    except Interrupted as error:
        remedy = "Run the same command again to resume."
        if error.checkpoint is None:
            remedy = "Pass --checkpoint FILE to be able to resume after Ctrl-C."
        raise KeyboardInterrupt(f"{error.progress}. {remedy}") from None


def _beside(checkpoint: Path | None, what: str) -> Path | None:
    """The checkpoint of the noise or the start, next to that of the spectrum."""
    return None if checkpoint is None else companion(checkpoint, f".{what}")


def size_of(text: str) -> int:
    """Parse a number of bytes such as ``2GB``, ``500 MB``, ``1.5GiB`` or ``1000000``.

    >>> size_of("1.5GiB"), size_of("2GB")
    (1610612736, 2000000000)
    """
    found = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]i?)?b?\s*", text.lower())
    try:
        return int(float(found[1]) * UNITS[found[2] or ""])  # type: ignore[index]
    except (TypeError, ValueError):
        raise ValueError(f"--memory-budget must be a size such as 2GB, got {text!r}.") from None
