"""Results on disk: one SQLite row for each finished run, so that a killed search goes on where it stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eigencurve import _check

APPLICATION_ID = 0x45494743  # "EIGC", SQLite's field for telling kinds of files apart
VERSION = 1
LEASE_SECONDS = 3600.0
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, experiment TEXT NOT NULL, settings TEXT NOT NULL, seed INTEGER NOT NULL,
    metrics TEXT NOT NULL, diverged INTEGER NOT NULL, curve TEXT NOT NULL, versions TEXT NOT NULL,
    revision TEXT NOT NULL, finished REAL NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS claims (
    key TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, born TEXT NOT NULL, since REAL NOT NULL
) WITHOUT ROWID""",
)


@dataclass(frozen=True)
class Run:
    """One thing to run: settings (plain JSON values) and a seed."""

    settings: Mapping[str, Any]
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What a run gave: numbers by name, curves of (time, number) pairs, and whether it diverged.

    Attributes:
        metrics: numbers by name.
        curve: the one curve of an experiment that has no more than one.
        diverged: whether it did.
        curves: several curves by name, for an experiment that has more.
    """

    metrics: Mapping[str, float]
    curve: Sequence[tuple[float, float]] = ()
    diverged: bool = False
    curves: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Origin:
    """Where results come from: versions of what computed them, and the revision of the source."""

    versions: Mapping[str, str]
    revision: str


def key_of(experiment: str, run: Run) -> str:
    """The name of a run in the store: equal for equal experiment, settings and seed only."""
    text = json.dumps([experiment, dict(run.settings), run.seed], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Store:
    """A file of finished runs, shared safely by several processes.

    Args:
        path: made where there is none. A file of another kind, or a damaged one, is refused and left as it is.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        _require_ours(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connection() as connection:
            # In one transaction: another process that opens the file at this moment sees nothing, or all of it.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for statement in SCHEMA:
                connection.execute(statement)
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode = WAL")

    def outcomes(self, experiment: str, runs: Iterable[Run]) -> list[Outcome | None]:
        """What each of ``runs`` gave, in their order; None for those that are not in the store."""
        keys = [key_of(experiment, run) for run in runs]
        known: dict[str, Outcome] = {}
        with self._connection() as connection:
            for part in _parts(keys):
                marks = ",".join("?" * len(part))
                for row in connection.execute(
                    f"SELECT key, metrics, curve, diverged FROM runs WHERE key IN ({marks})", part
                ):
                    known[row[0]] = _outcome(*row[1:])
        return [known.get(key) for key in keys]

    def claim(self, experiment: str, runs: Sequence[Run]) -> list[Run]:
        """Those of ``runs`` that nobody has finished and no other living process is at; they are now ours."""
        now, me = time.time(), _myself()
        keys = {key_of(experiment, run): run for run in runs}
        busy: set[str] = set()
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            for part in _parts(list(keys)):
                marks = ",".join("?" * len(part))
                busy.update(key for (key,) in connection.execute(f"SELECT key FROM runs WHERE key IN ({marks})", part))
                claims = connection.execute(
                    f"SELECT key, host, pid, born, since FROM claims WHERE key IN ({marks})", part
                )
                busy.update(key for key, host, pid, born, since in claims if _alive(host, pid, born, since, now, me))
            won = [key for key in keys if key not in busy]
            connection.executemany("INSERT OR REPLACE INTO claims VALUES (?,?,?,?,?)", [(key, *me, now) for key in won])
        return [keys[key] for key in won]

    def renew(self) -> None:
        """Prolong the claims of this process; other hosts take them for dead after an hour without this."""
        with self._connection() as connection:
            connection.execute(
                "UPDATE claims SET since = ? WHERE host = ? AND pid = ? AND born = ?", (time.time(), *_myself())
            )

    def release(self, experiment: str, runs: Iterable[Run]) -> None:
        """Give up our claims on ``runs``."""
        with self._connection() as connection:
            keys = [(key_of(experiment, run), *_myself()) for run in runs]
            connection.executemany("DELETE FROM claims WHERE key = ? AND host = ? AND pid = ? AND born = ?", keys)

    def add(
        self, experiment: str, runs: Sequence[Run], outcomes: Sequence[Outcome], origin: Origin, seconds: float
    ) -> None:
        """Write finished runs in one transaction and end the claims on them; a run that is there already stays.

        Args:
            experiment: its name.
            runs: what was run.
            outcomes: what each gave.
            origin: versions and revision.
            seconds: that each took.
        """
        common = (json.dumps(dict(origin.versions), sort_keys=True), origin.revision, time.time(), seconds)
        rows = [(*_fields(experiment, run, outcome), *common) for run, outcome in zip(runs, outcomes, strict=True)]
        with self._connection() as connection:
            connection.executemany("INSERT OR IGNORE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?)", rows)
            connection.executemany("DELETE FROM claims WHERE key = ?", [(row[0],) for row in rows])

    def experiments(self) -> list[str]:
        """The names of all experiments that have finished runs."""
        with self._connection() as connection:
            found = connection.execute("SELECT DISTINCT experiment FROM runs ORDER BY experiment").fetchall()
        return [name for (name,) in found]

    def rows(self, experiment: str) -> list[dict[str, Any]]:
        """Everything that is known of an experiment's runs, as plain values."""
        with self._connection() as connection:
            connection.row_factory = sqlite3.Row
            found = connection.execute("SELECT * FROM runs WHERE experiment = ? ORDER BY key", (experiment,)).fetchall()
        packed = ("settings", "metrics", "curve", "versions")
        return [{k: json.loads(row[k]) if k in packed else row[k] for k in row.keys()} for row in found]  # noqa: SIM118

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=60.0)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            with connection:
                yield connection
        finally:
            connection.close()


