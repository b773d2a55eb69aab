"""``eigencurve estimate``: measure the Hessian spectrum of a model."""

from __future__ import annotations

import importlib
import math
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from eigencurve.commands import options
from eigencurve.commands.output import command_line, require_writable, show_json, write
from eigencurve.commands.shell import new_app
from eigencurve.hessian import (
    GaussNewtonOperator,
    HessianOperator,
    NoiseEstimate,
    SpectrumEstimate,
    estimate_noise,
    estimate_spectrum,
    keep_freed_memory,
)
from eigencurve.runs.origin import origin_here
from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum.files import SUFFIX_WORDS, SUFFIXES, spectrum_bytes

app = new_app()
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@app.command()
def estimate(
    problem: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION", help="Function without arguments that returns (model, loss_fn, batches)."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help=f"File to write ({SUFFIX_WORDS}).")] = Path(
        "spectrum.npz"
    ),
    num_steps: Annotated[
        int, typer.Option(help="Maximum number of Lanczos steps per probe; each is one Hessian product.")
    ] = 250,
    num_probes: Annotated[
        int, typer.Option(help="Number of random probes to average; one is enough for a large model.")
    ] = 1,
    seed: Annotated[int, typer.Option(help="Random seed of the probes.")] = 0,
    settle: Annotated[
        float, typer.Option(help="Stop when the schedule changes by less than this fraction; 0 runs all steps.")
    ] = 0.02,
    weight_decay: Annotated[
        float, typer.Option(help="Weight decay of the training run that you want a schedule for.")
    ] = 5e-4,
    steps: Annotated[int, typer.Option(help="Number of steps of that training run; used by --settle.")] = TYPICAL_STEPS,
    memory_budget: Annotated[
        str | None,
        typer.Option(help="Memory for all Lanczos vectors, such as 2GB. Default: a quarter of the free memory."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="File to save progress to, and to resume from after Ctrl-C or a crash.")
    ] = None,
    gauss_newton: Annotated[
        bool, typer.Option("--gauss-newton", help="Measure the Gauss-Newton matrix instead of the Hessian.")
    ] = False,
    parameters: Annotated[
        list[str] | None, typer.Option(help="Measure only parameters with names like 'layer3.*'. Can be repeated.")
    ] = None,
    microbatch: Annotated[int | None, typer.Option(help="Maximum number of examples to process at a time.")] = None,
    mode: Annotated[
        str, typer.Option(help="Mode of the model during the measurement: eval, train, or keep (unchanged).")
    ] = "eval",
    noise: Annotated[
        bool, typer.Option("--noise", help="Also measure the gradient noise in every octave; needs --batch-size.")
    ] = False,
    batch_size: Annotated[
        int | None, typer.Option(help="Batch size of the training run, for --noise.", show_default=False)
    ] = None,
    as_json: options.AsJson = False,
    force: options.Force = False,
) -> None:
    """Measure the Hessian spectrum of a PyTorch model.

    MODULE is imported with the current folder on Python's path. The model should be trained, at least partly. A few
    hundred examples are enough. loss_fn(model(x), y) must return the mean over the batch. batches is a tuple of
    tensors (x, y), a list of such pairs, or a DataLoader.

    \b
    Examples:
      eigencurve estimate my_project.training:problem -o spectrum.npz
      eigencurve estimate train:problem --checkpoint run.npz --memory-budget 2GB --weight-decay 1e-4
      eigencurve estimate train:problem --noise --batch-size 128
    """
    require_writable([output], SUFFIXES, force)
    _require_noise_options(noise, batch_size, output)
    budget = None if memory_budget is None else size_of(memory_budget)
    keep_freed_memory()
    model, loss_fn, batches = load_problem(problem)
    patterns = parameters or None
    kind = GaussNewtonOperator if gauss_newton else HessianOperator
    operator = kind(model, loss_fn, batches, parameters=patterns, microbatch=microbatch, mode=mode)
    limit = settle if settle > 0 else None
    found = estimate_spectrum(
        operator, num_steps, num_probes=num_probes, seed=seed, settle=limit, weight_decay=weight_decay,
        total_steps=steps, memory_budget=budget, checkpoint=checkpoint,
    )  # fmt: skip
    measured = None
    if noise and batch_size is not None:
        saved = None if checkpoint is None else Path(f"{checkpoint}.noise")
        measured = estimate_noise(operator, found, batch_size, seed=seed, memory_budget=budget, checkpoint=saved)
    content = _content(found, output.suffix.lower(), measured)
    if as_json:
        facts = ("num_products", "num_distinct", "reason", "weight_decay", "seconds")
        shown = {"output": str(output), "dim": operator.dim, **{name: getattr(found, name) for name in facts}}
        show_json(shown if measured is None else shown | {"noise": _noise_facts(measured)})
    else:
        typer.echo(f"{operator.dim:,} parameters, {operator.num_examples:,} examples\n{found}")
        if measured is not None:
            typer.echo(f"gradient noise: {measured}")
    write(output, content)
    if not as_json:
        typer.echo(f"next: eigencurve schedule {shlex.quote(str(output))} --steps {steps} --lr 0.1")


