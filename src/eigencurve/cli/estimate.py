"""``eigencurve estimate``: measure the Hessian spectrum of a model."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eigencurve import _check
from eigencurve.cli import options
from eigencurve.cli.output import require_writable, show_json, warn, write
from eigencurve.cli.shell import new_app
from eigencurve.cli.sources import load_problem, require_problem
from eigencurve.cli.spectrum import noise_facts, start_facts
from eigencurve.planning.result import OPTIMIZERS
from eigencurve.planning.warnings import RateLimit, rate_limit, require_plausible, spectrum_warnings
from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum.files import SUFFIX_WORDS, SUFFIXES
from eigencurve.spectrum.source import USUAL_DECAY, SpectrumSource
from eigencurve.spectrum.spectrum import prepare
from eigencurve.theory.stability import StabilityReport, largest_stable_rate, stability_report

if TYPE_CHECKING:
    from eigencurve.cli.measuring import Measured
    from eigencurve.hessian import PreconditionedOperator, SpectrumEstimate
    from eigencurve.hessian.curvature import CurvatureOperator

app = new_app()


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
    num_products: Annotated[int, typer.Option(help="Maximum number of Hessian products per probe.")] = 250,
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

    An estimate that has not settled after --num-products is written too, with exit code 0, a warning, and the command
    that continues it; --json has "settled": false. With --checkpoint and one probe, that command resumes where this
    one ended.

    \b
    Examples:
      eigencurve estimate my_project.training:problem -o spectrum.npz
      eigencurve estimate train:problem --checkpoint run.npz --memory-budget 2GB --weight-decay 1e-4
      eigencurve estimate train:problem --noise --batch-size 128
      eigencurve estimate train:problem --noise --batch-size 128 --optimizer-state optimizer.pt --steps 10000
    """
    # These import PyTorch, which the help does not need.
    from eigencurve.cli.measuring import measure, size_of
    from eigencurve.hessian import GaussNewtonOperator, HessianOperator, keep_freed_memory
    from eigencurve.hessian.settings import EstimateSettings
    from eigencurve.hessian.state_files import load_start_state
    from eigencurve.planning.spectrum import decay_of

    require_problem(problem)
    _require_options(noise, batch_size, start_state, output)
    rate = None if lr is None else _check.positive("estimate", "lr", lr)
    require_plausible("estimate", optimizer if optimizer in OPTIMIZERS else None, lr=rate)
    total = TYPICAL_STEPS if steps is None else _check.whole("estimate", "steps", steps, minimum=1)
    budget = None if memory_budget is None else size_of(memory_budget)
    require_writable([output], SUFFIXES, force)
    keep_freed_memory()
    model, loss_fn, batches = load_problem(problem)
    kind = GaussNewtonOperator if gauss_newton else HessianOperator
    plain = kind(model, loss_fn, batches, parameters=parameters or None, microbatch=microbatch, mode=mode)
    metric = _metric(optimizer_state, optimizer, model, plain)
    operator = plain if metric is None else plain.preconditioned_by(metric)
    begun = None if start_state is None else load_start_state(start_state, plain.named_parameters)
    decay = decay_of(operator) if weight_decay is None else weight_decay
    settings = EstimateSettings(
        num_products, num_probes, seed, settle if settle > 0 else None, decay, total, budget, checkpoint
    )
    measured = measure(operator, settings, batch_size, None if begun is None else (begun, model))
    write(output, measured.content(output.suffix.lower()))  # first: a summary of negative curvature alone is an error
    stability = _stability(measured.spectrum, operator, metric, rate)
    limit = _limit(measured.spectrum, metric)
    if as_json:
        show_json({"output": str(output), "dim": operator.dim, **_facts(measured, stability, limit)})
    else:
        typer.echo(f"{operator.dim:,} parameters, {plain.num_examples:,} examples")
        typer.echo(_text(measured, stability, limit, is_usual=steps is None))
    warn(spectrum_warnings(_subject(measured.spectrum), steps))
    if not as_json:
        more = num_probes == 1 and checkpoint is not None
        used, unsettled = _rate(stability), measured.spectrum.warning
        typer.echo(f"next: {_continued(num_products, more) if unsettled else _plan(output, total, used)}")


def _continued(num_products: int, resumes: bool) -> str:
    """The command line of this process with twice as many steps."""
    words = sys.argv[1:]
    names = ("--num-products", "--num-steps")
    given = next((place for place, word in enumerate(words) if word.startswith(names)), None)
    if given is not None:
        del words[given : given + (1 if "=" in words[given] else 2)]
    words += ["--num-products", str(2 * num_products), *(() if "--force" in words else ("--force",))]
    return shlex.join(["eigencurve", *words]) + ("  (resumes from the checkpoint)" if resumes else "")


