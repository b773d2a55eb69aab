"""``eigencurve schedule``: make a schedule, show it, write it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eigencurve.commands import options
from eigencurve.commands.output import read, require_writable, show_json, write
from eigencurve.commands.shell import new_app
from eigencurve.commands.sources import any_subject
from eigencurve.planning.exports import FIGURE_SUFFIXES, csv_bytes, json_bytes
from eigencurve.planning.recipe import Recipe, load_schedule
from eigencurve.planning.snippets import Making, snippet
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.eigencurve import Eigencurve

app = new_app()
SCHEDULE_SUFFIXES = (".json", ".csv", *FIGURE_SUFFIXES)
EXPLANATION = (
    "Each interval serves one group of eigenvalues, the flattest directions first; its length grows with the square\n"
    "root of how many there are. Within it the rate falls as 1/(1 + slope t)."
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
    lr: Annotated[float, typer.Option(help="The initial learning rate; after a warmup, the peak.")] = 0.1,
    min_lr: Annotated[float | None, typer.Option(help="The last step's rate. Default: the kind's own.")] = None,
    warmup: options.Warmup = "0",
    weight_decay: options.WeightDecay = None,
    beta: Annotated[
        float | None, typer.Option(help="Eigencurve: ratio of the groups' edges, 2; 1 is the limit.")
    ] = None,
    allocation: Annotated[str | None, typer.Option(help="Eigencurve: interval lengths, sqrt or optimal.")] = None,
    rounding: Annotated[str | None, typer.Option(help="Eigencurve: exact, or released (whole steps).")] = None,
    alpha: Annotated[float | None, typer.Option(help="cosine_power: the power.")] = None,
    r: Annotated[float | None, typer.Option("--r", help="elastic_step: how fast intervals shrink.")] = None,
    factor: Annotated[float | None, typer.Option(help="Kinds with steps: what the rate is divided by.")] = None,
    num_intervals: Annotated[int | None, typer.Option(help="step_decay: how many intervals.")] = None,
    milestones: Annotated[str | None, typer.Option(help="multistep: steps, as in 1000,2000.")] = None,
    hold: Annotated[int | None, typer.Option(help="hold_then_decay: steps before the first fall.")] = None,
    every: Annotated[int | None, typer.Option(help="hold_then_decay: steps between falls.")] = None,
    decay_steps: Annotated[int | None, typer.Option(help="wsd: steps of the last, falling part.")] = None,
    load: Annotated[Path | None, typer.Option(help="A schedule's JSON file, in place of making one.")] = None,
    code: options.Code = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print step,lr for every step.")] = False,
    as_json: options.AsJson = False,
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", "--output", help="Write .json, .csv, .py, .png, .svg or .pdf; may be repeated; - is JSON."),
    ] = None,
    force: options.Force = False,
) -> None:
    """Make a learning-rate schedule; show it, write it, or print code.

    The schedule is Eigencurve's for the given spectrum, or any other --kind.

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
            raise ValueError("--load takes a schedule as it is: leave the options that make one out.")
        making: Making = load_schedule(load, read(load))
    else:
        subject = any_subject(spectrum, power_law, kappa, weight_decay)
        total = options.total_steps(steps, epochs, steps_per_epoch)
        decay = weight_decay or 0.0 if subject is None else subject.weight_decay
        making = Recipe(kind.replace("-", "_"), total, lr, subject, options.warmup_steps(warmup, total), given, decay)
    program = snippet(code or "torch", making)
    contents = [_content(making.schedule, path, program) for path in files]
    if form == "code" and any(path.suffix.lower() == ".py" for path in files):
        form = "text"  # the code goes to its file
    _show(making.schedule, form, program)
    for path, content in zip(files, contents, strict=True):
        write(path, content)


def _form(as_json: bool, as_csv: bool, code: str | None, to_output: bool) -> str:
    """What is printed: ``"json"``, ``"csv"``, ``"code"``, or ``"text"`` where nothing else is asked for."""
    asked = [name for name, wanted in {"json": as_json, "csv": as_csv, "code": code is not None}.items() if wanted]
    if len(asked) > 1:
        raise ValueError("Give one of --json, --csv and --code; files can be written beside it with -o.")
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
    """The schedule for people: what it is, its intervals, and its curve."""
    body = schedule.schedule if isinstance(schedule, Warmup) else schedule
    lines = [body.describe()]
    if isinstance(schedule, Warmup):
        lines.append(f"before it {schedule.num_steps:,} steps of linear warmup: {schedule.total_steps:,} steps in all")
    if isinstance(body, Eigencurve):
        lines.append(EXPLANATION)
    return "\n".join([*lines, "", schedule.preview()])


def schedule_content(schedule: Schedule, path: Path) -> bytes:
    """What a file of that name holds, by its ending: one of ``SCHEDULE_SUFFIXES``."""
    suffix = path.suffix.lower()
    if suffix == ".json":
        return json_bytes(schedule.to_dict())
    if suffix == ".csv":
        return csv_bytes(schedule)
    from eigencurve.figures.files import figure_bytes  # matplotlib, only if a figure is asked for
    from eigencurve.figures.rates import schedule_figure

    return figure_bytes(schedule_figure(schedule), suffix)


def _content(schedule: Schedule, path: Path, program: str) -> bytes:
    return program.encode() if path.suffix.lower() == ".py" else schedule_content(schedule, path)


def _steps_of(text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(part) for part in text.replace(" ", ",").split(",") if part)
    except ValueError:
        raise ValueError(f"--milestones must be whole steps such as 1000,2000, got {text!r}.") from None
