"""load_run: a LoggedRun from the log that a trainer wrote."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigencurve import _check
from eigencurve._arrays import Array, IntArray
from eigencurve._check import Arg, ArgumentWarning, Words
from eigencurve.forecast.columns import is_loss, is_rate, named, split_of
from eigencurve.forecast.formats.delimited import read_delimited
from eigencurve.forecast.formats.entries import read_entries
from eigencurve.forecast.formats.events import looks_like_events, read_events
from eigencurve.forecast.formats.log import MAX_BYTES, Column, Keep, Log, listed, refuse_log
from eigencurve.forecast.logged_schedule import schedule_from_rates
from eigencurve.forecast.runs import MAX_STEPS, MIN_POINTS, LoggedRun
from eigencurve.schedules.base import Schedule

# File names that say nothing about the run; its folder does.
PLAIN_NAMES = ("metrics", "trainer_state", "log", "history", "progress")
EVENTS = "*tfevents*"
FOLDER_FILES = ("metrics.csv", "trainer_state.json")
CHECKPOINT = "checkpoint-"
# A repeated step whose losses differ by less than this fraction is one evaluation that was logged twice.
SAME_LOSS = 0.01
# A resumed run that loses more than this fraction of its steps is not one.
MOST_LOST = 0.5


def load_run(
    path: str | os.PathLike[str],
    schedule: Schedule | Sequence[float] | Array | None = None,
    loss: str | None = None,
    lr: str | None = None,
    run: str | None = None,
    warmup_steps: int | None = None,
    last_step: int | None = None,
    resumed: bool = False,
    name: str | None = None,
) -> LoggedRun:
    """Read the losses and the learning rates of a training run from its log.

    The format follows from the content of the file:

    - CSV with a header: columns such as ``step``, ``lr`` and ``loss``; the ``metrics.csv`` of Lightning, with blank
      cells; exports of Weights & Biases with columns ``<run> - <metric>``.
    - JSON: the ``trainer_state.json`` of transformers, a list of entries, or one entry per line.
    - TensorBoard's event files, or a folder with those of one run.

    The step of a loss is the number of optimizer steps before it. The learning rate at step t is that of the next
    update, from t to t + 1 completed steps; in ``trainer_state.json`` it is that of the last one. Trainers differ by
    one step here: Lightning logs a loss of the validation or of an epoch with the number of steps minus one, and
    transformers up to version 4.50 logs the next rate. Between logged rates the schedule is the straight line.

    If a step is repeated and its losses differ by less than 1 %, the last one counts.

    A loss that is a mean over the steps since the last entry, as ``loss`` in transformers, lags behind by half the
    interval between two entries. A validation loss has no lag and less noise, so prefer it if you have both.

    Args:
        path: Log file, or a folder with one, such as the output folder of transformers, whose last checkpoint is read.
        schedule: The schedule of the run. By default it is read from the log; pass it if the log has no learning rate
            or has it too rarely.
        loss: Name of the column with the loss. By default the only one or, if there are several, the only one of a
            validation, such as ``eval_loss``.
        lr: Name of the column with the learning rate. By default the only one, or the first if all are proportional,
            as those of several parameter groups.
        run: Name of the run, if the file or folder holds several.
        warmup_steps: Number of steps of the linear warmup, if the log begins after it.
        last_step: Ignore everything after this step.
        resumed: Whether the step may go back because the run was resumed from a checkpoint. The later rows replace
            those that they overlap.
        name: Name of the :class:`LoggedRun`. By default that of the run or of the file.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not a log, a column is missing or ambiguous, the step goes back, a loss is not finite,
            or there are fewer than 8 losses. The message names the line and the remedy.

    Warns:
        ArgumentWarning: The learning rate of more than 1 % of the run is not logged and had to be assumed, the last
            line may be cut and is left out, or a resumed run does not replace all rows that it goes back over.
    """
    source = Path(path)
    if warmup_steps is not None:
        _check.whole("load_run", "warmup_steps", warmup_steps, minimum=0)
    if last_step is not None:
        _check.whole("load_run", "last_step", last_step, minimum=1)
    asked = {column.lower() for column in (loss, lr) if column is not None}
    log = _read(source, lambda column: column.lower() in asked or is_loss(column) or is_rate(column), run, resumed)
    metric = _loss_name(log, loss)
    steps, losses = _losses(log, metric, resumed, last_step)
    notes = [*log.warnings, *(_not_replaced(log, log.columns[metric]) if resumed else ())]
    if schedule is None:
        rates = _rates(log, _rate_name(log, lr), resumed)
        schedule, assumed = schedule_from_rates(rates.steps, rates.values, int(steps[-1]), warmup_steps)
        notes += assumed
    for note in notes:
        words = (note,) if isinstance(note, str) else note
        warnings.warn(ArgumentWarning((f"{source}: ", *words)), stacklevel=2)
    return LoggedRun(steps, losses, schedule, name=log.run or _name(source) if name is None else name, metric=metric)


def _read(path: Path, keep: Keep, run: str | None, resumed: bool) -> Log:
    """The log in a file or folder, by the reader of its format."""
    files, run_inside = (_files(path, run), None) if path.is_dir() else ([path], run)
    contents = [_content(file) for file in files]
    if looks_like_events(contents[0]):
        _require_no_run(path, run_inside)
        return read_events(files, contents, keep)
    text = _decoded(files[0], contents[0])
    if not text.strip():
        refuse_log(files[0], "the file is empty")
    if text.lstrip()[0] in "{[":
        _require_no_run(path, run_inside)
        return read_entries(files[0], text, keep)
    return read_delimited(files[0], text, keep, run_inside, resumed)


def _require_no_run(path: Path, run: str | None) -> None:
    if run is not None:
        refuse_log(path, f"the file holds one run, but the run {run!r} was asked for", "Leave ", Arg("run"), " out.")


def _content(path: Path) -> bytes:
    size = path.stat().st_size
    if size > MAX_BYTES:
        remedy = "Keep every hundredth row: a fit needs no more."
        refuse_log(path, f"the file has {size:,} bytes, more than {MAX_BYTES:,}", remedy)
    return path.read_bytes()


def _decoded(path: Path, content: bytes) -> str:
    """The text of a file, with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        remedy = "A log is a CSV, JSON or TensorBoard file; save text as UTF-8."
        refuse_log(path, f"byte {error.start} is not UTF-8 text", remedy)


