"""Options that several commands share, and their completion in a shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from eigencurve import _check
from eigencurve.schedules import units
from eigencurve.spectrum.files import SUFFIXES


def _complete_spectrum(incomplete: str) -> Iterator[str]:
    """Names of the zoo, files of spectra, and folders on the way to them."""
    from eigencurve.spectrum.zoo import ZOO  # when the shell asks, and not at every start

    yield from (name for name in ZOO if name.startswith(incomplete))
    folder = Path(incomplete).parent if not incomplete.endswith("/") else Path(incomplete)
    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        name = f"{path}/" if path.is_dir() else str(path)
        if name.startswith(incomplete) and (path.is_dir() or path.suffix.lower() in SUFFIXES):
            yield name


def _complete_zoo(incomplete: str) -> Iterator[tuple[str, str]]:
    from eigencurve.spectrum.zoo import ZOO

    yield from ((name, entry.network) for name, entry in ZOO.items() if name.startswith(incomplete))


def _complete_kind(incomplete: str) -> Iterator[str]:
    from eigencurve.schedules.by_kind import FACTORIES

    yield from (kind for kind in FACTORIES if kind.startswith(incomplete.replace("-", "_")))


def _complete_framework(incomplete: str) -> Iterator[str]:
    from eigencurve.planning.snippets import TEMPLATES

    yield from (name for name in TEMPLATES if name.startswith(incomplete))


SPECTRUM_HELP = f"A file ({', '.join(SUFFIXES)}), a name of the zoo, or - for text or JSON from standard input."
SpectrumWord = Annotated[
    str | None, typer.Argument(metavar="SPECTRUM", help=SPECTRUM_HELP, autocompletion=_complete_spectrum)
]
OneSpectrum = Annotated[str, typer.Argument(metavar="SPECTRUM", help=SPECTRUM_HELP, autocompletion=_complete_spectrum)]
ZooName = Annotated[str, typer.Argument(metavar="NAME", help="A name of the zoo.", autocompletion=_complete_zoo)]
PowerLawExponent = Annotated[
    float | None, typer.Option("--power-law", metavar="ALPHA", help="Assume a power law with this exponent instead.")
]
Kappa = Annotated[float | None, typer.Option(help="The power law's condition number, L over mu.")]
WeightDecay = Annotated[
    float | None,
    typer.Option(help="Of the training run. Default: what the spectrum was measured with; 5e-4 for a power law."),
]
Kind = Annotated[
    str, typer.Option(help="eigencurve, cosine, linear, step_decay, …: Tab lists them.", autocompletion=_complete_kind)
]
Code = Annotated[
    str | None,
    typer.Option(
        help="Print code for torch, lightning, transformers, keras, optax.", autocompletion=_complete_framework
    ),
]
Steps = Annotated[int | None, typer.Option(help="Steps of the optimizer in the whole run.")]
Epochs = Annotated[float | None, typer.Option(help="Length of the run, with --steps-per-epoch.")]
StepsPerEpoch = Annotated[int | None, typer.Option(help="Examples over batch size, for --epochs.")]
Warmup = Annotated[str, typer.Option(metavar="STEPS", help="Linear warmup, counted in the run: 500 steps, or 5%.")]
Noise = Annotated[float, typer.Option(help="Gradient noise sigma^2, per eigenvalue: covariance sigma^2 H.")]
InitialError = Annotated[float, typer.Option(help="lambda (w_0 - w_*)^2 of every coordinate at the start.")]
MaxLr = Annotated[float | None, typer.Option(help="The largest rate allowed. Default: 2/L, the limit of stability.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]


def total_steps(steps: int | None, epochs: float | None, steps_per_epoch: int | None) -> int:
    """The length of a run from ``--steps``, or from ``--epochs`` and ``--steps-per-epoch``."""
    if steps is not None:
        if epochs is not None or steps_per_epoch is not None:
            raise ValueError("Give --steps, or --epochs and --steps-per-epoch, not both.")
        return _check.whole("schedule", "steps", steps, minimum=1)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("How long is the run? Give --steps, or --epochs and --steps-per-epoch.")
    return units.whole_steps("schedule", "epochs", units.epochs(epochs, steps_per_epoch), minimum=1)


def warmup_steps(text: str, total: int) -> int:
    """Steps of warmup from a number, or from a share of the run such as 5%."""
    try:
        length = units.fraction(float(text[:-1]) / 100) if text.endswith("%") else int(text)
    except ValueError:
        raise ValueError(f"--warmup must be steps such as 500, or a share such as 5%, got {text!r}.") from None
    return units.whole_steps("schedule", "warmup", length, minimum=0, total=total)
