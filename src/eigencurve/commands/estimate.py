"""``eigencurve estimate``: measure the Hessian spectrum of a model."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from eigencurve import _check
from eigencurve.commands import options
from eigencurve.commands.output import command_line, require_writable, show_json, write
from eigencurve.commands.shell import new_app
from eigencurve.commands.spectrum import noise_facts, start_facts
from eigencurve.hessian import (
    GaussNewtonOperator,
    HessianOperator,
    NoiseEstimate,
    PreconditionedOperator,
    SpectrumEstimate,
    StartEstimate,
    estimate_noise,
    estimate_spectrum,
    estimate_start,
    keep_freed_memory,
)
from eigencurve.hessian.operator import CurvatureOperator
from eigencurve.hessian.state_files import load_preconditioner, load_start_state
from eigencurve.planning.subject import USUAL_DECAY
from eigencurve.runs.origin import origin_here
from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum.files import SUFFIX_WORDS, SUFFIXES, spectrum_bytes
from eigencurve.spectrum.spectrum import prepare
from eigencurve.theory.stability import StabilityReport, largest_stable_rate, stability_report

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
        float | None,
        typer.Option(
            help="Weight decay of the training run that you want a schedule for. Default: that of --optimizer-state, "
            f"or {USUAL_DECAY:g}."
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help=f"Number of steps T of that training run. Default: {TYPICAL_STEPS:,}.", show_default=False),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(
            help="Learning rate of that training run, to compare the largest eigenvalue with its limit of stability. "
            "Default: that of --optimizer-state.",
            show_default=False,
        ),
    ] = None,
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
    optimizer_state: Annotated[
        Path | None,
        typer.Option(
            help="State of Adam, AdamW, RMSprop or Adagrad, saved by PyTorch, or .npz with the diagonal of its "
            "preconditioner. Everything is measured in its metric."
        ),
    ] = None,
    optimizer: Annotated[
        str | None, typer.Option(help="adam or adamw, if --optimizer-state was saved by PyTorch before 2.7.")
    ] = None,
    start_state: Annotated[
        Path | None,
        typer.Option(help="State of the model at the start of its run, to measure how far from the end it starts."),
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
      eigencurve estimate train:problem --noise --batch-size 128 --optimizer-state optimizer.pt --steps 10000
    """
    require_writable([output], SUFFIXES, force)
    _require_options(noise, batch_size, start_state, output)
    rate = None if lr is None else _check.positive("estimate", "lr", lr)
    budget = None if memory_budget is None else size_of(memory_budget)
    total = TYPICAL_STEPS if steps is None else steps
    keep_freed_memory()
    model, loss_fn, batches = load_problem(problem)
    patterns = parameters or None
    kind = GaussNewtonOperator if gauss_newton else HessianOperator
    plain = kind(model, loss_fn, batches, parameters=patterns, microbatch=microbatch, mode=mode)
    metric = _metric(optimizer_state, optimizer, model, plain)
    operator = plain if metric is None else plain.preconditioned_by(metric)
    begun = None if start_state is None else load_start_state(start_state, plain.named_parameters)
    found = estimate_spectrum(
        operator, num_steps, num_probes=num_probes, seed=seed, settle=settle if settle > 0 else None,
        weight_decay=_decay(operator) if weight_decay is None else weight_decay, total_steps=total,
        memory_budget=budget, checkpoint=checkpoint,
    )  # fmt: skip
    measured = start = None
    if noise and batch_size is not None:
        saved = _beside(checkpoint, "noise")
        measured = estimate_noise(operator, found, batch_size, seed=seed, memory_budget=budget, checkpoint=saved)
    if begun is not None:
        saved = _beside(checkpoint, "start")
        start = estimate_start(operator, (begun, model), found, memory_budget=budget, checkpoint=saved)
    content = _content(found, output.suffix.lower(), measured, start)
    stability = _stability(found, operator, metric, rate)
    summary = _Summary(found, measured, start, stability, steps)
    if as_json:
        show_json({"output": str(output), "dim": operator.dim, **summary.fields()})
    else:
        typer.echo(f"{operator.dim:,} parameters, {plain.num_examples:,} examples\n{summary}")
    write(output, content)
    if not as_json:
        used = 0.1 if stability is None else stability.lr
        typer.echo(f"next: eigencurve schedule {shlex.quote(str(output))} --steps {total} --lr {used:g}")


