"""``eigencurve zoo``: the spectra that ship with the package."""

from __future__ import annotations

import typer

from eigencurve.commands import options
from eigencurve.commands.output import require_writable, show_json, show_table
from eigencurve.commands.shell import new_app
from eigencurve.commands.spectrum import convert_subject, show_subject
from eigencurve.planning.subject import zoo_subject
from eigencurve.spectrum.files import SUFFIXES
from eigencurve.spectrum.zoo import ZOO

app = new_app(invoke_without_command=True)


@app.callback()
def zoo(context: typer.Context, as_json: options.AsJson = False) -> None:
    """List, show or export the spectra that ship with the package.

    \b
    Examples:
      eigencurve zoo
      eigencurve zoo show resnet20_cifar10
      eigencurve zoo export resnet20_cifar10 spectrum.json
    """
    if context.invoked_subcommand is not None:
        return
    if as_json:
        show_json([{"name": name, **vars(entry)} for name, entry in ZOO.items()])
        return
    rows = [(name, entry.network, entry.data, f"{entry.weight_decay:g}") for name, entry in ZOO.items()]
    show_table(("name", "network", "measured on", "weight decay"), rows)


@app.command()
def show(name: options.ZooName, as_json: options.AsJson = False) -> None:
    """Describe a spectrum of the zoo.

    \b
    Example:
      eigencurve zoo show resnet20_cifar10
    """
    show_subject(zoo_subject(name), as_json)


@app.command()
def export(
    name: options.ZooName,
    output: options.SpectrumFile,
    force: options.Force = False,
) -> None:
    """Write a spectrum of the zoo to a file.

    \b
    Example:
      eigencurve zoo export resnet20_cifar10 spectrum.npz
    """
    require_writable([output], SUFFIXES, force)
    convert_subject(zoo_subject(name), output)