def _files(folder: Path, run: str | None) -> list[Path]:
    """The log in a folder: a file of a known name or, without one, the event files of one run, oldest first."""
    if run is None:
        named_files = [folder / name for name in FOLDER_FILES if (folder / name).is_file()]
        if files := named_files[:1] or _newest_checkpoint(folder):
            return files
    events = sorted(file for file in folder.rglob(EVENTS) if file.is_file())
    runs = {str(file.parent.relative_to(folder)): file.parent for file in events}
    if run is not None and run not in runs:
        refuse_log(folder, f"no event files of a run {run!r}; the runs are {listed(runs)}")
    if not runs:
        refuse_log(folder, f"the folder holds no log ({', '.join(FOLDER_FILES)} or event files of TensorBoard)")
    if run is None and len(runs) > 1:
        problem = f"the folder holds {len(runs)} runs: {listed(runs)}"
        refuse_log(folder, problem, "Pass ", Arg("run"), " with the name of one.")
    chosen = runs[run] if run is not None else next(iter(runs.values()))
    return [file for file in events if file.parent == chosen]


def _newest_checkpoint(folder: Path) -> list[Path]:
    """The log of the last checkpoint in an output folder of transformers; it holds all entries since the start."""
    files = folder.glob(f"{CHECKPOINT}*/trainer_state.json")
    steps = {file.parent.name.removeprefix(CHECKPOINT): file for file in files}
    numbered = [step for step in steps if step.isdecimal()]
    return [steps[max(numbered, key=int)]] if numbered else []


def _loss_name(log: Log, asked: str | None) -> str:
    """The column with the loss: the one that was asked for, the only one, or the only one of a validation."""
    if asked is not None:
        return _asked(log, asked, "Pass one of them as ", Arg("loss"), ".")
    candidates = [name for name in log.columns if is_loss(name)]
    if not candidates:
        log.refuse(f"no column of losses; the columns are {listed(log.names)}", "Pass its name as ", Arg("loss"), ".")
    chosen = [name for name in candidates if split_of(name) == "validation"] or candidates
    if len(chosen) > 1:
        log.refuse(f"more than one loss: {listed(candidates)}", "Pass ", Arg("loss"), " with the name of one.")
    return chosen[0]


def _rate_name(log: Log, asked: str | None) -> str:
    """The column with the learning rate: the one asked for, the only one, or the first of proportional ones."""
    if asked is not None:
        remedy = ("Pass one of them as ", Arg("lr"), ", or the schedule of the run as ", Arg("schedule"), ".")
        return _asked(log, asked, *remedy)
    candidates = [name for name in log.columns if is_rate(name)]
    if not candidates:
        problem = f"no learning rate; the columns are {listed(log.names)}"
        log.refuse(problem, "Pass the schedule of the run as ", Arg("schedule"), ", or log the learning rate.")
    if not all(_proportional(log.columns[candidates[0]], log.columns[name]) for name in candidates[1:]):
        log.refuse(f"more than one learning rate: {listed(candidates)}", "Pass ", Arg("lr"), " with the name of one.")
    return candidates[0]


def _asked(log: Log, asked: str, *remedy: str) -> str:
    """The column with the name that was asked for."""
    name = named(asked, log.columns)
    if name is None:
        log.refuse(f"no column {asked!r} with values; the columns are {listed(log.names)}", *remedy)
    return name


def _proportional(one: Column, other: Column) -> bool:
    """Whether two columns of rates have the same shape."""
    if not np.array_equal(one.steps, other.steps):
        return False
    sizes = np.abs(one.values).max(), np.abs(other.values).max()
    return bool(np.allclose(one.values * sizes[1], other.values * sizes[0], rtol=1e-4))


