"""``eigencurve zoo``: the spectra that ship with the package."""

from __future__ import annotations

import typer

from eigencurve.cli import options
from eigencurve.cli.output import require_writable, show_json
from eigencurve.cli.shell import new_app
from eigencurve.cli.spectrum import convert_subject, show_subject
from eigencurve.schedules.comparison import aligned
from eigencurve.spectrum.files import SUFFIXES
from eigencurve.spectrum.source import zoo_source
from eigencurve.spectrum.zoo import ZOO, ZooSummary, zoo_summary

JSON_NAMES = {"error_along_probe": "along", "error_between_probes": "across"}
UNKNOWN = "not measured"

app = new_app(invoke_without_command=True)


@app.callback()
def zoo(context: typer.Context, as_json: options.AsJson = False) -> None:
    """List, show or export the spectra that ship with the package.

    The list has the errors of each schedule as the largest change of a learning rate: along one probe, over the last
    quarter of its products; and across probes, to an estimate from another probe.

    \b
    Examples:
      eigencurve zoo list
      eigencurve zoo show resnet20_cifar10
      eigencurve zoo export resnet20_cifar10 spectrum.json
    """
    if as_json and context.invoked_subcommand is not None:
        name = context.invoked_subcommand
        raise ValueError(f"--json must be left out before {name}. Pass it after: eigencurve zoo {name} … --json.")
    if context.invoked_subcommand is None:
        _show_list(as_json)


@app.command("list")
def list_all(as_json: options.AsJson = False) -> None:
    """List the spectra of the zoo, like `eigencurve zoo` alone.

    \b
    Example:
      eigencurve zoo list --json
    """
    _show_list(as_json)


def _show_list(as_json: bool) -> None:
    summaries = [zoo_summary(name) for name in ZOO]
    if as_json:
        show_json(
            [{JSON_NAMES.get(name, name): value for name, value in vars(summary).items()} for summary in summaries]
        )
        return
    typer.echo("\n".join([*aligned(_columns(summaries)), ""]))
    for summary in summaries:
        typer.echo(f"{summary.name}: {summary.network}; {summary.data}; weight decay {summary.weight_decay:g}")


@app.command()
def show(name: options.ZooName, as_json: options.AsJson = False) -> None:
    """Describe a spectrum of the zoo.

    \b
    Example:
      eigencurve zoo show resnet20_cifar10
    """
    show_subject(zoo_source(name), as_json)


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
    convert_subject(zoo_source(name), output)


def _columns(summaries: list[ZooSummary]) -> dict[str, list[str]]:
    columns = {
        "parameters": ("dim", ","),
        "products": ("num_products", ","),
        "error along one probe": ("error_along_probe", ".1%"),
        "across probes": ("error_between_probes", ".1%"),
        "sigma^2": ("sigma2", ".3g"),
        "batch size": ("batch_size", ","),
        "gamma": ("gamma", ".2f"),
    }
    texts = {
        title: [_text(getattr(summary, name), form) for summary in summaries] for title, (name, form) in columns.items()
    }
    return {"name": [summary.name for summary in summaries], **texts}


def _text(value: float | None, form: str) -> str:
    return UNKNOWN if value is None else format(value, form)
