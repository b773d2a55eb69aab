"""``eigencurve report``: a plan from a spectrum as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigencurve.cli import options
from eigencurve.cli.output import command_line, require_writable, warn, write
from eigencurve.cli.shell import new_app
from eigencurve.cli.sources import NoiseOptions, SpectrumOptions
from eigencurve.planning.spectrum import plan_from_spectrum
from eigencurve.planning.warnings import rate_limit, spectrum_warnings

app = new_app()


@app.command()
@options.with_groups
def report(
    source: SpectrumOptions,
    length: options.RunLength,
    noise: NoiseOptions,
    optimizer: options.Optimizer,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="HTML file to write, or - for standard output.")
    ] = Path("report.html"),
    lr: Annotated[float | None, typer.Option(help="Peak rate of the run. Default: that of the plan.")] = None,
    max_lr: options.MaxLr = None,
    warmup: options.Warmup = "0",
    force: options.Force = False,
) -> None:
    """Write a plan as a self-contained HTML page.

    It opens with the verdict and its table. Then it shows the curves, the spectrum, what the answer is based on, and
    code that trains with the schedule. The page works offline and needs no other file.

    \b
    Examples:
      eigencurve report spectrum.npz --steps 39100 --lr 0.1 -o report.html
      eigencurve report resnet20_cifar10 --epochs 10 --steps-per-epoch 391 --noise 1e4
      eigencurve report resnet20_cifar10 --steps 3910 --momentum 0.9 --nesterov
    """
    total, spectrum = length.total, source.required
    rise = options.steps_or_share(warmup, "warmup", total)
    require_writable([output], (".html", ".htm"), force)
    settings = vars(noise) | vars(optimizer)
    plan = plan_from_spectrum(spectrum, total, lr=lr, max_lr=max_lr, warmup_steps=rise, **settings)
    warn(spectrum_warnings(spectrum, optimizer=plan.optimizer))
    limit = rate_limit(spectrum, plan.optimizer, optimizer.momentum, optimizer.nesterov)
    typer.echo(limit.sentence(plan.lr), err=True)
    write(output, plan.to_html(command_line()).encode())
