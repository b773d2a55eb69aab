"""``eigencurve fit``: forecasts of schedules from the logs of finished runs, and the best schedule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from eigencurve.cli import options
from eigencurve.cli.output import ScheduleFiles, command_line, require_writable, show_json, warn, write, write_all
from eigencurve.cli.shell import new_app
from eigencurve.planning.forecasts import (
    ForecastView,
    LoadedRuns,
    LogSettings,
    best_lines,
    doubt_lines,
    forecast_fields,
    forecast_view,
    next_run_line,
    plan_from_view,
    read_runs,
    run_line,
)

app = new_app()
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
    view = forecast_view(loaded.runs, total, max_lr, search)
    contents = [] if view.best is None else files.contents(view.best.schedule)
    page = "" if report is None else plan_from_view(view, loaded.warnings).to_html(command_line())
    warn(loaded.warnings)
    if as_json:
        show_json(forecast_fields(view, loaded.warnings))
    elif str(report) != "-":
        typer.echo("\n".join(_lines(view)))
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


def _lines(view: ForecastView) -> list[str]:
    rise = f", warmup {view.warmup_steps:,} steps" if view.warmup_steps else ""
    lines = [*(run_line(run) for run in view.runs), ""]
    lines += [f"Forecast for {view.total_steps:,} steps, peak rate {view.peak_lr:.4g}{rise}", str(view.table)]
    if view.best is not None:
        lines += ["", "Best schedule", *(f"  {line}" for line in best_lines(view)), "", view.best.schedule.preview()]
    lines += ["", "What the fit is unsure about", *(f"  {doubt}" for doubt in doubt_lines(view))]
    return [*lines, "", "Which short run would help most", f"  {next_run_line(view.next_run)}"]
