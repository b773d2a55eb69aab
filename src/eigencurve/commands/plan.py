"""``eigencurve plan``: which schedule a run should use, from whatever is known about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eigencurve.commands import options
from eigencurve.commands.fit import read_logs
from eigencurve.commands.output import require_writable, schedule_content, show_json, write
from eigencurve.commands.shell import new_app
from eigencurve.commands.sources import subject_of
from eigencurve.planning.answer import Plan
from eigencurve.planning.exports import SCHEDULE_SUFFIXES
from eigencurve.planning.forecasts import LogSettings
from eigencurve.planning.plan import OPTIMIZERS, are_logs
from eigencurve.planning.plan import plan as make_plan
from eigencurve.planning.recipe import PlannedSchedule
from eigencurve.planning.snippets import snippet

app = new_app()


@app.command()
def plan(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE]...",
            help="A spectrum (a file, a name listed by `eigencurve zoo`, or -), or the logs of one or more runs.",
        ),
    ] = None,
    steps: options.Steps = None,
    epochs: options.Epochs = None,
    steps_per_epoch: options.StepsPerEpoch = None,
    optimizer: Annotated[str, typer.Option(help=f"Optimizer of the run: {', '.join(OPTIMIZERS)}.")] = "sgd",
    lr: Annotated[float | None, typer.Option(help="Peak rate that you want. Default: part of the answer.")] = None,
    max_lr: options.MaxLr = None,
    warmup: Annotated[int | None, typer.Option(metavar="STEPS", help="Length of the linear warmup.")] = None,
    momentum: Annotated[
        float | None, typer.Option(help="Momentum of SGD, or beta1 of Adam. Default: 0 for SGD, 0.9 for Adam.")
    ] = None,
    nesterov: options.Nesterov = False,
    weight_decay: options.WeightDecay = None,
    noise: options.Noise = None,
    batch_size: options.BatchSize = None,
    initial_error: options.InitialError = None,
    loss: Annotated[str | None, typer.Option(help="Column with the loss, if a log has several.")] = None,
    lr_column: Annotated[str | None, typer.Option(help="Column with the learning rate, if a log has several.")] = None,
    code: options.Code = None,
    as_json: options.AsJson = False,
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", "--output", help="File for the schedule (.json, .csv or a figure). Can be repeated."),
    ] = None,
    force: options.Force = False,
) -> None:
    """Tell which schedule and rate a run should use, and how sure.

    Give it what you know: a measured spectrum, the logs of finished runs of the same network, or only the number of
    steps and the optimizer. The answer compares the usual schedules, each at its own best rate, and says what it is
    based on: what is measured, fitted, given or assumed, and what would change if an assumption were off.

    \b
    Examples:
      eigencurve plan resnet20_cifar10 --steps 39100 --momentum 0.9
      eigencurve plan run1.csv run2.csv --steps 50000 --optimizer adamw -o schedule.json
      eigencurve plan --steps 50000 --optimizer adamw --code torch
    """
    files = output or []
    require_writable(files, SCHEDULE_SUFFIXES, force)
    if as_json and code is not None:
        raise ValueError("Pass only one of --json and --code.")
    total = options.total_steps(steps, epochs, steps_per_epoch)
    answer = make_plan(
        *_sources(sources or [], weight_decay, LogSettings(loss, lr_column, warmup)),
        total_steps=total, optimizer=optimizer, lr=lr, max_lr=max_lr, warmup_steps=warmup, momentum=momentum,
        nesterov=nesterov, weight_decay=weight_decay, noise=noise, initial_error=initial_error, batch_size=batch_size,
    )  # fmt: skip
    contents = [schedule_content(answer.schedule, path) for path in files]
    if as_json:
        show_json(answer.to_dict())
    elif code is not None:
        typer.echo(_program(answer, code), nl=False)
    else:
        typer.echo(f"{answer}\n\n{answer.schedule.preview()}")
    for path, content in zip(files, contents, strict=True):
        write(path, content)


def _sources(words: list[str], weight_decay: float | None, settings: LogSettings) -> list[Any]:
    """The runs of the logs, or the one spectrum."""
    if words and are_logs(words):
        loaded = read_logs([Path(word) for word in words], settings, [])
        for warning in loaded.warnings:
            typer.echo(f"warning: {warning}", err=True)
        return list(loaded.runs)
    return [subject_of(word, weight_decay) for word in words]


def _program(answer: Plan, framework: str) -> str:
    return snippet(framework, PlannedSchedule(answer.schedule, answer.optimizer, answer.weight_decay, answer.momentum))
