"""``eigencurve schedule``: make a schedule, show it, export it, or print code that uses it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from eigencurve import _check
from eigencurve.cli import options
from eigencurve.cli.output import (
    SCHEDULE_SUFFIXES,
    read,
    require_writable,
    schedule_content,
    show_json,
    warn,
    write_all,
)
from eigencurve.cli.shell import new_app
from eigencurve.cli.sources import SpectrumOptions
from eigencurve.planning.code import ScheduleCode, load_schedule, training_code
from eigencurve.planning.result import training_of
from eigencurve.planning.spectrum import training_for
from eigencurve.planning.warnings import RateLimit, rate_limit, require_plausible, spectrum_warnings
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.schedules.kinds import FACTORIES, csv_bytes, require_settings, settings_of

app = new_app()
LOADED = (
    "{} does not record the momentum it was made for: {:g} multiplies its effective rate by {:.3g}. Use it only if the "
    "schedule was compared with this momentum."
)
# Settings of the optimizer: for the largest stable rate of a spectrum, and for the code.
TRAINING = ("optimizer", "momentum", "nesterov", "weight_decay")
# The options that apply to a loaded schedule.
WITH_LOAD = {"load", *TRAINING, "code", "as_csv", "as_json", "output", "force"}
# In which cases an option applies.
CASES = {
    "load": "with --load: the file holds the schedule",
    "made": "without --load",
    "plain": "without --warmup",
    "warmup": "with --warmup",
    "no code": "without a spectrum and without code",
    "code": "with --code or -o FILE.py",
    "spectrum": "with a spectrum",
}
EXPLANATION = (
    "Each interval serves one group of eigenvalues, the flattest directions first. By default its length is\n"
    "proportional to the square root of the group's size. The rate is lr / D; D starts at 1 and grows by slope a step."
)
# Settings that are lists, also of one number.
LISTS = ("milestones", "ends")
OWN_SETTINGS = {kind: [name for name in settings_of(kind) if name != "min_lr"] for kind in FACTORIES}
SETTINGS_HELP = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in OWN_SETTINGS.items() if names)


@dataclass(frozen=True)
class Shape:
    """What kind of schedule to make."""

    kind: options.Kind = "eigencurve"
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Setting of the kind, such as power=2, decay_steps=20% or milestones=1000,2000. Can be repeated. "
            f"{SETTINGS_HELP}.",
        ),
    ] = None
    lr: Annotated[
        float | None,
        typer.Option(
            help="Initial learning rate; with --warmup, the peak rate. Default: half the largest stable rate of the "
            "spectrum, 1/L without momentum; a schedule without a spectrum needs it.",
        ),
    ] = None
    min_lr: Annotated[float | None, typer.Option(help="Final learning rate. Default: depends on the kind.")] = None
    warmup: options.Warmup = "0"
    warmup_shape: Annotated[str, typer.Option(help="Shape of the warmup: linear, cosine or exponential.")] = "linear"


class Made(NamedTuple):
    """A schedule with its code, what to say about its peak rate, and warnings."""

    code: ScheduleCode
    rates: str
    warnings: list[str]


@app.command()
@options.with_groups
def schedule(
    context: typer.Context,
    source: SpectrumOptions,
    length: options.RunLength,
    shape: Shape,
    optimizer: options.Optimizer,
    load: Annotated[Path | None, typer.Option(help="Load a schedule from its JSON file instead of making one.")] = None,
    code: options.Code = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print step,lr for every step as CSV.")] = False,
    as_json: options.AsJson = False,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            help="File to write (.json, .csv, .py, .png, .svg or .pdf), or - to print JSON. Can be repeated.",
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Make a learning-rate schedule, export it, or print code.

    By default it is the Eigencurve schedule for the given spectrum. Other kinds need no spectrum, but --lr. The largest
    stable rate of the spectrum is printed; a rate above it is pointed out.

    \b
    Examples:
      eigencurve schedule spectrum.npz --epochs 100 --steps-per-epoch 391 --lr 0.1
      eigencurve schedule resnet20_cifar10 --steps 39100 --set beta=1 --min-lr 1e-4 -o curve.png -o curve.csv
      eigencurve schedule --power-law 1.5 --kappa 1e5 --steps 10000 --code torch
      eigencurve schedule --kind cosine --steps 10000 --lr 0.1 --warmup 500 --json
      eigencurve schedule --kind wsd --steps 1e4 --lr 0.1 --set decay_steps=20% --set tail=1-sqrt
      eigencurve schedule --load best.json --code lightning -o train.py
    """
    files = [path for path in output or [] if str(path) != "-"]
    form = _form(as_json, as_csv, code, to_output=len(files) < len(output or []))
    writes_code = any(path.suffix.lower() == ".py" for path in files)
    has_code = code is not None or writes_code
    _require_applicable(context, load, shape, has_code or _has_spectrum(source))
    made = _make(source, length, shape, optimizer) if load is None else _load(load, optimizer, source.weight_decay)
    program = training_code(code or "torch", made.code)
    require_writable(files, (*SCHEDULE_SUFFIXES, ".py"), force)
    warn(made.warnings)
    contents = [(path, _content(made.code.schedule, path, program)) for path in files]
    if form == "code" and writes_code:
        form = "text"  # the code is written to the file instead
    _show(made.code.schedule, form, program, made.rates)
    write_all(contents)


def _load(path: Path, optimizer: options.Optimizer, weight_decay: float | None) -> Made:
    """The schedule of a JSON file."""
    training = training_of(**vars(optimizer), weight_decay=weight_decay)
    warnings = []
    if optimizer.momentum and not training.is_adam:
        warnings = [LOADED.format(path, optimizer.momentum, 1 / (1 - optimizer.momentum))]
    return Made(ScheduleCode.from_file(path, load_schedule(path, read(path)), training), "", warnings)


