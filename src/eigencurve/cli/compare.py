"""``eigencurve compare``: expected losses of schedules, and the bound that none can beat."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigencurve.cli import options
from eigencurve.cli.output import read, show_json, warn
from eigencurve.cli.shell import new_app
from eigencurve.cli.sources import NoiseOptions, SpectrumOptions
from eigencurve.planning.code import load_schedule
from eigencurve.planning.spectrum import compare_schedules
from eigencurve.planning.warnings import rate_limit, require_plausible, spectrum_warnings
from eigencurve.schedules.comparison import aligned
from eigencurve.schedules.kinds import describe_settings
from eigencurve.spectrum.source import input_fields, input_lines

app = new_app()
EXPLANATION = """\
loss: expected loss per parameter after the last step, on a quadratic with this spectrum. It is the sum of bias (left
from the initial error) and variance (from gradient noise)."""
GAP = "gap: distance to the lower bound, which none can beat."


@app.command()
@options.with_groups
def compare(
    source: SpectrumOptions,
    length: options.RunLength,
    noise: NoiseOptions,
    momentum: options.Momentum,
    lr: Annotated[
        float | None, typer.Option(help="Peak learning rate of all schedules. Default: the best one of each.")
    ] = None,
    max_lr: options.MaxLr = None,
    best: Annotated[bool, typer.Option("--best", help="Also search for the numerically best schedule.")] = False,
    load: Annotated[
        list[Path] | None, typer.Option(help="JSON file of a schedule to include. Can be repeated.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare schedules by their expected loss.

    All schedules run for the same number of steps on a noisy quadratic with the given spectrum. By default each
    schedule runs at its best peak learning rate up to --max-lr; --lr sets one peak rate for all. The gradient noise is
    read from the file if it was measured, and otherwise assumed.

    \b
    Examples:
      eigencurve compare spectrum.npz --steps 39100 --noise 1e4
      eigencurve compare spectrum.npz --steps 39100 --batch-size 512
      eigencurve compare resnet20_cifar10 --epochs 10 --steps-per-epoch 391 --best
      eigencurve compare resnet20_cifar10 --steps 3910 --momentum 0.9 --nesterov --best
      eigencurve compare --power-law 1.5 --kappa 1e5 --steps 10000 --lr 0.01 --json
    """
    total, subject = length.total, source.required
    own = {path.stem: load_schedule(path, read(path)) for path in load or []}
    subject = noise.added_to(subject)
    limit = rate_limit(subject, "sgd", momentum.momentum, momentum.nesterov)
    require_plausible("compare", "sgd", limit, lr=lr, max_lr=max_lr)
    compared = compare_schedules(subject, total, momentum.momentum, momentum.nesterov, lr, max_lr, best, own)
    warn(spectrum_warnings(subject, optimizer="sgd"))
    if as_json:
        show_json({"stable_lr": limit.rate, **input_fields(subject), "total_steps": total, **compared.to_dict()})
        return
    rates = "each at its best rate" if lr is None else f"all at peak rate {lr:g}"
    typer.echo("\n".join([f"{subject.heading}, {rates}", *input_lines(subject)]))
    typer.echo(options.rates_line(limit, max_lr if lr is None else lr, momentum))
    typer.echo(str(compared))
    settings = {row.label: describe_settings(row.schedule) for row in compared.rows}
    typer.echo("\n".join(aligned({"schedule": list(settings), "settings": list(settings.values())})))
    typer.echo(EXPLANATION if momentum.momentum else f"{EXPLANATION} {GAP}")
