"""``eigencurve schedule``: make a schedule, show it, export it, or print code that uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigencurve.commands import options
from eigencurve.commands.output import read, require_writable, schedule_content, show_json, write
from eigencurve.commands.shell import new_app
from eigencurve.commands.sources import optional_subject
from eigencurve.planning.exports import SCHEDULE_SUFFIXES, csv_bytes
from eigencurve.planning.recipe import Recipe, load_schedule
from eigencurve.planning.snippets import ScheduleSource, snippet
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.eigencurve import Eigencurve

app = new_app()
EXPLANATION = (
    "Each interval serves one group of eigenvalues, the flattest directions first. By default its length is\n"
    "proportional to the square root of the group's size. The rate is lr / D; D starts at 1 and grows by slope a step."
)


@app.command()
def schedule(
    spectrum: options.SpectrumWord = None,
    power_law: options.PowerLawExponent = None,
    kappa: options.Kappa = None,
    kind: options.Kind = "eigencurve",
    steps: options.Steps = None,
    epochs: options.Epochs = None,
    steps_per_epoch: options.StepsPerEpoch = None,
    lr: Annotated[float, typer.Option(help="Initial learning rate; with --warmup, the peak rate.")] = 0.1,
    min_lr: Annotated[float | None, typer.Option(help="Final learning rate. Default: depends on the kind.")] = None,
    warmup: options.Warmup = "0",
    weight_decay: options.WeightDecay = None,
    beta: Annotated[
        float | None,
        typer.Option(help="eigencurve: ratio of the group edges, 2 by default; 1 is the limit of fine groups."),
    ] = None,
    allocation: Annotated[
        str | None, typer.Option(help="eigencurve: how steps are divided among the groups, sqrt or optimal.")
    ] = None,
    rounding: Annotated[
        str | None, typer.Option(help="eigencurve: interval lengths, exact or released (whole steps).")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="cosine_power: exponent of the cosine.")] = None,
    r: Annotated[
        float | None,
        typer.Option("--r", help="elastic_step: the rate halves each time the remaining steps shrink by this factor."),
    ] = None,
    factor: Annotated[
        float | None, typer.Option(help="step_decay, multistep, hold_then_decay: factor by which the rate is divided.")
    ] = None,
    num_intervals: Annotated[int | None, typer.Option(help="step_decay: number of intervals.")] = None,
    milestones: Annotated[
        str | None, typer.Option(help="multistep: steps at which the rate falls, such as 1000,2000.")
    ] = None,
    hold: Annotated[int | None, typer.Option(help="hold_then_decay: number of steps before the first decay.")] = None,
    every: Annotated[int | None, typer.Option(help="hold_then_decay: number of steps between decays.")] = None,
    decay_steps: Annotated[int | None, typer.Option(help="wsd: number of steps of the final decay.")] = None,
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

    By default it is the Eigencurve schedule for the given spectrum. Other kinds need no spectrum.

    \b
    Examples:
      eigencurve schedule spectrum.npz --epochs 100 --steps-per-epoch 391 --lr 0.1
      eigencurve schedule resnet20_cifar10 --steps 39100 --beta 1 --min-lr 1e-4 -o curve.png -o curve.csv
      eigencurve schedule --power-law 1.5 --kappa 1e5 --steps 10000 --code torch
      eigencurve schedule --kind cosine --steps 10000 --warmup 500 --json
      eigencurve schedule --load best.json --code lightning -o train.py
    """
    settings = {
        "min_lr": min_lr, "beta": beta, "allocation": allocation, "rounding": rounding, "alpha": alpha, "r": r,
        "factor": factor, "num_intervals": num_intervals, "milestones": _steps_of(milestones), "hold": hold,
        "every": every, "decay_steps": decay_steps,
    }  # fmt: skip
    files = [path for path in output or [] if str(path) != "-"]
    form = _form(as_json, as_csv, code, to_output=len(files) < len(output or []))
    require_writable(files, (*SCHEDULE_SUFFIXES, ".py"), force)
    given = {name: value for name, value in settings.items() if value is not None}
    if load is not None:
        if given or warmup != "0" or any(word is not None for word in (spectrum, power_law, steps, epochs)):
            raise ValueError("--load cannot be combined with a spectrum or with options that define a schedule.")
        source: ScheduleSource = load_schedule(load, read(load))
    else:
        subject = optional_subject(spectrum, power_law, kappa, weight_decay)
        total = options.total_steps(steps, epochs, steps_per_epoch)
        decay = weight_decay or 0.0 if subject is None else subject.weight_decay
        source = Recipe(kind.replace("-", "_"), total, lr, subject, options.warmup_steps(warmup, total), given, decay)
    program = snippet(code or "torch", source)
    contents = [_content(source.schedule, path, program) for path in files]
    if form == "code" and any(path.suffix.lower() == ".py" for path in files):
        form = "text"  # the code is written to the file instead
    _show(source.schedule, form, program)
    for path, content in zip(files, contents, strict=True):
        write(path, content)


def _form(as_json: bool, as_csv: bool, code: str | None, to_output: bool) -> str:
    """The format to print: ``"json"``, ``"csv"``, ``"code"``, or ``"text"`` by default."""
    asked = [name for name, wanted in {"json": as_json, "csv": as_csv, "code": code is not None}.items() if wanted]
    if len(asked) > 1:
        raise ValueError("Pass only one of --json, --csv and --code. To get several formats, write files with -o.")
    return asked[0] if asked else "json" if to_output else "text"


def _show(schedule: Schedule, form: str, program: str) -> None:
    if form == "json":
        show_json(schedule.to_dict())
    elif form == "csv":
        typer.echo(csv_bytes(schedule).decode(), nl=False)
    elif form == "code":
        typer.echo(program, nl=False)
    else:
        typer.echo(schedule_text(schedule))


def schedule_text(schedule: Schedule) -> str:
    """Describe a schedule for people: its facts, its intervals and its curve."""
    body = schedule.schedule if isinstance(schedule, Warmup) else schedule
    lines = [body.describe()]
    if isinstance(schedule, Warmup):
        lines.append(
            f"preceded by {schedule.num_steps:,} steps of linear warmup; {schedule.total_steps:,} steps in total"
        )
    if isinstance(body, Eigencurve):
        lines.append(EXPLANATION)
    return "\n".join([*lines, "", schedule.preview()])


def _content(schedule: Schedule, path: Path, program: str) -> bytes:
    return program.encode() if path.suffix.lower() == ".py" else schedule_content(schedule, path)


def _steps_of(text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(part) for part in text.replace(" ", ",").split(",") if part)
    except ValueError:
        raise ValueError(f"--milestones must be a list of steps such as 1000,2000, got {text!r}.") from None
