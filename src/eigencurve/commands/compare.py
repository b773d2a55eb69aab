"""``eigencurve compare``: expected losses, and the certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigencurve.commands import options
from eigencurve.commands.output import read, show_json
from eigencurve.commands.shell import new_app
from eigencurve.commands.sources import needed_subject
from eigencurve.planning.expectation import comparison_fields, expect
from eigencurve.planning.recipe import load_schedule

app = new_app()
EXPLANATION = """\
loss: expected after the last step, per parameter, on the quadratic of this spectrum; bias is what is left of the
start, variance what the gradient noise put in. gap: how far above the lower bound, which no schedule can beat."""


@app.command()
def compare(
    spectrum: options.SpectrumWord = None,
    power_law: options.PowerLawExponent = None,
    kappa: options.Kappa = None,
    steps: options.Steps = None,
    epochs: options.Epochs = None,
    steps_per_epoch: options.StepsPerEpoch = None,
    weight_decay: options.WeightDecay = None,
    noise: options.Noise = 1.0,
    initial_error: options.InitialError = 1.0,
    momentum: Annotated[float, typer.Option(help="Of heavy-ball SGD; there is no lower bound then.")] = 0.0,
    lr: Annotated[float | None, typer.Option(help="One peak rate for all. Default: each at its own best.")] = None,
    max_lr: options.MaxLr = None,
    best: Annotated[bool, typer.Option("--best", help="Search the numerically best schedule, too.")] = False,
    load: Annotated[
        list[Path] | None, typer.Option(help="A schedule's JSON file to compare, too; may be repeated.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare schedules by the loss that each is expected to reach.

    All schedules run the same number of steps on the noisy quadratic that has the given spectrum. Unless --lr is
    given, each is taken at the peak rate, up to --max-lr, at which it does best.

    \b
    Examples:
      eigencurve compare spectrum.npz --steps 39100 --noise 1e4
      eigencurve compare resnet20_cifar10 --epochs 10 --steps-per-epoch 391 --best
      eigencurve compare --power-law 1.5 --kappa 1e5 --steps 10000 --lr 0.01 --json
    """
    subject = needed_subject(spectrum, power_law, kappa, weight_decay)
    total = options.total_steps(steps, epochs, steps_per_epoch)
    own = {path.stem: load_schedule(path, read(path)).schedule for path in load or []}
    compared = expect(subject, total, noise, initial_error, momentum, lr, max_lr, best, own)
    if as_json:
        show_json(comparison_fields(compared))
        return
    rates = "each at its best rate" if lr is None else f"all at peak rate {lr:g}"
    typer.echo(f"{subject.name}, weight decay {subject.weight_decay:g}, noise {noise:g}, {rates}")
    typer.echo(str(compared))
    typer.echo(EXPLANATION)