def load_problem(word: str) -> tuple[Any, Any, Any]:
    """Import ``module:function`` with the current folder on the path, and return what the function returns."""
    module_name, colon, name = word.partition(":")
    if not (module_name and colon and name):
        raise ValueError(f"'MODULE:FUNCTION' must look like my_project.training:problem, got {word!r}.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.startswith(error.name):
            raise ValueError(f"no module named {error.name!r} in the current folder or on Python's path.") from None
        raise
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"module {module_name!r} has no function {name!r}.")
    try:
        made = function()
    except Exception as error:
        raise RuntimeError(
            f"{word} failed with {type(error).__name__}: {error} (pass --debug for the traceback)"
        ) from error
    if not isinstance(made, tuple) or len(made) != 3:
        raise ValueError(f"{word} must return (model, loss_fn, batches), got {_kind(made)}.")
    return made


def size_of(text: str) -> int:
    """Parse a number of bytes such as ``2GB``, ``500 MB``, ``1.5GiB`` or ``1000000``.

    >>> size_of("1.5GiB"), size_of("2GB")
    (1610612736, 2000000000)
    """
    found = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]i?)?b?\s*", text.lower())
    try:
        return int(float(found[1]) * UNITS[found[2] or ""])  # type: ignore[index]
    except (TypeError, ValueError):
        raise ValueError(f"'--memory-budget' must be a size such as 2GB, got {text!r}.") from None


def _require_noise_options(noise: bool, batch_size: int | None, output: Path) -> None:
    if noise != (batch_size is not None):
        raise ValueError("'--noise' and '--batch-size' must be given together.")
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"'--batch-size' must be >= 1, got {batch_size}.")
    if noise and output.suffix.lower() == ".txt":
        raise ValueError("'--output' must end in .npz or .json with --noise: a text file cannot hold the noise.")


def _noise_facts(noise: NoiseEstimate) -> dict[str, Any]:
    names = ("sigma2", "sigma2_error", "exponent", "exponent_error", "trace", "trace_hc", "batch_size", "num_products")
    size = noise.critical_batch_size
    facts = {name: getattr(noise, name) for name in names} | {"critical_batch_size": size}
    return {name: value if math.isfinite(value) else None for name, value in facts.items()}


def _content(found: SpectrumEstimate, suffix: str, noise: NoiseEstimate | None) -> bytes:
    if suffix == ".txt":
        return spectrum_bytes(found.spectrum, suffix)
    versions = ", ".join(f"{name} {number}" for name, number in origin_here().versions.items())
    return spectrum_bytes(found.spectrum, suffix, found.measurement(f"{command_line()} ({versions})"), noise)


def _kind(value: object) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
