"""The command line: one module per command, which is imported only when the command is called or completed."""

from __future__ import annotations

from typing import Annotated

import typer

from eigencurve.cli.shell import LazyGroup, new_app

app = new_app(cls=LazyGroup, invoke_without_command=True, add_completion=True)


def _version(asked: bool) -> None:
    if asked:
        from eigencurve import __version__  # slow: reads the metadata of the installed package

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 -- handled by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[  # noqa: ARG001 -- LazyGroup.main removes it, wherever it occurs
        bool, typer.Option("--debug", help="Show the traceback of an error. You can also pass it after a command.")
    ] = False,
) -> None:
    """Learning-rate schedules from the curvature of your loss.

    \b
    Measure a model and get its schedule:
      eigencurve estimate my_project:problem -o spectrum.npz
      eigencurve schedule spectrum.npz --epochs 100 --steps-per-epoch 391 --lr 0.1
      eigencurve schedule spectrum.npz --steps 39100 --lr 0.1 --code torch
    Or start from a measured network of the zoo, or from an assumed power law:
      eigencurve schedule resnet20_cifar10 --steps 39100 --lr 0.1
      eigencurve schedule --power-law 1.5 --kappa 1e5 --steps 39100 --lr 0.1
    Or forecast schedules from the logs of finished runs:
      eigencurve fit constant.csv cosine.csv --steps 50000 --best
    Compare it with other schedules, or put everything on one page:
      eigencurve compare spectrum.npz --steps 39100
      eigencurve report spectrum.npz --steps 39100 --lr 0.1 -o report.html
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
