"""Damaged logs: a forecast from them is that of the undamaged ones, says what is wrong, or is refused.

Two runs of a made-up network are written in every format that trainers write. Each case damages one of them and asks
for the loss of a third schedule. A silent wrong answer is a loss that is further from the undamaged one than either
interval is wide, without a warning or a new doubt.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from robustness.counts import Counts
from robustness.readers import damaged
from tests.reference.events import DOUBLE_CONTENT, event, event_file, scalar
from tests.reference.forecast import true_losses

import eigencurve as ec
from eigencurve.forecast import Forecast, LoggedRun, fit_runs, load_run

STEPS, EVERY, RISE, PEAK = 2000, 20, 50, 0.01
TARGET = ec.warmup(ec.wsd(STEPS - RISE, PEAK, 400), RISE)
SHAPES = {
    "constant": ec.warmup(ec.constant(STEPS - RISE, PEAK), RISE),
    "cosine": ec.warmup(ec.cosine(STEPS - RISE, PEAK), RISE),
}


@dataclass(frozen=True)
class Row:
    """One line of a log; None is a blank."""

    step: float | str | None
    rate: float | str | None
    loss: float | str | None


@dataclass(frozen=True)
class Answer:
    """The forecast loss of the target, its interval, and what is said about it."""

    loss: float
    low: float
    high: float
    remarks: frozenset[str]

    @property
    def width(self) -> float:
        """Width of the interval."""
        return self.high - self.low


Rows = list[Row]
Change = Callable[[Rows, random.Random], Rows]


def rows_of(name: str) -> Rows:
    """The log of one run: the rate of the next step, and the loss with a little noise."""
    steps = np.arange(0, STEPS, EVERY)
    rates = SHAPES[name].values()
    losses = true_losses(rates, steps) + 0.005 * np.random.default_rng(len(name)).standard_normal(len(steps))
    return [Row(int(s), float(f"{rates[s]:.6g}"), round(float(v), 5)) for s, v in zip(steps, losses, strict=True)]


def as_csv(rows: Rows) -> bytes:
    """A CSV file with a header."""
    cells = [("step", "lr", "loss"), *((row.step, row.rate, row.loss) for row in rows)]
    return "".join(",".join("" if cell is None else str(cell) for cell in line) + "\n" for line in cells).encode()


def as_lightning(rows: Rows) -> bytes:
    """The losses and the rates on different lines, with blanks."""
    lines = ["epoch,lr-SGD,step,train_loss"]
    for row in rows:
        step = "" if row.step is None else row.step
        lines += [f",{row.rate},{step},"] if row.rate is not None else []
        lines += [f"0,,{step},{row.loss}"] if row.loss is not None else []
    return ("\n".join(lines) + "\n").encode()


def entries_of(rows: Rows, rate: str) -> list[dict[str, object]]:
    """The entries of a JSON log."""
    named = [{"step": row.step, rate: row.rate, "loss": row.loss} for row in rows]
    return [{name: value for name, value in entry.items() if value is not None} for entry in named]


def as_lines(rows: Rows) -> bytes:
    """One JSON object a line."""
    return "".join(json.dumps(entry) + "\n" for entry in entries_of(rows, "lr")).encode()


def as_trainer_state(rows: Rows) -> bytes:
    """The ``trainer_state.json`` of transformers, whose rate is that of the last update."""
    shifted = [replace(row, step=row.step + 1) if isinstance(row.step, int) else row for row in rows]
    return json.dumps({"best_metric": None, "log_history": entries_of(shifted, "learning_rate")}, indent=1).encode()


def as_events(rows: Rows) -> bytes:
    """An event file of TensorBoard; rows that it cannot hold are left out."""
    events = []
    for row in rows:
        pairs = (("train/lr", row.rate), ("train/loss", row.loss))
        values = [scalar(tag, float(value), DOUBLE_CONTENT) for tag, value in pairs if isinstance(value, int | float)]
        if isinstance(row.step, int) and values:
            events.append(event(row.step, *values))
    return event_file(*events)


FORMATS: dict[str, Callable[[Rows], bytes]] = {
    "run.csv": as_csv,
    "metrics.csv": as_lightning,
    "run.jsonl": as_lines,
    "trainer_state.json": as_trainer_state,
    "events.out.tfevents.1": as_events,
}


def _with_loss(value: Callable[[float], float]) -> Change:
    """One loss changed."""

    def change(rows: Rows, rng: random.Random) -> Rows:
        place = rng.randrange(len(rows))
        return [replace(row, loss=value(row.loss)) if k == place else row for k, row in enumerate(rows)]  # type: ignore[arg-type]

    return change


def _every(**fields: Callable[[Row], float | str | None]) -> Change:
    """A field changed in every row."""
    return lambda rows, _: [replace(row, **{name: of(row) for name, of in fields.items()}) for row in rows]


def _tail(change: Callable[[Row, int], Row]) -> Change:
    """The rows after a random place in the second half changed; the number counts them from 1."""

    def changed(rows: Rows, rng: random.Random) -> Rows:
        place = rng.randrange(len(rows) // 2, len(rows) - 5)
        return [*rows[:place], *(change(row, k) for k, row in enumerate(rows[place:], start=1))]

    return changed


def _stray(rows: Rows, rng: random.Random) -> Rows:
    """A row of an early step at a random place."""
    place = rng.randrange(2, len(rows))
    return [*rows[:place], rows[rng.randrange(place)], *rows[place:]]


def _resumed(rows: Rows, rng: random.Random) -> Rows:
    place = rng.randrange(10, len(rows))
    return [*rows[:place], *rows[rng.randrange(place) :]]


def _shuffled(rows: Rows, rng: random.Random) -> Rows:
    return rng.sample(rows, len(rows))


def _twice(rows: Rows, rng: random.Random) -> Rows:
    chosen = set(rng.sample(range(len(rows)), 10))
    return [row for k, row in enumerate(rows) for _ in range(1 + (k in chosen))]


CHANGES: dict[str, Change] = {
    "spike": _with_loss(lambda loss: loss + 3.0),
    "dip": _with_loss(lambda loss: loss - 1.0),
    "outlier": _with_loss(lambda _: 1e30),
    "large": _with_loss(lambda loss: loss * 1000),
    "zero": _with_loss(lambda _: 0.0),
    "negative": _with_loss(lambda loss: -loss),
    "nan": _with_loss(lambda _: float("nan")),
    "infinity": _with_loss(lambda _: float("inf")),
    "diverges": _tail(lambda row, k: replace(row, loss=row.loss + 0.3 * k)),  # type: ignore[operator]
    "nan from there": _tail(lambda row, _: replace(row, loss=float("nan"))),
    "other unit from there": _tail(lambda row, _: replace(row, loss=row.loss / np.log(2))),  # type: ignore[operator]
    "ends early": _tail(lambda row, _: replace(row, loss=None, rate=None)),
    "rising": _every(loss=lambda row: 2.0 + 48 * row.step / STEPS),  # type: ignore[operator]
    "constant": _every(loss=lambda _: 2.3026),
    "bits": _every(loss=lambda row: row.loss / np.log(2)),  # type: ignore[operator]
    "huge": _every(loss=lambda row: row.loss * 1e300),  # type: ignore[operator]
    "tiny": _every(loss=lambda row: row.loss * 1e-300),  # type: ignore[operator]
    "sum of a batch": _every(loss=lambda row: row.loss * 256),  # type: ignore[operator]
    "perplexity": _every(loss=lambda row: float(np.exp(row.loss))),  # type: ignore[arg-type]
    "decimal commas": _every(loss=lambda row: str(row.loss).replace(".", ",")),
    "percent": _every(loss=lambda row: f"{row.loss} %"),
    "no rate": _every(rate=lambda _: None),
    "rate of zero": _every(rate=lambda _: 0.0),
    "negative rate": _every(rate=lambda row: -row.rate),  # type: ignore[operator]
    "rate in thousandths": _every(rate=lambda row: row.rate * 1000),  # type: ignore[operator]
    "no loss": _every(loss=lambda _: None),
    "no step": _every(step=lambda _: None),
    "fractions of epochs": _every(step=lambda row: row.step / 300),  # type: ignore[operator]
    "epochs": _every(step=lambda row: row.step // EVERY),  # type: ignore[operator]
    "tokens": _every(step=lambda row: row.step * 524_288),  # type: ignore[operator]
    "times": _every(step=lambda row: row.step + 1_700_000_000),  # type: ignore[operator]
    "micro-steps": _every(step=lambda row: row.step * 8),  # type: ignore[operator]
    "repeated rows": _twice,
    "shuffled": _shuffled,
    "backwards": lambda rows, _: rows[::-1],
    "stray row": _stray,
    "resumed": _resumed,
    "two runs": lambda rows, _: [*rows, *rows_of("constant")],
    "no rows": lambda _, __: [],
    "few rows": lambda rows, _: rows[:5],
}


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _cut_at_the_end(content: bytes, rng: random.Random) -> bytes:
    return content[: -rng.randrange(1, 12)]


BYTES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cut": _cut,
    "cut at the end": _cut_at_the_end,
    "random bytes": damaged,
    "no first line": lambda content, _: content.partition(b"\n")[2],
    "spaces for commas": lambda content, _: content.replace(b",", b" "),
    "line ends of Windows": lambda content, _: content.replace(b"\n", b"\r\n"),
    "byte order mark": lambda content, _: b"\xef\xbb\xbf" + content,
    "UTF-16": lambda content, _: content.decode("latin-1").encode("utf-16"),
    "written twice": lambda content, _: content + content,
    "empty": lambda _, __: b"",
}
# Damage that is drawn at random is tried more often.
DRAWN = ("spike", "dip", "outlier", "diverges", "stray row", "resumed", "cut", "cut at the end", "random bytes")


def attack(folder: Path, each: int, seed: int) -> Counts:
    """Forecast from logs with every kind of damage in every format, drawn kinds ``each`` times."""
    counts = Counts("damaged logs, forecasts")
    trunk = folder / "constant.csv"
    trunk.write_bytes(as_csv(rows_of("constant")))
    for form, writer in FORMATS.items():
        path = folder / "damaged" / form
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(writer(rows_of("cosine")))
        plain = answer(trunk, path)
        for name, content, resumed in _cases(writer, each, f"{seed}:{form}"):
            path.write_bytes(content)
            _try(counts, f"{name} in {form}", plain, lambda path=path, resumed=resumed: answer(trunk, path, resumed))
        path.write_bytes(writer(rows_of("cosine")))
        repeated = {"the same file twice": (trunk, path, path), "a copy": (trunk, path, _copied(path, writer))}
        for name, paths in repeated.items():
            _try(counts, f"{name} in {form}", None, lambda paths=paths: answer(*paths))
    for rate in (1e9, 1.0, 1e-9):
        _try(counts, f"a peak rate of {rate:g}", None, lambda rate=rate: _planned(trunk, rate))
    return counts


def answer(trunk: Path, path: Path, third: Path | bool = False) -> Answer:
    """The forecast for the target from two files, or three; True for a resumed run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        paths = [trunk, path, *([third] if isinstance(third, Path) else [])]
        forecast = fit_runs([load_run(file, resumed=third is True and file == path) for file in paths])
    return _answer(forecast, frozenset(str(warning.message) for warning in caught))


