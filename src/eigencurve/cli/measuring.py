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
    estimate_start,
)
from eigencurve.hessian.checkpoint import saved_steps
from eigencurve.hessian.curvature import CurvatureOperator
from eigencurve.hessian.estimate import run_estimate
from eigencurve.hessian.loop import Interrupted
from eigencurve.hessian.settings import EstimateSettings
from eigencurve.runs.origin import origin_here
from eigencurve.spectrum.files import spectrum_bytes

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


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
    operator: CurvatureOperator | PreconditionedOperator,
    settings: EstimateSettings,
    batch_size: int | None = None,
    start: tuple[Any, Any] | None = None,
) -> Measured:
    """Measure the spectrum and, if asked for, the noise and the start, with a progress bar on a terminal.

    Args:
        operator: Hessian of the model, or one that wraps it.
        settings: Settings of the spectrum. The noise and the start have their own checkpoints next to it.
        batch_size: Batch size of the run; None does not measure the noise.
        start: State of the model at the start of its run, and the model; None does not measure the start.
    """
    checkpoint = None if settings.checkpoint is None else Path(settings.checkpoint)
    budget, noise, initial_error = settings.memory_budget, None, None
    with _resumable(checkpoint):
        estimate = run_estimate(operator, settings)
    if batch_size is not None:
        saved = checkpoint_of(checkpoint, "noise")
        with _resumable(saved):
            noise = estimate_noise(
                operator, estimate, batch_size, seed=settings.seed, memory_budget=budget, checkpoint=saved
            )
    if start is not None:
        saved = checkpoint_of(checkpoint, "start")
        with _resumable(saved):
            initial_error = estimate_start(operator, start, estimate, memory_budget=budget, checkpoint=saved)
    return Measured(estimate, noise, initial_error)


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


def checkpoint_of(checkpoint: Path | None, quantity: str) -> Path | None:
    """The checkpoint of the noise or the start, next to the checkpoint of the spectrum."""
    return None if checkpoint is None else companion(checkpoint, f".{quantity}")


def size_of(text: str) -> int:
    """Parse a number of bytes such as ``2GB``, ``500 MB``, ``1.5GiB`` or ``1000000``.

    >>> size_of("1.5GiB"), size_of("2GB")
    (1610612736, 2000000000)
    """
    size = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]i?)?b?\s*", text.lower())
    if size is None:
        raise ValueError(f"--memory-budget must be a size such as 2GB, got {text!r}.")
    return int(float(size[1]) * UNITS[size[2] or ""])
