"""The command line: parse, call one public function, print.

Each command is a module of :mod:`eigencurve.commands` and is imported when it is called, so that ``--help`` and
completion answer at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from eigencurve.commands.shell import LazyGroup, new_app

app = new_app(cls=LazyGroup, invoke_without_command=True, add_completion=True)


def _version(asked: bool) -> None:
    if asked:
        from eigencurve import __version__  # reads the installed package's metadata: not for every start

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 -- its callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[  # noqa: ARG001 -- LazyGroup.main takes it out of the words, wherever it stands
        bool, typer.Option("--debug", help="Show the traceback of an error; accepted after any command, too.")
    ] = False,
) -> None:
    """The learning-rate schedule that the curvature of your loss calls for.

    \b
    From a model to its schedule:
      eigencurve estimate my_project:problem -o spectrum.npz
      eigencurve schedule spectrum.npz --epochs 100 --steps-per-epoch 391 --lr 0.1
      eigencurve schedule spectrum.npz --steps 39100 --lr 0.1 --code torch
    Without a measurement, from a shipped spectrum or an assumed power law:
      eigencurve schedule resnet20_cifar10 --steps 39100 --lr 0.1
      eigencurve schedule --power-law 1.5 --kappa 1e5 --steps 39100 --lr 0.1
    How good is it, and all of it on one page:
      eigencurve compare spectrum.npz --steps 39100
      eigencurve report spectrum.npz --steps 39100 --lr 0.1 -o report.html
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


if __name__ == "__main__":
    app()
