"""``eigencurve schedule``: make a schedule, show it, export it, or print code that uses it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from eigencurve.cli import options
from eigencurve.cli.applicable import require_applicable
from eigencurve.cli.output import read, require_writable, schedule_content, show_json, warn, write
from eigencurve.cli.shell import new_app
from eigencurve.cli.sources import optional_subject, required_subject
from eigencurve.planning.doubts import doubts
from eigencurve.planning.exports import SCHEDULE_SUFFIXES, csv_bytes
from eigencurve.planning.from_spectrum import training_for
from eigencurve.planning.limits import RateLimit, rate_limit, require_meant
from eigencurve.planning.recipe import Recipe, load_schedule
from eigencurve.planning.snippets import ScheduleSource, snippet
from eigencurve.planning.training import OPTIMIZERS, training_of
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import Warmup
from eigencurve.schedules.eigencurve import Eigencurve

app = new_app()
LOADED = (
    "{} does not record the momentum it was made for: {:g} multiplies its effective rate by {:.3g}. Use it only if the "
    "schedule was compared with this momentum."
)
# Settings of the optimizer: for the largest stable rate of a spectrum, and for the code.
TRAINING = ("optimizer", "momentum", "nesterov", "weight_decay")
# In which cases an option applies.
MODES = {
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


@app.command()
def schedule(
    context: typer.Context,
    spectrum: options.SpectrumWord = None,
    power_law: options.PowerLawExponent = None,
    kappa: options.Kappa = None,
    kind: options.Kind = "eigencurve",
    steps: options.Steps = None,
    epochs: options.Epochs = None,
    steps_per_epoch: options.StepsPerEpoch = None,
    lr: options.PeakRate = None,
    min_lr: Annotated[float | None, typer.Option(help="Final learning rate. Default: depends on the kind.")] = None,
    warmup: options.Warmup = "0",
    warmup_shape: options.WarmupShape = "linear",
    optimizer: Annotated[
        str | None,
        typer.Option(
            help=f"Optimizer of the run, for the largest stable rate and the generated code: {', '.join(OPTIMIZERS)}. "
            "Default: that of the spectrum's metric. Without a spectrum, the code uses yours."
        ),
    ] = None,
    weight_decay: options.WeightDecay = None,
    momentum: Annotated[
        float | None,
        typer.Option(
            help="Momentum of SGD, or beta1 of Adam, for the largest stable rate and the generated code. Default: 0 "
            "for SGD, 0.9 for Adam.",
            show_default=False,
        ),
    ] = None,
    nesterov: options.Nesterov = False,
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
    power: Annotated[float | None, typer.Option(help="polynomial: exponent of the decay, 1 by default.")] = None,
    timescale: Annotated[
        str | None, typer.Option(metavar="STEPS", help="inverse_sqrt: steps after which the rate is lr/sqrt(2).")
    ] = None,
    pct_start: Annotated[
        float | None, typer.Option(help="one_cycle: fraction of the run in which the rate rises, 0.3 by default.")
    ] = None,
    div_factor: Annotated[float | None, typer.Option(help="one_cycle: peak rate / first rate, 25 by default.")] = None,
    final_div_factor: Annotated[
        float | None, typer.Option(help="one_cycle: first rate / last rate, 10,000 by default.")
    ] = None,
    anneal: Annotated[str | None, typer.Option(help="one_cycle: shape of its phases, cosine or linear.")] = None,
    three_phase: Annotated[
        bool, typer.Option("--three-phase", help="one_cycle: fall to the first rate before the last rate.")
    ] = False,
    r: Annotated[
        float | None,
        typer.Option("--r", help="elastic_step: the rate halves each time the remaining steps shrink by this factor."),
    ] = None,
    factor: Annotated[
        float | None, typer.Option(help="step_decay, multistep, hold_then_decay: factor by which the rate is divided.")
    ] = None,
    num_intervals: Annotated[int | None, typer.Option(help="step_decay: number of intervals.")] = None,
    milestones: Annotated[
        str | None, typer.Option(help="multistep: steps at which the rate falls, such as 1000,2000 or 50%,75%.")
    ] = None,
    hold: Annotated[
        str | None, typer.Option(metavar="STEPS", help="hold_then_decay: number of steps before the first decay.")
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="STEPS", help="hold_then_decay: number of steps between decays.")
    ] = None,
    decay_steps: Annotated[
        str | None,
        typer.Option(metavar="STEPS", help="wsd: length of the final decay in steps, or a share such as 20%."),
    ] = None,
    decay: Annotated[
        float | None, typer.Option(help="wsd_cycles: length of each decay as a fraction of its cycle, 0.2 by default.")
    ] = None,
    tail: Annotated[
        str | None, typer.Option(help="wsd, wsd_cycles: shape of the decay: linear, 1-sqrt, cosine, exponential, …")
    ] = None,
    num_cycles: Annotated[int | None, typer.Option(help="wsd_cycles: number of cycles, 3 by default.")] = None,
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
      eigencurve schedule resnet20_cifar10 --steps 39100 --beta 1 --min-lr 1e-4 -o curve.png -o curve.csv
      eigencurve schedule --power-law 1.5 --kappa 1e5 --steps 10000 --code torch
      eigencurve schedule --kind cosine --steps 10000 --lr 0.1 --warmup 500 --json
      eigencurve schedule --kind wsd --steps 1e4 --lr 0.1 --decay-steps 20% --tail 1-sqrt
      eigencurve schedule --load best.json --code lightning -o train.py
    """
    files = [path for path in output or [] if str(path) != "-"]
    form = _form(as_json, as_csv, code, to_output=len(files) < len(output or []))
    settings = {
        "min_lr": min_lr, "beta": beta, "allocation": allocation, "rounding": rounding, "alpha": alpha, "r": r,
        "factor": factor, "num_intervals": num_intervals, "power": power, "pct_start": pct_start,
        "div_factor": div_factor, "final_div_factor": final_div_factor, "anneal": anneal,
        "three_phase": three_phase or None, "decay": decay, "tail": tail, "num_cycles": num_cycles,
    }  # fmt: skip
    lengths = {"timescale": timescale, "hold": hold, "every": every, "decay_steps": decay_steps}
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    typed = {name: text for name, text in {**lengths, "milestones": milestones}.items() if text is not None}
    files_of_code = any(path.suffix.lower() == ".py" for path in files)
    _require_applicable(context, load, spectrum, power_law, warmup, code is not None or files_of_code)
    sentences: list[str] = []
    rates = ""
    if load is not None:
        training = training_of(optimizer, momentum, nesterov, weight_decay)
        source: ScheduleSource = replace(load_schedule(load, read(load)), training=training)
        if momentum and not training.is_adam:
            sentences = [LOADED.format(load, momentum, 1 / (1 - momentum))]
    else:
        total = options.total_steps(steps, epochs, steps_per_epoch)
        name_of_kind = kind.replace("-", "_")
        chosen = required_subject if name_of_kind == "eigencurve" else optional_subject
        subject = chosen(spectrum, power_law, kappa, weight_decay)
        for name, text in typed.items():
            given[name] = _steps_of(text, total) if name == "milestones" else _length(name, text, total)
        if subject is None:
            training, limit = training_of(optimizer, momentum, nesterov, weight_decay), None
        else:
            training = training_for(subject, optimizer, momentum, nesterov)
            limit = rate_limit(subject, training.optimizer, momentum, nesterov)
            heading = f"{subject.heading}\n" if subject.negative_text else ""
            rates = f"{heading}{_rates_line(lr, limit)}"
            length = total if name_of_kind == "eigencurve" and min_lr is None else None
            sentences = [*doubts(subject, length, optimizer)]
        require_meant("schedule", training.optimizer, limit, lr=lr)
        source = Recipe(
            name_of_kind,
            total,
            options.rate_or_half(lr, limit),
            subject,
            options.warmup_steps(warmup, total),
            given,
            training,
            warmup_shape,
        )
    program = snippet(code or "torch", source)
    require_writable(files, (*SCHEDULE_SUFFIXES, ".py"), force)
    warn(sentences)
    contents = [_content(source.schedule, path, program) for path in files]
    if form == "code" and files_of_code:
        form = "text"  # the code is written to the file instead
    _show(source.schedule, form, program, rates)
    for path, content in zip(files, contents, strict=True):
        write(path, content)