def _answer(forecast: Forecast, remarks: frozenset[str]) -> Answer:
    end = forecast.predict(TARGET, [STEPS])
    said = remarks | frozenset(forecast.warnings) | frozenset(end.beyond)
    return Answer(float(end.loss[0]), float(end.low[0]), float(end.high[0]), said)


def _planned(trunk: Path, rate: float) -> Answer:
    runs: list[LoggedRun] = [load_run(trunk)]
    ec.plan(*runs, total_steps=STEPS, lr=rate)
    return Answer(0.0, 0.0, 0.0, frozenset())


def _copied(path: Path, writer: Callable[[Rows], bytes]) -> Path:
    copy = path.parent / "copy" / path.name
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(writer(rows_of("cosine")))
    return copy


def _cases(writer: Callable[[Rows], bytes], each: int, seed: str) -> Iterator[tuple[str, bytes, bool]]:
    """Name and content of every damaged log, and whether it is read as that of a resumed run."""
    rows = rows_of("cosine")
    for name, change in CHANGES.items():
        for number in range(each if name in DRAWN else 1):
            rng = random.Random(f"{seed}:{name}:{number}")
            yield name, writer(change(rows, rng)), False
            if name in ("stray row", "resumed"):
                yield f"{name}, --resumed", writer(change(rows, rng)), True
    for name, spoil in BYTES.items():
        for number in range(each if name in DRAWN else 1):
            yield name, spoil(writer(rows), random.Random(f"{seed}:{name}:{number}")), False


def _try(counts: Counts, name: str, plain: Answer | None, ask: Callable[[], Answer]) -> None:
    """Count one case; without a plain answer, it must be refused."""
    counts.cases += 1
    try:
        found = ask()
    except (ValueError, FileNotFoundError) as error:
        if len(str(error)) > 2000 or "\n" in str(error):
            counts.faults[f"{name}: a message of {len(str(error))} characters"] += 1
        else:
            counts.survived += 1
    except Exception as error:
        counts.faults[f"{name}: {type(error).__name__}: {str(error)[:100]}"] += 1
    else:
        if plain is not None and (_close(found, plain) or found.remarks - plain.remarks):
            counts.survived += 1
        else:
            counts.wrong_values += 1
            counts.faults[f"{name}: {found.loss:.4g} in [{found.low:.4g}, {found.high:.4g}]"] += 1


def _close(found: Answer, plain: Answer) -> bool:
    """Whether the undamaged loss is in the interval, or the loss in the undamaged interval."""
    return found.low <= plain.loss <= found.high or plain.low <= found.loss <= plain.high