def _plan(output: Path, total: int, lr: float | None) -> str:
    return f"eigencurve plan {shlex.quote(str(output))} --steps {total}" + ("" if lr is None else f" --lr {lr:g}")


def _subject(estimated: SpectrumEstimate) -> SpectrumSource:
    return SpectrumSource("measured", estimated.spectrum, estimated.weight_decay, estimated)


def _group(metric: Any) -> dict[str, Any]:
    """The settings of the optimizer that was saved, if there is one."""
    return dict(metric.param_groups[0]) if hasattr(metric, "param_groups") else {}


def _rate(stability: StabilityReport | None) -> float | None:
    return None if stability is None else stability.lr


def _limit(estimated: SpectrumEstimate, metric: Any) -> RateLimit:
    """The largest stable rate, with the momentum of the optimizer that was saved."""
    group = _group(metric)
    momentum = group["betas"][0] if "betas" in group else group.get("momentum")
    return rate_limit(_subject(estimated), momentum=None if momentum is None else float(momentum))


def _facts(measured: Measured, stability: StabilityReport | None, limit: RateLimit) -> dict[str, Any]:
    """What was measured as plain values, ready for JSON."""
    estimate = measured.spectrum
    prepared = prepare(estimate.spectrum, estimate.weight_decay)
    names = ("num_products", "num_distinct", "reason", "weight_decay", "seconds", "preconditioner", "total_steps")
    facts = {name: getattr(estimate, name) for name in names}
    facts |= {"settled": not estimate.warning, "L": prepared.L, "kappa": prepared.kappa, "stable_lr": limit.rate}
    facts |= {"steps_over_kappa": estimate.total_steps / prepared.kappa}
    if stability is not None:
        facts |= {"stability": {**vars(stability), "is_stable": stability.is_stable}}
    if measured.noise is not None:
        facts |= {"noise": noise_facts(measured.noise)}
    if measured.start is not None:
        facts |= {"start": start_facts(measured.start)}
    return facts


def _text(measured: Measured, stability: StabilityReport | None, limit: RateLimit, is_usual: bool) -> str:
    """What was measured, for people; ``is_usual`` if the number of steps is the default."""
    facts = _facts(measured, stability, limit)
    default = ", the default; pass --steps" if is_usual else ""
    lines = [
        str(measured.spectrum),
        f"L = {facts['L']:.4g}, kappa = {facts['kappa']:.4g}, {limit.about(_rate(stability))}",
        f"T/kappa = {facts['steps_over_kappa']:.3g} (T = {facts['total_steps']:,}{default})",
    ]
    parts = {"stability": stability, "gradient noise": measured.noise, "start": measured.start}
    return "\n".join(lines + [f"{title}: {part}" for title, part in parts.items() if part is not None])


def _metric(path: Path | None, kind: str | None, model: Any, operator: CurvatureOperator) -> Any:
    """What preconditions the operator: the optimizer or the diagonal of the file, or None without a file."""
    if path is not None:
        if kind is not None and path.suffix.lower() == ".npz":
            raise ValueError("--optimizer must be left out with an .npz file, which holds the diagonal itself.")
        from eigencurve.hessian.state_files import load_preconditioner  # imports PyTorch

        return load_preconditioner(path, model, operator.named_parameters, kind)
    if kind is not None:
        raise ValueError("--optimizer needs --optimizer-state, the file of its state.")
    return None


def _stability(
    estimated: SpectrumEstimate, operator: CurvatureOperator | PreconditionedOperator, metric: Any, lr: float | None
) -> StabilityReport | None:
    """The largest eigenvalue compared with its limit at the learning rate; None if there is no rate."""
    from eigencurve.hessian import PreconditionedOperator  # imports PyTorch

    group = _group(metric)
    rate = float(group.get("lr", 0.0)) if lr is None else lr
    if lr is None and rate <= 0:  # not given, or the end of a schedule
        return None
    if "betas" in group and isinstance(operator, PreconditionedOperator):
        decay, beta1 = operator.eigenvalue_shift, float(group["betas"][0])
        return stability_report(estimated.spectrum.L, rate, beta1, decay)
    # The limit 2(1+m) = ηλ is symmetric in the rate and the eigenvalue.
    shift = 0.0 if isinstance(operator, PreconditionedOperator) else estimated.weight_decay
    return StabilityReport(
        estimated.spectrum.L + shift, rate, largest_stable_rate(rate, float(group.get("momentum", 0.0)))
    )


def _require_options(noise: bool, batch_size: int | None, start_state: Path | None, output: Path) -> None:
    if noise != (batch_size is not None):
        raise ValueError("--noise and --batch-size must be given together.")
    if batch_size is not None:
        _check.whole("estimate", "batch_size", batch_size, minimum=1)
    if output.suffix.lower() == ".txt" and (noise or start_state is not None):
        raise ValueError(
            "--output must end in .npz or .json with --noise or --start-state: a text file cannot hold them."
        )
