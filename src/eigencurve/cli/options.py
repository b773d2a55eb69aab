"""Options that several commands share, alone and in groups, and their shell completion."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from eigencurve import _check
from eigencurve.cli.shell import options_of
from eigencurve.planning.code import FRAMEWORKS
from eigencurve.planning.result import OPTIMIZERS
from eigencurve.planning.warnings import RateLimit
from eigencurve.schedules import units
from eigencurve.schedules.kinds import FACTORIES
from eigencurve.spectrum.files import SUFFIX_WORDS, SUFFIXES
from eigencurve.spectrum.source import ASSUMED_NOISE
from eigencurve.spectrum.zoo import ZOO

# A typo such as 1e444 must not make a number of that many digits.
MOST_DIGITS = 18


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take groups of options: every field of an argument that is a dataclass becomes an option."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if dataclasses.is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += _options_of(parameter.annotation)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def expanded(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in dataclasses.fields(group)})
        command(**values)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(field.name, kind, default=field.default, annotation=hints[field.name])
        for field in dataclasses.fields(group)
    ]


def whole_number(text: str | int) -> int:
    """A whole number as people type it: 39100, 39_100 or 1e4."""
    try:
        number = Decimal(text)
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite() or number.adjusted() >= MOST_DIGITS or number != int(number):
        raise typer.BadParameter(f"{text!r} is not a whole number such as 39100 or 1e4.")
    return int(number)


def steps_or_share(text: str, name: str, total: int, minimum: int = 0) -> int:
    """A number of steps such as 500 or 1e3, or a share of the run such as 5%.

    Args:
        text: What the user typed.
        name: Argument that it sets, for messages.
        total: Number of steps of the whole run.
        minimum: Smallest number of steps allowed.
    """
    try:
        length = units.fraction(float(text[:-1]) / 100) if text.endswith("%") else whole_number(text)
    except (ValueError, typer.BadParameter):
        need = "a number of steps such as 500 or 1e3, or a share of the run such as 5%"
        _check.refuse("run", name, need, text)
    return units.whole_steps("run", name, length, minimum, total)


def _complete_spectrum(incomplete: str) -> Iterator[str]:
    """Complete names of the zoo, spectrum files, and folders."""
    yield from _starting(ZOO, incomplete)
    folder = Path(incomplete).parent if not incomplete.endswith("/") else Path(incomplete)
    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        name = f"{path}/" if path.is_dir() else str(path)
        if name.startswith(incomplete) and (path.is_dir() or path.suffix.lower() in SUFFIXES):
            yield name


def _complete_zoo(incomplete: str) -> Iterator[tuple[str, str]]:
    yield from ((name, ZOO[name].network) for name in _starting(ZOO, incomplete))


def _complete_kind(incomplete: str) -> list[str]:
    return _starting(FACTORIES, incomplete.replace("-", "_"))


def _complete_framework(incomplete: str) -> list[str]:
    return _starting(FRAMEWORKS, incomplete)


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


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
Warmup = Annotated[
    str,
    typer.Option(
        metavar="STEPS", help="Warmup, included in the total: a number of steps, or a share of the run such as 5%."
    ),
]
Noise = Annotated[
    float | None,
    typer.Option(
        help="Gradient noise sigma^2, of covariance sigma^2 H. Default: the noise measured with the spectrum, or "
        f"{ASSUMED_NOISE:g} times the initial error."
    ),
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
AnyMomentum = Annotated[
    float | None, typer.Option(help="Momentum of SGD, or beta1 of Adam. Default: 0 for SGD, 0.9 for Adam.")
]
Nesterov = Annotated[bool, typer.Option("--nesterov", help="Use Nesterov momentum, as in PyTorch.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


@dataclass(frozen=True)
class RunLength:
    """The number of steps of a run."""

    steps: Annotated[
        int | None,
        typer.Option(
            metavar="STEPS", parser=whole_number, help="Total number of optimizer steps, such as 39100 or 1e4."
        ),
    ] = None
    epochs: Annotated[
        float | None, typer.Option(help="Number of epochs, in place of --steps; needs --steps-per-epoch.")
    ] = None
    steps_per_epoch: Annotated[
        int | None, typer.Option(help="Number of steps per epoch: training examples / batch size.")
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether there is any of the options."""
        return (self.steps, self.epochs, self.steps_per_epoch) != (None, None, None)

    @property
    def total(self) -> int:
        """The total number of steps."""
        if self.steps is not None:
            if self.epochs is not None or self.steps_per_epoch is not None:
                raise ValueError("Pass either --steps, or --epochs and --steps-per-epoch, not both.")
            return _check.whole("run", "steps", self.steps, minimum=1)
        if self.epochs is None or self.steps_per_epoch is None:
            raise ValueError("The length of the run is missing: pass --steps, or --epochs and --steps-per-epoch.")
        return units.whole_steps("run", "epochs", units.epochs(self.epochs, self.steps_per_epoch), minimum=1)


@dataclass(frozen=True)
class Optimizer:
    """The optimizer of a run, for the largest stable rate and the generated code."""

    optimizer: Annotated[
        str | None,
        typer.Option(
            help=f"Optimizer of the run: {', '.join(OPTIMIZERS)}. Default: that of the spectrum's metric, or sgd. "
            "Without a spectrum, code uses your optimizer."
        ),
    ] = None
    momentum: AnyMomentum = None
    nesterov: Nesterov = False


@dataclass(frozen=True)
class Momentum:
    """The momentum of SGD."""

    momentum: Annotated[
        float, typer.Option(help="Momentum of SGD: heavy ball, or Nesterov with --nesterov. It has no certificate.")
    ] = 0.0
    nesterov: Nesterov = False


@dataclass(frozen=True)
class LogColumns:
    """The columns of logs."""

    loss: Annotated[
        str | None, typer.Option(help="Column with the loss. Default: the only one, or that of the validation.")
    ] = None
    lr_column: Annotated[str | None, typer.Option(help="Column with the learning rate, if a log has several.")] = None


def rates_line(limit: RateLimit, rate: float | None, momentum: Momentum) -> str:
    """A line about the rates of a comparison: their limit, the given one if it is above, and the momentum."""
    kind = "Nesterov" if momentum.nesterov else "heavy ball"
    return f"Rates: {limit.about(rate)}" + (f"; momentum {momentum.momentum:g}, {kind}" if momentum.momentum else "")


def was_typed(context: typer.Context, name: str) -> bool:
    """Whether the user typed an option, with whatever value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def require_applicable(
    context: typer.Context, case: str, cases: Mapping[str, str], applies: Mapping[str, Sequence[str]]
) -> None:
    """Refuse the options that the user typed but that do nothing in this case.

    Args:
        context: Context of the command.
        case: One of ``cases``.
        cases: Words for each case, such as ``"with a spectrum"``.
        applies: The cases in which an option applies; an option that is not listed always does.
    """
    for name, option in options_of(context.command).items():
        if case not in applies.get(name, (case,)) and was_typed(context, name):
            others = " or ".join(cases[other] for other in applies[name])
            raise ValueError(f"{option} must be left out {cases[case]}. It only applies {others}.")
