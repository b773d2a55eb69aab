"""``eigencurve spectrum``: show, plot, convert and compare spectra."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from eigencurve.cli import options
from eigencurve.cli.output import require_writable, show_json, warn, write
from eigencurve.cli.shell import new_app
from eigencurve.cli.sources import SpectrumOptions, subject_of
from eigencurve.figures import FIGURE_SUFFIXES
from eigencurve.planning.warnings import exponent_warning, rate_limit, spectrum_warnings
from eigencurve.schedules.comparison import aligned
from eigencurve.schedules.spectra import SpectrumComparison, compare_spectra
from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum.describe import describe_spectrum
from eigencurve.spectrum.files import SUFFIXES, spectrum_bytes
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.source import SpectrumSource
from eigencurve.spectrum.start import StartEstimate

app = new_app()


@app.callback()
def spectrum() -> None:
    """Show, plot, convert or compare spectra.

    \b
    Examples:
      eigencurve spectrum show spectrum.npz
      eigencurve spectrum plot spectrum.npz -o spectrum.png
    """


@app.command()
@options.with_groups
def show(
    source: SpectrumOptions,
    as_json: options.AsJson = False,
) -> None:
    """Describe a spectrum: its range, the share of each octave, its power law.

    \b
    Examples:
      eigencurve spectrum show spectrum.npz
      eigencurve spectrum show resnet20_cifar10 --json
      cat published.txt | eigencurve spectrum show - --weight-decay 5e-4
    """
    show_subject(source.required, as_json)


@app.command()
@options.with_groups
def plot(
    source: SpectrumOptions,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write (.png, .svg or .pdf).")] = Path(
        "spectrum.png"
    ),
    title: Annotated[str | None, typer.Option(help="Title of the figure. Default: the name of the spectrum.")] = None,
    force: options.Force = False,
) -> None:
    """Draw a spectrum on logarithmic axes, with error bars and the negative part.

    \b
    Examples:
      eigencurve spectrum plot spectrum.npz -o spectrum.png
      eigencurve spectrum plot resnet20_cifar10 -o figure.pdf --title "ResNet-20"
    """
    require_writable([output], FIGURE_SUFFIXES, force)
    subject = source.required
    from eigencurve.figures.canvas import figure_bytes  # imports matplotlib, which only figures need
    from eigencurve.figures.spectra import octave_figure

    drawn = octave_figure(subject, subject.name if title is None else title)
    write(output, figure_bytes(drawn, output.suffix.lower()))


@app.command()
def convert(
    spectrum: options.OneSpectrum,
    output: options.SpectrumFile,
    force: options.Force = False,
) -> None:
    """Convert a spectrum to another format without loss of precision.

    The text format only holds eigenvalues and weights. It drops error bars and other details of the measurement.

    \b
    Examples:
      eigencurve spectrum convert published.txt spectrum.npz
      eigencurve spectrum convert resnet20_cifar10 -
    """
    require_writable([output], SUFFIXES, force)
    convert_subject(subject_of(spectrum, weight_decay=0.0), output)


@app.command()
def compare(
    spectra: Annotated[
        list[str], typer.Argument(metavar="SPECTRUM SPECTRUM…", help="Two or more files or names of the zoo.")
    ],
    weight_decay: options.WeightDecay = None,
    steps: Annotated[int, typer.Option(help="Number of steps of the schedules to compare.")] = TYPICAL_STEPS,
    as_json: options.AsJson = False,
) -> None:
    """Compare spectra octave by octave, and their schedules.

    \b
    Examples:
      eigencurve spectrum compare early.npz late.npz
      eigencurve spectrum compare spectrum.npz resnet20_cifar10 --weight-decay 5e-4 --json
    """
    if len(set(spectra)) < len(spectra) or len(spectra) < 2:
        raise ValueError("Pass at least two different spectra.")
    subjects = {word: subject_of(word, weight_decay) for word in spectra}
    if len({subject.name for subject in subjects.values()}) == len(subjects):
        subjects = {subject.name: subject for subject in subjects.values()}
    compared = compare_spectra(subjects, steps)
    if as_json:
        show_json(_comparison_fields(compared))
    else:
        _show_comparison(compared)


def show_subject(subject: SpectrumSource, as_json: bool) -> None:
    """Print a description of a spectrum."""
    if as_json:
        show_json(_facts(subject))
        return
    typer.echo(f"{subject.name}, prepared with weight decay {subject.weight_decay:g}{subject.negative_text}")
    if subject.about:
        typer.echo(subject.about)
    typer.echo(str(describe_spectrum(subject.spectrum, subject.fraction_negative, subject.octaves)))
    typer.echo(str(rate_limit(subject)))
    if subject.measurement is not None:
        typer.echo(subject.measurement.summary)
        if subject.measurement.made_by:
            typer.echo(f"measured by: {subject.measurement.made_by}")
    for title, estimate in (("gradient noise", subject.noise), ("start", subject.start)):
        if estimate is not None:
            typer.echo(f"{title}: {estimate}")
    exponent = "" if isinstance(subject.raw, PowerLaw) else exponent_warning(subject)
    warn([*spectrum_warnings(subject), exponent] if exponent else spectrum_warnings(subject))


def convert_subject(subject: SpectrumSource, output: Path) -> None:
    """Write a spectrum in the format of the file's ending."""
    if isinstance(subject.raw, PowerLaw):
        raise TypeError("a power law has no eigenvalues to write.")
    suffix = ".json" if str(output) == "-" else output.suffix.lower()
    measured = (subject.measurement, subject.noise, subject.start)
    if suffix == ".txt" and any(part is not None for part in measured):
        typer.echo("note: the text format does not record how the spectrum was measured", err=True)
    write(output, spectrum_bytes(subject.raw, suffix, *(() if suffix == ".txt" else measured)))