def _parts(keys: list[str], size: int = 500) -> Iterator[list[str]]:
    return (keys[i : i + size] for i in range(0, len(keys), size))


def _fields(experiment: str, run: Run, outcome: Outcome) -> tuple[Any, ...]:
    return (
        key_of(experiment, run), experiment, json.dumps(dict(run.settings), sort_keys=True), run.seed,
        json.dumps(dict(outcome.metrics)), int(outcome.diverged), json.dumps(_packed(outcome)),
    )  # fmt: skip


def _packed(outcome: Outcome) -> Any:
    """One column for all curves: a list of pairs for one, as ever, and a mapping of such lists for several."""
    one = [list(pair) for pair in outcome.curve]
    if not outcome.curves:
        return one
    return {"curve": one, "curves": {name: [list(pair) for pair in pairs] for name, pairs in outcome.curves.items()}}


def _outcome(metrics: str, packed: str, diverged: int) -> Outcome:
    found = json.loads(packed)
    fields = found if isinstance(found, dict) else {"curve": found, "curves": {}}
    curves = {name: _pairs(pairs) for name, pairs in fields["curves"].items()}
    return Outcome(json.loads(metrics), _pairs(fields["curve"]), bool(diverged), curves)


def _pairs(values: Any) -> tuple[tuple[float, float], ...]:
    return tuple((a, b) for a, b in values)


def _require_ours(path: Path) -> None:
    if not path.exists() or path.stat().st_size == 0:
        return
    remedy = "It is left as it is; name another file."
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=60.0)
        with contextlib.closing(connection):
            kind = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            health = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        _check.refuse("Store", "path", "a store of eigencurve's results", f"{path}: {error}", remedy)
    if kind != APPLICATION_ID:
        _check.refuse("Store", "path", "a store of eigencurve's results", f"{path}: another kind of database", remedy)
    if version != VERSION:
        _check.refuse("Store", "path", f"a store of version {VERSION}", f"{path}: version {version}", remedy)
    if health != "ok":
        _check.refuse("Store", "path", "a store in good order", f"{path}: {health}", remedy)


def _myself() -> tuple[str, int, str]:
    return socket.gethostname(), os.getpid(), _born(os.getpid())


def _born(pid: int) -> str:
    """When a process was started, in its system's own words; tells a process from a later one of the same number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return ""


def _alive(host: str, pid: int, born: str, since: float, now: float, me: tuple[str, int, str]) -> bool:
    """Whether another process still works on its claim: by looking, on this host; by the lease, on another."""
    if (host, pid, born) == me:
        return False
    if host != me[0]:
        return now - since < LEASE_SECONDS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _born(pid) == born
