"""``eigencurve report``: an HTML page with spectrum, schedule, comparison and runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eigencurve.cli import options
from eigencurve.cli.output import command_line, require_writable, warn, write
from eigencurve.cli.shell import new_app
from eigencurve.cli.sources import NoiseOptions, SpectrumOptions
from eigencurve.planning.doubts import doubts
from eigencurve.planning.from_spectrum import plan_from_subject, training_for
from eigencurve.planning.limits import rate_limit
from eigencurve.planning.plan_view import rate_line
from eigencurve.planning.recipe import Recipe
from eigencurve.runs.store import Store

if TYPE_CHECKING:
    from eigencurve.report.runs import Panel

app = new_app()
MODES = {"runs": "without a spectrum", "spectrum": "with a spectrum (or --power-law and --kappa)"}


@app.command()
@options.with_groups
def report(
    context: typer.Context,
    source: SpectrumOptions,
    length: options.RunLength,
    noise: NoiseOptions,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="HTML file to write, or - for standard output.")
    ] = Path("report.html"),
    lr: Annotated[float | None, typer.Option(help="Peak rate of the run. Default: that of the plan.")] = None,
    min_lr: Annotated[float | None, typer.Option(help="Final learning rate. Default: determined by the curve.")] = None,
    warmup: options.Warmup = "0",
    beta: Annotated[float, typer.Option(help="Ratio of the group edges; 1 is the limit of fine groups.")] = 2.0,
    allocation: Annotated[str, typer.Option(help="How steps are divided among the groups: sqrt or optimal.")] = "sqrt",
    momentum: options.AnyMomentum = None,
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
    from eigencurve.report.report import (  # imports matplotlib, which the help does not need
        ComparisonSettings,
        report_page,
    )

    subject = source.optional
    if subject is None and store is None:
        raise ValueError("The report has no content: pass a spectrum (or --power-law and --kappa), --store, or both.")
    if subject is None:
        names = {str(parameter.name) for parameter in context.command.params} - {"output", "store", "force"}
        options.require_applicable(context, "runs", MODES, dict.fromkeys(names, ("spectrum",)))
    if subject is not None:
        total = length.total
        rise = options.steps_or_share(warmup, "warmup", total)
        inputs = noise.inputs(subject)
    require_writable([output], (".html", ".htm"), force)
    panels = [] if store is None else _panels(store)
    recipe = comparison = answer = None
    if subject is not None:
        training = training_for(subject, None, momentum, nesterov)
        warn(doubts(subject, total if min_lr is None else None, training.optimizer))
        answer = plan_from_subject(subject, total, None, inputs, momentum, nesterov, lr, max_lr, rise, noise.batch_size)
        settings = {"beta": beta, "allocation": allocation, **({} if min_lr is None else {"min_lr": min_lr})}
        peak = answer.rates.best if lr is None else lr
        typer.echo(rate_line(peak, rate_limit(subject, training.optimizer, momentum, nesterov)), err=True)
        recipe = Recipe("eigencurve", total, peak, subject, rise, settings, answer.training)
        comparison = ComparisonSettings(inputs, max_lr, best, momentum or 0.0, nesterov)
    page = report_page(recipe, comparison, panels, command_line(), answer)
    write(output, page.encode())


def _panels(path: Path) -> list[Panel]:
    from eigencurve.report.runs import panels_of  # imports matplotlib

    found = panels_of(Store(path, read_only=True))
    if not found:
        raise ValueError(f"{path} contains no finished runs.")
    return found