def _require_applicable(
    context: typer.Context, load: Path | None, spectrum: str | None, law: float | None, warmup: str, has_code: bool
) -> None:
    """Refuse the options that would change neither the schedule nor what is printed about it."""
    if load is not None:
        every = {str(parameter.name): ("made",) for parameter in context.command.params}
        kept = {"load", *TRAINING, "code", "as_csv", "as_json", "output", "force"}
        require_applicable(context, "load", MODES, {name: modes for name, modes in every.items() if name not in kept})
    if warmup == "0":
        require_applicable(context, "plain", MODES, {"warmup_shape": ("warmup",)})
    if not has_code and (load is not None or (spectrum is None and law is None)):
        require_applicable(context, "no code", MODES, dict.fromkeys(TRAINING, ("code", "spectrum")))


def _form(as_json: bool, as_csv: bool, code: str | None, to_output: bool) -> str:
    """The format to print: ``"json"``, ``"csv"``, ``"code"``, or ``"text"`` by default."""
    asked = [name for name, wanted in {"json": as_json, "csv": as_csv, "code": code is not None}.items() if wanted]
    if len(asked) > 1:
        raise ValueError("Pass only one of --json, --csv and --code. To get several formats, write files with -o.")
    return asked[0] if asked else "json" if to_output else "text"


def _rates_line(lr: float | None, limit: RateLimit) -> str:
    """The rate that was chosen, or what there is to say about the given one."""
    return options.half_rate_line(limit) if lr is None else limit.about(lr)


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


def _length(name: str, text: str, total: int) -> int:
    return options.steps_or_share("--" + name.replace("_", "-"), text, total, minimum=0 if name == "hold" else 1)


def _steps_of(text: str, total: int) -> tuple[int, ...]:
    parts = [part for part in text.replace(" ", ",").split(",") if part]
    try:
        return tuple(options.steps_or_share("--milestones", part, total, minimum=1) for part in parts)
    except ValueError:
        raise ValueError(f"--milestones must be a list of steps such as 1000,2000 or 50%,75%, got {text!r}.") from None
