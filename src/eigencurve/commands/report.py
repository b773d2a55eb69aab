"""``eigencurve report``: an HTML page with spectrum, schedule, comparison and runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigencurve.commands import options
from eigencurve.commands.output import command_line, require_writable, warn, write
from eigencurve.commands.shell import new_app
from eigencurve.commands.sources import optional_subject
from eigencurve.planning.doubts import doubts
from eigencurve.planning.from_spectrum import plan_from_subject
from eigencurve.planning.inputs import inputs_of
from eigencurve.planning.limits import momentum_of, optimizer_of, rate_limit
from eigencurve.planning.plan_view import rate_line
from eigencurve.planning.recipe import Recipe
from eigencurve.report.report import ComparisonSettings, report_page
from eigencurve.report.runs import Panel, panels_of
from eigencurve.runs.store import Store

app = new_app()


@app.command()
def report(
    spectrum: options.SpectrumWord = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="HTML file to write, or - for standard output.")
    ] = Path("report.html"),
    power_law: options.PowerLawExponent = None,
    kappa: options.Kappa = None,
    steps: options.Steps = None,
    epochs: options.Epochs = None,
    steps_per_epoch: options.StepsPerEpoch = None,
    lr: Annotated[float | None, typer.Option(help="Peak rate of the run. Default: that of the plan.")] = None,
    min_lr: Annotated[float | None, typer.Option(help="Final learning rate. Default: determined by the curve.")] = None,
    warmup: options.Warmup = "0",
    beta: Annotated[float, typer.Option(help="Ratio of the group edges; 1 is the limit of fine groups.")] = 2.0,
    allocation: Annotated[str, typer.Option(help="How steps are divided among the groups: sqrt or optimal.")] = "sqrt",
    weight_decay: options.WeightDecay = None,
    noise: options.Noise = None,
    batch_size: options.BatchSize = None,
    initial_error: options.InitialError = None,
    momentum: options.Momentum = 0.0,
    nesterov: options.Nesterov = False,
    max_lr: options.MaxLr = None,
    best: Annotated[bool, typer.Option(help="Search for the numerically best schedule; takes some seconds.")] = True,
    store: Annotated[
        Path | None, typer.Option(help="SQLite file of finished runs to show, from `python -m paper`.")
    ] = None,
    force: options.Force = False,
) -> None:
    """Write a self-contained HTML report.

    It opens with the answer of `eigencurve plan`: which schedule and rate to use. Then it shows the spectrum, the
    Eigencurve schedule with code, a comparison with other schedules and, with --store, finished runs. The page works
    offline and needs no other file.

    \b
    Examples:
      eigencurve report spectrum.npz --steps 39100 --lr 0.1 -o report.html
      eigencurve report resnet20_cifar10 --epochs 10 --steps-per-epoch 391 --noise 1e4
      eigencurve report resnet20_cifar10 --steps 3910 --momentum 0.9 --nesterov
      eigencurve report --store eigencurve.sqlite -o runs.html
    """
    subject = optional_subject(spectrum, power_law, kappa, weight_decay)
    if subject is None and store is None:
        raise ValueError("The report has no content: pass a spectrum (or --power-law and --kappa), --store, or both.")
    if subject is not None:
        total = options.total_steps(steps, epochs, steps_per_epoch)
        rise = options.warmup_steps(warmup, total)
        inputs = inputs_of(subject, noise, initial_error, batch_size)
    require_writable([output], (".html", ".htm"), force)
    panels = [] if store is None else _panels(store)
    recipe = comparison = answer = None
    if subject is not None:
        optimizer = optimizer_of(subject)
        inertia = momentum_of(optimizer, momentum or None)
        warn(doubts(subject, total if min_lr is None else None, optimizer))
        answer = plan_from_subject(subject, total, None, inputs, momentum or None, nesterov, lr, max_lr, rise)
        settings = {"beta": beta, "allocation": allocation, **({} if min_lr is None else {"min_lr": min_lr})}
        peak = answer.rates.best if lr is None else lr
        typer.echo(rate_line(peak, rate_limit(subject, optimizer, inertia, nesterov)), err=True)
        recipe = Recipe(
            "eigencurve", total, peak, subject, rise, settings, subject.weight_decay, answer.momentum,
            nesterov and answer.momentum > 0, optimizer=optimizer,
        )  # fmt: skip
        comparison = ComparisonSettings(inputs, max_lr, best, momentum, nesterov)
    page = report_page(recipe, comparison, panels, command_line(), answer)
    write(output, page.encode())


def _panels(path: Path) -> list[Panel]:
    found = panels_of(Store(path, read_only=True))
    if not found:
        raise ValueError(f"{path} contains no finished runs.")
    return found
