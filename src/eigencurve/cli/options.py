"""Options that several commands share, and their shell completion."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from eigencurve import _check
from eigencurve.planning.inputs import ASSUMED_NOISE
from eigencurve.planning.limits import RateLimit
from eigencurve.planning.training import OPTIMIZERS
from eigencurve.schedules import units
from eigencurve.spectrum.files import SUFFIX_WORDS, SUFFIXES

# A typo such as 1e444 must not make a number of that many digits.
MOST_DIGITS = 18


def whole_number(text: str | int) -> int:
    """A whole number as people type it: 39100, 39_100 or 1e4."""
    try:
        number = Decimal(text)
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite() or number.adjusted() >= MOST_DIGITS or number != int(number):
        raise typer.BadParameter(f"{text!r} is not a whole number such as 39100 or 1e4.")
    return int(number)


def _complete_spectrum(incomplete: str) -> Iterator[str]:
    """Complete names of the zoo, spectrum files, and folders."""
    from eigencurve.spectrum.zoo import ZOO

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
    from eigencurve.planning.snippets import FRAMEWORKS

    yield from (name for name in FRAMEWORKS if name.startswith(incomplete))


SPECTRUM_HELP = f"Spectrum: a file ({SUFFIX_WORDS}), a name listed by `eigencurve zoo`, or - for standard input."
SpectrumWord = Annotated[
    str | None, typer.Argument(metavar="SPECTRUM", help=SPECTRUM_HELP, autocompletion=_complete_spectrum)
]
OneSpectrum = Annotated[str, typer.Argument(metavar="SPECTRUM", help=SPECTRUM_HELP, autocompletion=_complete_spectrum)]
SpectrumFile = Annotated[
    Path, typer.Argument(metavar="OUTPUT", help=f"File to write ({SUFFIX_WORDS}), or - to print JSON.")
]
ZooName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Name of a spectrum, as listed by `eigencurve zoo`.", autocompletion=_complete_zoo
    ),
]
PowerLawExponent = Annotated[
    float | None,
    typer.Option(
        "--power-law", metavar="ALPHA", help="Assume a power law with this exponent instead of a measured spectrum."
    ),
]
Kappa = Annotated[float | None, typer.Option(help="Condition number L/mu of the power law.")]
WeightDecay = Annotated[
    float | None,
    typer.Option(
        help="Weight decay of the training run. Default: the value stored with the spectrum; 5e-4 for a power law."
    ),
]
Kind = Annotated[
    str,
    typer.Option(
        help="Kind of schedule: eigencurve, cosine, linear, step_decay, … (press Tab for all).",
        autocompletion=_complete_kind,
    ),
]
Code = Annotated[
    str | None,
    typer.Option(
        help="Print code for torch, lightning, transformers, keras or optax.", autocompletion=_complete_framework
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(metavar="STEPS", parser=whole_number, help="Total number of optimizer steps, such as 39100 or 1e4."),
]
Epochs = Annotated[float | None, typer.Option(help="Number of epochs, in place of --steps; needs --steps-per-epoch.")]
StepsPerEpoch = Annotated[int | None, typer.Option(help="Number of steps per epoch: training examples / batch size.")]
Warmup = Annotated[
    str,
    typer.Option(
        metavar="STEPS", help="Warmup, included in the total: a number of steps, or a share of the run such as 5%."
    ),
]
WarmupShape = Annotated[str, typer.Option(help="Shape of the warmup: linear, cosine or exponential.")]
Noise = Annotated[
    float | None,
    typer.Option(
        help="Gradient noise sigma^2, of covariance sigma^2 H. Default: the noise measured with the spectrum, or "
        f"{ASSUMED_NOISE:g} times the initial error."
    ),
]
BatchSize = Annotated[
    int | None, typer.Option(help="Batch size of the run, if it is not the one that the noise was measured for.")
]
InitialError = Annotated[
    float | None,
    typer.Option(
        help="Initial error lambda (w_0 - w_*)^2 of every coordinate. Default: the start measured with the spectrum; "
        "an excess loss of 1 if only the noise was measured; else 1."
    ),
]
MaxLr = Annotated[
    float | None,
    typer.Option(help="Largest learning rate allowed. Default: the largest stable one, 2/L without momentum."),
]
PeakRate = Annotated[
    float | None,
    typer.Option(
        help="Initial learning rate; with --warmup, the peak rate. Default: half the largest stable rate of the "
        "spectrum, 1/L without momentum; a schedule without a spectrum needs it.",
        show_default=False,
    ),
]
Momentum = Annotated[
    float, typer.Option(help="Momentum of SGD: heavy ball, or Nesterov with --nesterov. It has no certificate.")
]
Optimizer = Annotated[
    str | None,
    typer.Option(
        help=f"Optimizer of the run: {', '.join(OPTIMIZERS)}. Default: that of the spectrum's metric, or sgd."
    ),
]
Nesterov = Annotated[bool, typer.Option("--nesterov", help="Use Nesterov momentum, as in PyTorch.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


def total_steps(steps: int | None, epochs: float | None, steps_per_epoch: int | None) -> int:
    """The number of steps given by ``--steps``, or by ``--epochs`` and ``--steps-per-epoch``."""
    if steps is not None:
        if epochs is not None or steps_per_epoch is not None:
            raise ValueError("Pass either --steps, or --epochs and --steps-per-epoch, not both.")
        return _check.whole("run", "steps", steps, minimum=1)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("The length of the run is missing: pass --steps, or --epochs and --steps-per-epoch.")
    return units.whole_steps("run", "epochs", units.epochs(epochs, steps_per_epoch), minimum=1)


def rates_line(limit: RateLimit, rate: float | None, momentum: float, nesterov: bool) -> str:
    """A line about the rates of a comparison: their limit, the given one if it is above, and the momentum."""
    kind = "Nesterov" if nesterov else "heavy ball"
    return f"Rates: {limit.about(rate)}" + (f"; momentum {momentum:g}, {kind}" if momentum else "")


def rate_or_half(lr: float | None, limit: RateLimit | None) -> float:
    """The rate given by ``--lr``, or half the largest stable one if there is a spectrum."""
    if lr is not None:
        return _check.positive("run", "lr", lr)
    if limit is None:
        raise ValueError("--lr is missing. Without a spectrum, no rate can be suggested: pass your peak rate.")
    return limit.rate / 2


def half_rate_line(limit: RateLimit) -> str:
    """A line about the rate that is used if none is given."""
    return f"peak rate {limit.rate / 2:.4g}: half the {limit}; pass --lr to set it"


def warmup_steps(text: str, total: int) -> int:
    """The number of warmup steps given by ``--warmup``."""
    return steps_or_share("--warmup", text, total)


def steps_or_share(option: str, text: str, total: int, minimum: int = 0) -> int:
    """The number of steps given by a number such as 500 or 1e3, or by a share of the run such as 5%.

    Args:
        option: Name of the option, for error messages.
        text: What the user typed.
        total: Number of steps of the whole run.
        minimum: Smallest number of steps allowed.
    """
    try:
        length = units.fraction(float(text[:-1]) / 100) if text.endswith("%") else whole_number(text)
    except (ValueError, typer.BadParameter):
        need = "a number of steps such as 500 or 1e3, or a share of the run such as 5%"
        raise ValueError(f"{option} must be {need}, got {text!r}.") from None
    return units.whole_steps("run", option.removeprefix("--").replace("-", "_"), length, minimum, total)
