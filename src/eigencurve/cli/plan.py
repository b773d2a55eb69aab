"""``eigencurve plan``: which schedule a run should use, from whatever is known about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from eigencurve import _check
from eigencurve.cli import options
from eigencurve.cli.fit import read_logs
from eigencurve.cli.output import ScheduleFiles, require_writable, show_json, warn, write, write_all
from eigencurve.cli.shell import new_app
from eigencurve.cli.sources import load_problem, require_problem, subject_of
from eigencurve.planning.code import FRAMEWORKS
from eigencurve.planning.logs import LogSettings
from eigencurve.planning.plan import KINDS, kind_of
from eigencurve.planning.plan import plan as make_plan
from eigencurve.spectrum.source import SpectrumSource, file_source

app = new_app()
# The kinds of sources that options of the command apply to; ``plan`` itself refuses the others.
APPLIES = dict.fromkeys(("loss", "lr_column"), ("logs",)) | dict.fromkeys(
    ("num_products", "checkpoint", "spectrum_file"), ("model",)
)
ONE_MODEL = "Pass one model, one spectrum, or the logs of runs, not several kinds of sources."
NO_METRIC = (
    "--optimizer must be sgd for a model, because the metric of Adam needs its state. Measure with `eigencurve "
    "estimate --optimizer-state`, and pass the file."
)


@dataclass(frozen=True)
class ModelOptions:
    """How a model is measured."""

    num_products: Annotated[int, typer.Option(help="Model: maximum number of Hessian products.")] = 250
    checkpoint: Annotated[
        Path | None, typer.Option(help="Model: file to save progress to, and to resume from after Ctrl-C or a crash.")
    ] = None
    spectrum_file: Annotated[Path, typer.Option(help="Model: file to write the spectrum and the noise to.")] = Path(
        "spectrum.npz"
    )


@app.command()
@options.with_groups
def plan(
    context: typer.Context,
    length: options.RunLength,
    optimizer: options.Optimizer,
    columns: options.LogColumns,
    measurement: ModelOptions,
    files: ScheduleFiles,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE]...",
            help="A spectrum (a file, a name listed by `eigencurve zoo`, or -), the logs of one or more runs, or "
            "MODULE:FUNCTION that returns (model, loss_fn, batches).",
        ),
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Peak rate that you want. Default: part of the answer.")] = None,
    max_lr: options.MaxLr = None,
    warmup: Annotated[int | None, typer.Option(metavar="STEPS", help="Length of the linear warmup.")] = None,
    weight_decay: options.WeightDecay = None,
    noise: options.Noise = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Batch size of the run, for the noise and the code. A model needs it to measure its gradient noise, "
            "unless batches is a DataLoader; for a file it is that of the measurement by default."
        ),
    ] = None,
    initial_error: options.InitialError = None,
    code: options.Code = None,
    as_json: options.AsJson = False,
) -> None:
    """Recommend a schedule and a peak rate, with their uncertainty.

    Give it what you know: a model, a measured spectrum, the logs of finished runs of the same network, or only the
    number of steps and the optimizer. A model is measured first, as by `eigencurve estimate --noise`, and its spectrum
    is saved. The answer compares the usual schedules, each at its own best rate, and says what it is based on: what is
    measured, fitted, given or assumed, and what would change if an assumption were off. Without --lr, the peak rate is
    part of the answer.

    \b
    Examples:
      eigencurve plan resnet20_cifar10 --steps 39100 --momentum 0.9
      eigencurve plan train:problem --steps 2000 --batch-size 128 --checkpoint run.npz
      eigencurve plan run1.csv run2.csv --steps 50000 --optimizer adamw -o schedule.json
      eigencurve plan --steps 50000 --optimizer adamw --code torch
    """
    words = sources or []
    if as_json and code is not None:
        raise ValueError("Pass only one of --json and --code.")
    if code is not None:
        _check.choice("plan", "code", code, FRAMEWORKS)
    total = length.total
    is_model = any(_is_model(word) for word in words)
    if is_model and len(words) > 1:
        raise ValueError(ONE_MODEL)
    options.require_applicable(context, "model" if is_model else kind_of(words), KINDS, APPLIES)
    files.check()
    if is_model:
        _require_measurable(words[0], optimizer.optimizer, noise, batch_size)
        require_writable([measurement.spectrum_file], (".npz", ".json"), files.force)
        inputs = [_measured(words[0], measurement, total, weight_decay, batch_size, noise is None)]
    else:
        inputs = _sources(words, weight_decay, LogSettings(columns.loss, columns.lr_column, warmup))
    answer = make_plan(
        *inputs,
        total_steps=total, lr=lr, max_lr=max_lr, warmup_steps=warmup, weight_decay=weight_decay, noise=noise,
        initial_error=initial_error, batch_size=batch_size, **vars(optimizer),
    )  # fmt: skip
    contents = files.contents(answer.schedule)
    if as_json:
        show_json(answer.to_dict())
    elif code is not None:
        typer.echo(answer.code(code), nl=False)
    else:
        typer.echo(f"{answer}\n\n{answer.schedule.preview()}")
    write_all(contents)


def _sources(words: list[str], weight_decay: float | None, settings: LogSettings) -> list[Any]:
    """The runs of the logs, or the one spectrum."""
    if words and kind_of(words) == "logs":
        loaded = read_logs([Path(word) for word in words], settings, [])
        warn(loaded.warnings)
        return list(loaded.runs)
    return [subject_of(word, weight_decay) for word in words]


def _is_model(word: str) -> bool:
    """Whether a source is MODULE:FUNCTION."""
    return ":" in word and not Path(word).exists()


def _require_measurable(word: str, optimizer: str | None, noise: float | None, batch_size: int | None) -> None:
    """Refuse options that do not fit a model, before it is measured."""
    require_problem(word)
    if optimizer not in (None, "sgd"):
        raise ValueError(NO_METRIC)
    if noise is not None and batch_size is not None:
        raise ValueError("--batch-size must be left out with a model if --noise is given: nothing else depends on it.")


def _measured(
    word: str,
    measurement: ModelOptions,
    total: int,
    weight_decay: float | None,
    batch_size: int | None,
    with_noise: bool,
) -> SpectrumSource:
    """Measure the model of MODULE:FUNCTION, save its spectrum, and return it."""
    from eigencurve.cli.measuring import measure  # imports PyTorch
    from eigencurve.hessian import HessianOperator, keep_freed_memory
    from eigencurve.hessian.settings import EstimateSettings
    from eigencurve.planning.spectrum import decay_of

    keep_freed_memory()
    model, loss_fn, batches = load_problem(word)
    size = getattr(batches, "batch_size", None) if batch_size is None else batch_size
    if with_noise and size is None:
        raise ValueError("--batch-size is missing: the gradient noise of a batch is measured too. Or pass --noise.")
    operator = HessianOperator(model, loss_fn, batches)
    settings = EstimateSettings(
        measurement.num_products,
        weight_decay=decay_of(operator) if weight_decay is None else weight_decay,
        total_steps=total,
        checkpoint=measurement.checkpoint,
    )
    file = measurement.spectrum_file
    write(file, measure(operator, settings, size if with_noise else None).content(file.suffix.lower()))
    source = file_source(file, weight_decay)
    return source if weight_decay is not None else replace(source, decay_source="assumed")
