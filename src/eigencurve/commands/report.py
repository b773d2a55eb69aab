"""``eigencurve report``: everything on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigencurve.commands import options
from eigencurve.commands.output import command_line, require_writable, write
from eigencurve.commands.shell import new_app
from eigencurve.commands.sources import any_subject
from eigencurve.planning.recipe import Recipe
from eigencurve.report.report import Expectation, report_page
from eigencurve.report.runs import Panel, panels_of
from eigencurve.runs.store import Store

app = new_app()


@app.command()
def report(
    spectrum: options.SpectrumWord = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="An .html; - is standard output.")] = Path(
        "report.html"
    ),
    power_law: options.PowerLawExponent = None,
    kappa: options.Kappa = None,
    steps: options.Steps = None,
    epochs: options.Epochs = None,
    steps_per_epoch: options.StepsPerEpoch = None,
    lr: Annotated[float, typer.Option(help="The initial learning rate of the schedule.")] = 0.1,
    min_lr: Annotated[float | None, typer.Option(help="The last step's rate. Default: the curve as it is.")] = None,
    warmup: options.Warmup = "0",
    beta: Annotated[float, typer.Option(help="Ratio of the groups' edges; 1 is the limit.")] = 2.0,
    allocation: Annotated[str, typer.Option(help="Interval lengths, sqrt or optimal.")] = "sqrt",
    weight_decay: options.WeightDecay = None,
    noise: options.Noise = 1.0,
    initial_error: options.InitialError = 1.0,
    max_lr: options.MaxLr = None,
    best: Annotated[bool, typer.Option(help="Search the numerically best schedule: some seconds.")] = True,
    store: Annotated[Path | None, typer.Option(help="Finished runs to show, from `eigencurve reproduce`.")] = None,
    force: options.Force = False,
) -> None:
    """Write one HTML page: spectrum, schedule, comparison, runs.

    The page needs no network and no other file; send it, print it, keep it.

    \b
    Examples:
      eigencurve report spectrum.npz --steps 39100 --lr 0.1 -o report.html
      eigencurve report resnet20_cifar10 --epochs 10 --steps-per-epoch 391 --noise 1e4
      eigencurve report --store eigencurve.sqlite -o runs.html
    """
    require_writable([output], (".html", ".htm"), force)
    subject = any_subject(spectrum, power_law, kappa, weight_decay)
    if subject is None and store is None:
        raise ValueError("What is the report about? Give a spectrum (or --power-law and --kappa), --store, or both.")
    recipe = None
    if subject is not None:
        total = options.total_steps(steps, epochs, steps_per_epoch)
        settings = {"beta": beta, "allocation": allocation, **({} if min_lr is None else {"min_lr": min_lr})}
        recipe = Recipe(
            "eigencurve", total, lr, subject, options.warmup_steps(warmup, total), settings, subject.weight_decay
        )
    panels = [] if store is None else _panels(store)
    page = report_page(recipe, Expectation(noise, initial_error, max_lr, best), panels, command_line())
    write(output, page.encode())


def _panels(path: Path) -> list[Panel]:
    if not path.exists():
        raise FileNotFoundError(2, "no such file", str(path))
    found = panels_of(Store(path))
    if not found:
        raise ValueError(f"{path} has no finished runs yet.")
    return found