@dataclass(frozen=True)
class _Summary:
    """What was measured, for printing. ``steps`` is None if the number of steps is not given."""

    spectrum: SpectrumEstimate
    noise: NoiseEstimate | None
    start: StartEstimate | None
    stability: StabilityReport | None
    steps: int | None

    def fields(self) -> dict[str, Any]:
        """All facts as plain values, ready for JSON."""
        found, prepared = self.spectrum, prepare(self.spectrum.spectrum, self.spectrum.weight_decay)
        names = ("num_products", "num_distinct", "reason", "weight_decay", "seconds", "preconditioner", "total_steps")
        facts = {name: getattr(found, name) for name in names}
        facts |= {"L": prepared.L, "kappa": prepared.kappa, "stable_lr": largest_stable_rate(prepared.L)}
        facts |= {"steps_over_kappa": found.total_steps / prepared.kappa}
        if self.stability is not None:
            facts |= {"stability": {**vars(self.stability), "is_stable": self.stability.is_stable}}
        facts |= {} if self.noise is None else {"noise": noise_facts(self.noise)}
        return facts | ({} if self.start is None else {"start": start_facts(self.start)})

    def __str__(self) -> str:
        facts = self.fields()
        which = "" if self.steps is not None else ", the default; pass --steps"
        lines = [
            str(self.spectrum),
            "L = {L:.4g}, kappa = {kappa:.4g}, 2/L = {stable_lr:.4g}".format(**facts),
            f"T/kappa = {facts['steps_over_kappa']:.3g} (T = {self.spectrum.total_steps:,}{which})",
        ]
        titles = {"stability": self.stability, "gradient noise": self.noise, "start": self.start}
        return "\n".join(lines + [f"{title}: {part}" for title, part in titles.items() if part is not None])


def _metric(path: Path | None, kind: str | None, model: Any, operator: CurvatureOperator) -> Any:
    """What preconditions the operator: the optimizer or the diagonal of the file, or None without a file."""
    if path is not None:
        return load_preconditioner(path, model, operator.named_parameters, kind)
    if kind is not None:
        raise ValueError("'--optimizer' needs '--optimizer-state', the file of its state.")
    return None


def _decay(operator: CurvatureOperator | PreconditionedOperator) -> float:
    """The weight decay to add to every eigenvalue, which must be positive.

    If the products contain the decay, nothing should be added. Then it only sets the resolution near zero, and a
    hundredth of the smallest decay changes no eigenvalue by more than 1 %.
    """
    if not isinstance(operator, PreconditionedOperator):
        return USUAL_DECAY
    return operator.eigenvalue_shift or operator.smallest_decay / 100 or USUAL_DECAY


def _stability(
    found: SpectrumEstimate, operator: CurvatureOperator | PreconditionedOperator, metric: Any, lr: float | None
) -> StabilityReport | None:
    """The largest eigenvalue compared with its limit at the learning rate; None if the rate is not known."""
    group = metric.param_groups[0] if hasattr(metric, "param_groups") else {}
    rate = float(group.get("lr", 0.0)) if lr is None else lr
    if lr is None and rate <= 0:  # not given, or the end of a schedule
        return None
    if "betas" in group and isinstance(operator, PreconditionedOperator):
        decay, beta1 = operator.eigenvalue_shift, float(group["betas"][0])
        return stability_report(found.spectrum.L, rate, beta1, decay)
    # The limit 2(1+m) = ηλ is symmetric in the rate and the eigenvalue.
    shift = 0.0 if isinstance(operator, PreconditionedOperator) else found.weight_decay
    return StabilityReport(found.spectrum.L + shift, rate, largest_stable_rate(rate, float(group.get("momentum", 0.0))))


def _beside(checkpoint: Path | None, what: str) -> Path | None:
    """The checkpoint of the noise or the start, next to that of the spectrum."""
    return None if checkpoint is None else Path(f"{checkpoint}.{what}")


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


def _require_options(noise: bool, batch_size: int | None, start_state: Path | None, output: Path) -> None:
    if noise != (batch_size is not None):
        raise ValueError("'--noise' and '--batch-size' must be given together.")
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"'--batch-size' must be >= 1, got {batch_size}.")
    if output.suffix.lower() == ".txt" and (noise or start_state is not None):
        raise ValueError(
            "'--output' must end in .npz or .json with --noise or --start-state: a text file cannot hold them."
        )


def _content(found: SpectrumEstimate, suffix: str, noise: NoiseEstimate | None, start: StartEstimate | None) -> bytes:
    if suffix == ".txt":
        return spectrum_bytes(found.spectrum, suffix)
    versions = ", ".join(f"{name} {number}" for name, number in origin_here().versions.items())
    return spectrum_bytes(found.spectrum, suffix, found.measurement(f"{command_line()} ({versions})"), noise, start)


def _kind(value: object) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
