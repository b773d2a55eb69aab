"""``eigencurve optimal``: the numerically best schedule, and the bound that none can beat."""

from __future__ import annotations

import typer

from eigencurve.cli import options
from eigencurve.cli.output import ScheduleFiles, show_json, warn, write_all
from eigencurve.cli.shell import new_app
from eigencurve.cli.sources import NoiseOptions, SpectrumOptions
from eigencurve.planning.spectrum import quadratic_of
from eigencurve.planning.warnings import rate_limit, require_plausible, spectrum_warnings
from eigencurve.spectrum.source import input_fields, input_lines

app = new_app()


@app.command()
@options.with_groups
def optimal(
    source: SpectrumOptions,
    length: options.RunLength,
    noise: NoiseOptions,
    momentum: options.Momentum,
    files: ScheduleFiles,
    max_lr: options.MaxLr = None,
    as_json: options.AsJson = False,
) -> None:
    """Search for the numerically best schedule.

    The output includes a certificate: a lower bound on the expected loss of every schedule with rates up to --max-lr.
    There is no certificate with momentum. The gradient noise is read from the file if it was measured, and otherwise
    assumed.
    To use the schedule, write it with -o best.json and run `eigencurve schedule --load best.json --code torch`.

    \b
    Examples:
      eigencurve optimal spectrum.npz --steps 39100 --noise 1e4 -o best.json -o best.png
      eigencurve optimal --power-law 1.5 --kappa 1e4 --steps 1000 --json
      eigencurve optimal --power-law 1.5 --kappa 1e4 --steps 1000 --momentum 0.9
    """
    total, subject = length.total, source.required
    subject = noise.added_to(subject)
    problem = quadratic_of(subject, momentum.momentum, momentum.nesterov)
    stable = rate_limit(subject, "sgd", momentum.momentum, momentum.nesterov)
    require_plausible("optimal", "sgd", stable, max_lr=max_lr)
    limit = stable.rate if max_lr is None else max_lr
    files.check()
    best = problem.search_best(total, limit)
    warn(spectrum_warnings(subject, optimizer="sgd"))
    contents = files.contents(best.schedule)
    if as_json:
        inputs_used = {**input_fields(subject), "total_steps": total, "max_lr": limit, "stable_lr": stable.rate}
        outcome = {name: getattr(best, name) for name in ("loss", "lower_bound", "start", "status")}
        show_json({**inputs_used, **outcome, "schedule": best.schedule.to_dict()})
    else:
        typer.echo(f"{subject.heading}, rates up to {limit:.4g}")
        typer.echo("\n".join(input_lines(subject)))
        typer.echo(options.rates_line(stable, max_lr, momentum))
        typer.echo(f"  expected loss   {best.loss:.4g}  per parameter, after {total:,} steps")
        if best.lower_bound is None:
            typer.echo("  certificate     no certificate with momentum")
        else:
            typer.echo(f"  certificate     {best.lower_bound:.4g}  lower bound for every schedule")
            typer.echo(f"  gap             {best.gap:.2%}  the most that a better schedule could gain")
        typer.echo(f"  search          {best.status}")
        typer.echo(f"\n{best.schedule.preview()}")
    write_all(contents)
