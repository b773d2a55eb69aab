"""``eigencurve fit``: forecasts of schedules from the logs of finished runs, and the best schedule."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from eigencurve.cli import options
from eigencurve.cli.output import ScheduleFiles, command_line, require_writable, show_json, warn, write, write_all
from eigencurve.cli.shell import new_app
from eigencurve.forecast.fit import fit_runs
from eigencurve.forecast.runs import LoggedRun
from eigencurve.planning.baselines import OPTIMUM
from eigencurve.planning.logs import (
    LoadedRuns,
    LogSettings,
    UsualForecasts,
    forecast_usual,
    plan_from_logs,
    read_runs,
    run_facts,
)
from eigencurve.schedules.comparison import percent

app = new_app()
BEYOND = "Schedules marked with * go beyond the logged runs. Trust their intervals less."
# Options for the arguments of load_run whose names differ.
OPTIONS = {"lr": "--lr-column", "warmup_steps": "--warmup", "schedule": "'schedule' of load_run in Python"}


@app.command()
@options.with_groups
def fit(
    logs: Annotated[
        list[Path],
        typer.Argument(metavar="LOG...", help="Logs of runs: CSV, JSON, a TensorBoard file, or a folder with one."),
    ],
    length: options.RunLength,
    columns: options.LogColumns,
    files: ScheduleFiles,
    max_lr: Annotated[
        float | None,
        typer.Option(help="Peak rate of the schedules, and highest rate of the best one. Default: the highest logged."),
    ] = None,
    best: Annotated[bool, typer.Option("--best", help="Also search for the best schedule.")] = False,
    run: Annotated[
        list[str] | None, typer.Option(help="Run to read, if a file or folder holds several. Can be repeated.")
    ] = None,
    warmup: Annotated[
        int | None, typer.Option(metavar="STEPS", help="Length of the linear warmup, if the logs begin after it.")
    ] = None,
    last_step: Annotated[int | None, typer.Option(help="Ignore everything after this step.")] = None,
    resumed: Annotated[
        bool, typer.Option("--resumed", help="Let later rows replace earlier ones: a run was resumed.")
    ] = False,
    as_json: options.AsJson = False,
    report: Annotated[
        Path | None, typer.Option(help="HTML page to write, or - for standard output. Implies --best.")
    ] = None,
) -> None:
    """Forecast schedules from the logs of finished runs.

    Fits a model of the loss to one or more runs of the same network, and forecasts the final loss of the usual
    schedules, with 80 % intervals. By default they are as long as the longest run, with its warmup and the highest
    logged peak rate. Two runs with different schedules, such as a constant and a decaying rate, are enough.
    To use the best schedule, write it with -o best.json and run `eigencurve schedule --load best.json --code torch`.

    \b
    Examples:
      eigencurve fit constant.csv cosine.csv --steps 50000
      eigencurve fit constant.csv cosine.csv --steps 50000 --best -o best.json
      eigencurve fit lightning_logs/version_0 lightning_logs/version_1 --loss val_loss --report forecast.html
      eigencurve fit wandb_export.csv --run first --run second --warmup 500 --json
    """
    if as_json and str(report) == "-":
        raise ValueError("Pass only one of --json and --report -: both print on standard output.")
    files.check()
    require_writable([] if report is None else [report], (".html", ".htm"), files.force)
    total = length.total if length.is_given else None
    settings = LogSettings(columns.loss, columns.lr_column, warmup, last_step, resumed)
    loaded = read_logs(logs, settings, run or [])
    _require_warmup(logs, settings, run or [], loaded)
    search = best or bool(files) or report is not None
    view = forecast_usual(fit_runs(loaded.runs), total, max_lr, search)
    contents = [] if view.best is None else files.contents(view.best.schedule)
    page = "" if report is None else _page(view, loaded)
    warn(loaded.warnings)
    if as_json:
        show_json(_fields(view, loaded))
    elif str(report) != "-":
        typer.echo("\n".join(_lines(view, loaded)))
    write_all(contents)
    if report is not None:
        write(report, page.encode())


def read_logs(logs: list[Path], settings: LogSettings, names: list[str]) -> LoadedRuns:
    """Read logs, with warnings that name the options of the command line."""
    return read_runs(logs, settings, names, _option)


def _option(argument: str) -> str:
    return OPTIONS.get(argument, f"--{argument.replace('_', '-')}")


def _require_warmup(logs: list[Path], settings: LogSettings, names: list[str], loaded: LoadedRuns) -> None:
    """Refuse a warmup that changes nothing, because the logs show all rates."""
    if settings.warmup_steps is None:
        return
    try:
        shown = read_logs(logs, replace(settings, warmup_steps=None), names).runs
    except ValueError:  # the logs need it
        return
    if all(run.schedule == other.schedule for run, other in zip(loaded.runs, shown, strict=True)):
        remedy = "It only applies to logs that begin after their warmup."
        raise ValueError(f"--warmup must be left out: these logs show their own warmup. {remedy}")


def _page(view: UsualForecasts, loaded: LoadedRuns) -> str:
    """The plan from the same logs as a page, with the warnings about the logs."""
    lr = None if view.peak_lr == view.forecast.fitted.logged.highest_peak else view.peak_lr
    plan = plan_from_logs(view.forecast, view.total_steps, lr=lr)
    return replace(plan, warnings=(*loaded.warnings, *plan.warnings)).to_html(command_line())


def _lines(view: UsualForecasts, loaded: LoadedRuns) -> list[str]:
    rise = f", warmup {view.warmup_steps:,} steps" if view.warmup_steps else ""
    lines = [*map(_run_line, loaded.runs), ""]
    lines += [f"Forecast for {view.total_steps:,} steps, peak rate {view.peak_lr:.4g}{rise}", str(view.table)]
    if view.best is not None:
        lines += ["", "Best schedule", *(f"  {line}" for line in _best_lines(view)), "", view.best.schedule.preview()]
    starred = any(row.beyond for row in view.table.rows)
    warnings = [*view.forecast.warnings, *([BEYOND] if starred else [])] or ["Nothing beyond the intervals above."]
    narrower = f"It would narrow the intervals by about {100 * (1 - view.next_run.narrower):.0f} %."
    lines += ["", "What the fit is unsure about", *(f"  {sentence}" for sentence in warnings)]
    return [*lines, "", "Which short run would help most", f"  {view.next_run.reason} {narrower}"]


def _run_line(run: LoggedRun) -> str:
    facts = run_facts(run)
    metric = f" ({run.metric})" if run.metric else ""
    rise = f", warmup {facts['warmup_steps']:,} steps" if facts["warmup_steps"] else ", no warmup"
    return f"{run.name}: {len(run):,} losses{metric} to step {facts['last_step']:,}, peak rate {run.peak_lr:.4g}{rise}"


def _best_lines(view: UsualForecasts) -> list[str]:
    """Sentences about the best schedule; none if it was not asked for."""
    best = view.best
    if best is None:
        return []
    lines = [
        f"It ends at a loss of {best.loss:.4f} ({best.low:.4f} to {best.high:.4f}) after {view.total_steps:,} steps, "
        f"{_gain(view)}.",
        f"In the fitted model, no schedule with this warmup and rates up to {view.peak_lr:.4g} ends more than "
        f"{best.gap:.4f} below it.",
    ]
    if math.isinf(view.forecast.fit_for(view.peak_lr).logged.decay):
        lines.append("No logged run decays, so its decay is an assumption. Do not use it.")
    return lines


def _gain(view: UsualForecasts) -> str:
    """How the best schedule compares with the best of the others."""
    other = next(row for row in view.table.rows if row.name != OPTIMUM)
    pair = {row.name: row.schedule for row in (view.table[OPTIMUM], other)}
    rival = view.forecast.compare(pair, reference=OPTIMUM)[other.name]
    if rival.excess is None or rival.excess_low is None or rival.excess <= 0:
        return f"no lower than {other.label}"
    within = "; the difference is within the error of the forecast" if rival.excess_low <= 0 else ""
    return f"{percent(rival.excess).removeprefix('+')} below {other.label}, the best of the other schedules{within}"


def _fields(view: UsualForecasts, loaded: LoadedRuns) -> dict[str, Any]:
    """The forecast as plain values, ready for JSON."""
    advice, best = view.next_run, view.best
    fields: dict[str, Any] = {
        "runs": [run_facts(run) for run in loaded.runs],
        "warnings": list(loaded.warnings),
        "total_steps": view.total_steps,
        "max_lr": view.peak_lr,
        "warmup_steps": view.warmup_steps,
        "rows": [row.to_dict() for row in view.table.rows],
        "doubts": list(view.forecast.warnings),
        "next_run": {name: getattr(advice, name) for name in ("reason", "branch_step", "num_steps", "narrower")},
    }
    if best is not None:
        numbers = {name: getattr(best, name) for name in ("loss", "low", "high", "lower_bound", "gap", "status")}
        fields["best"] = {**numbers, "beyond": list(best.beyond), "schedule": best.schedule.to_dict()}
    return fields