def _losses(log: Log, metric: str, resumed: bool, last_step: int | None) -> tuple[IntArray, Array]:
    """The steps and the losses, checked."""
    column = _increasing(log, log.columns[metric], metric, resumed)
    if last_step is None and len(column.steps) and column.steps[-1] > MAX_STEPS:
        remedy = "Steps must count optimizer steps, not tokens, examples or seconds."
        log.refuse(f"the last step of {metric!r} is {column.steps[-1]:,}", remedy)
    column = column[column.steps <= (MAX_STEPS if last_step is None else last_step)]
    wrong = np.flatnonzero(~np.isfinite(column.values))
    if len(wrong):
        at = int(wrong[0])
        place = f"at step {column.steps[at]} ({log.row} {column.rows[at]})"
        remedy = "A run that diverged cannot be fitted; to use the steps before, pass "
        log.refuse(f"{metric!r} is {column.values[at]} {place}", remedy, Arg("last_step"), ".")
    if len(column.steps) < MIN_POINTS:
        others = [name for name in log.columns if is_loss(name) and len(log.columns[name].steps) >= MIN_POINTS]
        another = (" Or pass ", Arg("loss"), f" with another loss: {listed(others)}.") if others else ()
        problem = f"{metric!r} has {len(column.steps)} values, but a fit needs {MIN_POINTS} or more"
        log.refuse(problem, "Log the loss more often.", *another)
    return column.steps, column.values


def _increasing(log: Log, column: Column, name: str, resumed: bool) -> Column:
    """A column with increasing steps: repeats of one value removed, and what a resumed run replaced."""
    steps, values, rows = column.steps, column.values, column.rows
    if len(steps) and steps.min() < 0:
        place = int(np.argmin(steps))
        log.refuse(f"{log.row} {rows[place]} has the step {steps[place]}, but steps begin at 0")
    if resumed:
        return column[_last_rows(steps)]
    remedy = ("If two runs are mixed, split the file; if a resumed run overlaps its log, set ", Arg("resumed"), ".")
    back = np.flatnonzero(np.diff(steps) < 0)
    if len(back):
        at = int(back[0])
        log.refuse(f"{log.row} {rows[at + 1]} goes back from step {steps[at]} to {steps[at + 1]}", *remedy)
    repeated = np.diff(steps) == 0
    scale = np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    with np.errstate(invalid="ignore"):
        conflict = np.flatnonzero(repeated & (np.abs(np.diff(values)) > SAME_LOSS * scale))
    if len(conflict):
        at = int(conflict[0])
        pair = f"{values[at]:.6g} and {values[at + 1]:.6g}"
        log.refuse(f"{name!r} is both {pair} at step {steps[at]} ({log.row} {rows[at + 1]})", *remedy)
    return column[np.append(~repeated, True)]


def _last_rows(steps: IntArray) -> NDArray[np.bool_]:
    """The last row of each step and of those above it: the rows below the minimum of all later ones."""
    later = np.minimum.accumulate(np.append(steps, np.iinfo(np.int64).max)[::-1])[::-1][1:]
    return np.asarray(steps < later)


def _not_replaced(log: Log, column: Column) -> list[Words]:
    """A sentence if going back leaves out steps that no later row replaces; refuses a log that loses most of them."""
    steps, highest = column.steps, np.maximum.accumulate(column.steps)
    count = len(np.unique(steps))
    lost = count - int(_last_rows(steps).sum())
    if not lost:
        return []
    place = int(np.argmax(highest[:-1] - steps[1:]))
    problem = (
        f"{log.row} {column.rows[place + 1]} goes back from step {highest[place]} to {steps[place + 1]}, and no later "
        f"row replaces {lost:,} of the {count:,} steps"
    )
    remedy = "If that row does not belong to the run, remove it."
    if lost > MOST_LOST * count:
        log.refuse(problem, f"{remedy} If the run was resumed from there, pass the rows before it as a log.")
    return [f"{problem}, which are left out. {remedy}"]


def _rates(log: Log, name: str, resumed: bool) -> Column:
    """The learning rates, checked, each at the step of the update that used it."""
    column = _increasing(log, log.columns[name], name, resumed)
    wrong = np.flatnonzero(~(np.isfinite(column.values) & (column.values >= 0)))
    if len(wrong):
        place = f"{log.row} {column.rows[wrong[0]]}"
        log.refuse(f"the learning rate at {place} is {column.values[wrong[0]]}, but must be finite and >= 0")
    used = column[column.steps >= log.rate_delay]
    if not used.values.any():
        log.refuse("every logged learning rate is 0", "Pass the schedule of the run as ", Arg("schedule"), ".")
    return Column(used.steps - log.rate_delay, used.values, used.rows)


def _name(path: Path) -> str:
    """The name of a file without its ending, or that of its folder if it says nothing about the run."""
    resolved = path.resolve()
    if path.stem in PLAIN_NAMES:
        return resolved.parent.name
    return resolved.name if path.is_dir() else path.stem
