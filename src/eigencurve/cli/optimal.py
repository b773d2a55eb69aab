"""``eigencurve optimal``: the numerically best schedule, and the bound that none can beat."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigencurve.cli import options
from eigencurve.cli.output import require_writable, schedule_content, show_json, warn, write
from eigencurve.cli.shell import new_app
from eigencurve.cli.sources import required_subject
from eigencurve.planning.doubts import doubts
from eigencurve.planning.exports import SCHEDULE_SUFFIXES
from eigencurve.planning.inputs import inputs_of, quadratic_of
from eigencurve.planning.limits import rate_limit, require_meant

app = new_app()


@app.command()
def optimal(
    spectrum: options.SpectrumWord = None,
    power_law: options.PowerLawExponent = None,
    kappa: options.Kappa = None,
    steps: options.Steps = None,
    epochs: options.Epochs = None,
    steps_per_epoch: options.StepsPerEpoch = None,
    weight_decay: options.WeightDecay = None,
    noise: options.Noise = None,
    batch_size: options.BatchSize = None,
    initial_error: options.InitialError = None,
    momentum: options.Momentum = 0.0,
    nesterov: options.Nesterov = False,
    max_lr: options.MaxLr = None,
    as_json: options.AsJson = False,
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", "--output", help="File to write (.json, .csv, .png, .svg or .pdf). Can be repeated."),
    ] = None,
    force: options.Force = False,
) -> None:
    """Search for the numerically best schedule.

    The output includes a certificate: a lower bound on the expected loss of every schedule with rates up to --max-lr.
    There is no certificate with momentum. The gradient noise is that of the file if it was measured, and otherwise an
    assumption.
    To use the schedule, write it with -o best.json and run `eigencurve schedule --load best.json --code torch`.

    \b
    Examples:
      eigencurve optimal spectrum.npz --steps 39100 --noise 1e4 -o best.json -o best.png
      eigencurve optimal --power-law 1.5 --kappa 1e4 --steps 1000 --json
      eigencurve optimal --power-law 1.5 --kappa 1e4 --steps 1000 --momentum 0.9
    """
    files = output or []
    total = options.total_steps(steps, epochs, steps_per_epoch)
    subject = required_subject(spectrum, power_law, kappa, weight_decay)
    inputs = inputs_of(subject, noise, initial_error, batch_size)
    problem = quadratic_of(subject, inputs, momentum, nesterov)
    stable = rate_limit(subject, "sgd", momentum, nesterov)
    require_meant("optimal", "sgd", stable, max_lr=max_lr)
    limit = stable.rate if max_lr is None else max_lr
    require_writable(files, SCHEDULE_SUFFIXES, force)
    found = problem.search_best(total, limit)
    warn(doubts(subject, optimizer="sgd"))
    facts = {"loss": found.loss, "lower_bound": found.lower_bound, "start": found.start, "status": found.status}
    contents = [schedule_content(found.schedule, path) for path in files]
    if as_json:
        known = {**inputs.fields(), "total_steps": total, "max_lr": limit, "stable_lr": stable.rate}
        show_json({**known, **facts, "schedule": found.schedule.to_dict()})
    else:
        typer.echo(f"{subject.heading}, rates up to {limit:.4g}")
        typer.echo("\n".join(inputs.lines))
        typer.echo(options.rates_line(stable, max_lr, momentum, nesterov))
        typer.echo(f"  expected loss   {found.loss:.4g}  per parameter, after {total:,} steps")
        if found.lower_bound is None:
            typer.echo("  certificate     no certificate with momentum")
        else:
            typer.echo(f"  certificate     {found.lower_bound:.4g}  lower bound for every schedule")
            typer.echo(f"  gap             {found.gap:.2%}  the most that a better schedule could gain")
        typer.echo(f"  search          {found.status}")
        typer.echo(f"\n{found.schedule.preview()}")
    for path, content in zip(files, contents, strict=True):
        write(path, content)