def _make(source: SpectrumOptions, length: options.RunLength, shape: Shape, optimizer: options.Optimizer) -> Made:
    """The schedule of a kind, for a spectrum if there is one."""
    total, kind = length.total, shape.kind.replace("-", "_")
    spectrum = source.required if kind == "eigencurve" else source.optional
    settings = settings_from(shape.settings or [], total) | ({} if shape.min_lr is None else {"min_lr": shape.min_lr})
    require_settings(kind, settings)
    training, limit, rates, warnings = training_of(**vars(optimizer), weight_decay=source.weight_decay), None, "", []
    if spectrum is not None:
        training = training_for(spectrum, **vars(optimizer))
        limit = rate_limit(spectrum, training.optimizer, optimizer.momentum, optimizer.nesterov)
        heading = f"{spectrum.heading}\n" if spectrum.negative_text else ""
        rates = heading + (_half_rate_line(limit) if shape.lr is None else limit.about(shape.lr))
        judged = total if kind == "eigencurve" and shape.min_lr is None else None
        warnings = [*spectrum_warnings(spectrum, judged, optimizer.optimizer)]
    require_plausible("schedule", training.optimizer, limit, lr=shape.lr)
    rise, lr = options.steps_or_share(shape.warmup, "warmup", total), _rate_or_half(shape.lr, limit)
    code = ScheduleCode.of_kind(kind, total, lr, training, spectrum, rise, settings, shape.warmup_shape)
    return Made(code, rates, warnings)


def settings_from(words: list[str], total: int) -> dict[str, Any]:
    """The settings of a kind of schedule from words such as ``power=2``.

    >>> settings_from(["decay-steps=20%", "tail=1-sqrt"], total=500)
    {'decay_steps': 100, 'tail': '1-sqrt'}
    """
    settings: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip().replace("-", "_")
        if not (name and equals and text):
            raise ValueError(f"--set must be NAME=VALUE such as power=2, got {word!r}.")
        if name in settings:
            raise ValueError(f"--set {name} must be given once.")
        settings[name] = _value_of(text.strip(), name, total)
    return {name: (value,) if name in LISTS and isinstance(value, int) else value for name, value in settings.items()}


def _value_of(text: str, name: str, total: int) -> Any:
    """A setting as a number, a truth value, a list or text; a share such as 5% is a number of steps."""
    if "," in text:
        return tuple(_value_of(part.strip(), name, total) for part in text.split(",") if part.strip())
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.endswith("%"):
        return options.steps_or_share(text, name, total)
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _has_spectrum(source: SpectrumOptions) -> bool:
    return source.spectrum is not None or source.power_law is not None


def _require_applicable(context: typer.Context, load: Path | None, shape: Shape, uses_training: bool) -> None:
    """Refuse the options that would change neither the schedule nor what is printed about it."""
    if load is not None:
        names = {str(parameter.name) for parameter in context.command.params} - WITH_LOAD
        options.require_applicable(context, "load", CASES, dict.fromkeys(names, ("made",)))
    if shape.warmup == "0":
        options.require_applicable(context, "plain", CASES, {"warmup_shape": ("warmup",)})
    if not uses_training:
        options.require_applicable(context, "no code", CASES, dict.fromkeys(TRAINING, ("code", "spectrum")))


def _form(as_json: bool, as_csv: bool, code: str | None, to_output: bool) -> str:
    """The format to print: ``"json"``, ``"csv"``, ``"code"``, or ``"text"`` by default."""
    forms = [name for name, wanted in {"json": as_json, "csv": as_csv, "code": code is not None}.items() if wanted]
    if len(forms) > 1:
        raise ValueError("Pass only one of --json, --csv and --code. To get several formats, write files with -o.")
    return forms[0] if forms else "json" if to_output else "text"


def _rate_or_half(lr: float | None, limit: RateLimit | None) -> float:
    """The rate given by ``--lr``, or half the largest stable one if there is a spectrum."""
    if lr is not None:
        return _check.positive("schedule", "lr", lr)
    if limit is None:
        raise ValueError("--lr is missing. Without a spectrum, no rate can be suggested: pass your peak rate.")
    return limit.rate / 2


def _half_rate_line(limit: RateLimit) -> str:
    return f"peak rate {limit.rate / 2:.4g}: half the {limit}; pass --lr to set it"


def _show(schedule: Schedule, form: str, program: str, rates: str) -> None:
    if rates and form != "text":
        typer.echo(rates, err=True)
    if form == "json":
        show_json(schedule.to_dict())
    elif form == "csv":
        typer.echo(csv_bytes(schedule).decode(), nl=False)
    elif form == "code":
        typer.echo(program, nl=False)
    else:
        typer.echo("\n".join([rates] * bool(rates) + [schedule_text(schedule)]))


def schedule_text(schedule: Schedule) -> str:
    """Describe a schedule for people: its facts, its intervals and its curve."""
    body = schedule.schedule if isinstance(schedule, Warmup) else schedule
    lines = [body.describe()]
    if isinstance(schedule, Warmup):
        rise = f"preceded by {schedule.num_steps:,} steps of {schedule.shape} warmup"
        lines.append(f"{rise}; {schedule.total_steps:,} steps in total")
    if isinstance(body, Eigencurve):
        lines.append(EXPLANATION)
    return "\n".join([*lines, "", schedule.preview()])


def _content(schedule: Schedule, path: Path, program: str) -> bytes:
    return program.encode() if path.suffix.lower() == ".py" else schedule_content(schedule, path)