def _facts(subject: SpectrumSource) -> dict[str, Any]:
    described = describe_spectrum(subject.spectrum, subject.fraction_negative)
    octaves, errors = described.octaves, subject.octaves
    record = subject.measurement
    return {
        "name": subject.name, "weight_decay": subject.weight_decay, "dim": described.dim,
        "num_nodes": described.num_nodes, "mu": described.mu, "L": described.L, "kappa": described.kappa,
        "fraction_negative": described.fraction_negative,
        "negative_share": 0.0 if isinstance(subject.raw, PowerLaw) else subject.raw.negative_share,
        "extra_term": described.extra_term,
        "power_law": {"alpha": described.exponent, "alpha_error": described.exponent_error},
        "octaves": {
            "index": octaves.index.tolist(), "lower": octaves.lower.tolist(), "share": octaves.share.tolist(),
            "error": None if errors is None else errors.error.tolist(),
        },
        "measurement": None if record is None else {
            "num_products": record.num_products, "num_distinct": record.num_distinct, "reason": record.reason,
            "error_along": _finite(record.schedule_change), "error_across": _finite(record.error_between_probes),
            "preconditioner": record.preconditioner, "seconds": record.seconds, "made_by": record.made_by,
        },
        "noise": None if subject.noise is None else noise_facts(subject.noise),
        "start": None if subject.start is None else start_facts(subject.start),
    }  # fmt: skip


def noise_facts(noise: NoiseEstimate) -> dict[str, Any]:
    """The measured noise as plain values, ready for JSON; what is unknown is None."""
    names = (
        "sigma2", "sigma2_error", "exponent", "exponent_error", "trace", "trace_hc", "critical_batch_size",
        "batch_size", "num_products",
    )  # fmt: skip
    octaves = {name: getattr(noise.octaves, name).tolist() for name in ("index", "lower", "sigma2", "error")}
    return {name: _finite(getattr(noise, name)) for name in names} | {"octaves": octaves}


def start_facts(start: StartEstimate) -> dict[str, Any]:
    """The measured start as plain values, ready for JSON."""
    octaves = {name: getattr(start.octaves, name).tolist() for name in ("index", "lower", "level", "error")}
    return {"excess_loss": start.loss, "from": start.source, "octaves": octaves}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _comparison_fields(compared: SpectrumComparison) -> dict[str, Any]:
    return {
        "octaves": {
            "lower": compared.lower.tolist(),
            "shares": {name: share.tolist() for name, share in compared.shares.items()},
        },
        "kappa": dict(compared.kappas),
        "extra_term": dict(compared.extra_terms),
        "schedule_distance": [{"between": list(pair), "log": far} for pair, far in compared.distances.items()],
        "total_steps": compared.total_steps,
    }


def _show_comparison(compared: SpectrumComparison) -> None:
    columns = {"share per octave": [*(f"from {low:.3g}" for low in compared.lower), "kappa", "extra term"]}
    for name in compared.names:
        shares = [f"{share:.3e}" if share > 0 else "-" for share in compared.shares[name]]
        columns[name] = [*shares, f"{compared.kappas[name]:.4g}", f"{compared.extra_terms[name]:.2f}"]
    typer.echo("\n".join(aligned(columns)))
    for (first, second), far in compared.distances.items():
        typer.echo(
            f"schedules of {first} and {second} over {compared.total_steps:,} steps: "
            f"learning rates differ by at most a factor of {math.exp(far):.3f}"
        )
