"""The store of finished runs: one SQLite row per run, so a killed search resumes where it stopped."""

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
from eigencurve.runs.origin import Origin

APPLICATION_ID = 0x45494743  # "EIGC", the SQLite field that identifies the file type
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
    """One training run to do.

    Attributes:
        settings: Settings of the run, as plain JSON values.
        seed: Random seed of the run.
    """

    settings: Mapping[str, Any]
    seed: int


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Attributes:
        metrics: Final numbers, by name.
        curve: The (time, number) pairs of an experiment that records a single curve.
        diverged: Whether the run diverged.
        curves: The curves of an experiment that records several, by name.
    """

    metrics: Mapping[str, float]
    curve: Sequence[tuple[float, float]] = ()
    diverged: bool = False
    curves: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


def key_of(experiment: str, run: Run) -> str:
    """The key of a run in the store, a hash of the experiment, the settings and the seed."""
    text = json.dumps([experiment, dict(run.settings), run.seed], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Store:
    """A file of finished runs that several processes can share.

    Args:
        path: Path of the file, created if missing. Any other kind of file, or a damaged store, is refused and left
            unchanged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        _require_ours(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connection() as connection:
            # One transaction: another process that opens the file meanwhile sees an empty file or a complete store.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for statement in SCHEMA:
                connection.execute(statement)
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode = WAL")

    def outcomes(self, experiment: str, runs: Iterable[Run]) -> list[Outcome | None]:
        """The outcomes of ``runs`` in the same order; None for each run that is not in the store."""
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
        """Claim the ``runs`` that are not finished and not claimed by another live process, and return them."""
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
        """Renew the claims of this process. Other hosts ignore claims that are more than an hour old."""
        with self._connection() as connection:
            connection.execute(
                "UPDATE claims SET since = ? WHERE host = ? AND pid = ? AND born = ?", (time.time(), *_myself())
            )

    def release(self, experiment: str, runs: Iterable[Run]) -> None:
        """Give up this process's claims on ``runs``."""
        with self._connection() as connection:
            keys = [(key_of(experiment, run), *_myself()) for run in runs]
            connection.executemany("DELETE FROM claims WHERE key = ? AND host = ? AND pid = ? AND born = ?", keys)

    def add(
        self, experiment: str, runs: Sequence[Run], outcomes: Sequence[Outcome], origin: Origin, seconds: float
    ) -> None:
        """Save finished runs in one transaction and end the claims on them; a run already saved is kept.

        Args:
            experiment: Name of the experiment.
            runs: Runs that finished.
            outcomes: Outcome of each run.
            origin: Versions and revision that computed the outcomes.
            seconds: Duration of each run in seconds.
        """
        common = (json.dumps(dict(origin.versions), sort_keys=True), origin.revision, time.time(), seconds)
        rows = [(*_fields(experiment, run, outcome), *common) for run, outcome in zip(runs, outcomes, strict=True)]
        with self._connection() as connection:
            connection.executemany("INSERT OR IGNORE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?)", rows)
            connection.executemany("DELETE FROM claims WHERE key = ?", [(row[0],) for row in rows])

    def experiments(self) -> list[str]:
        """Names of all experiments that have finished runs."""
        with self._connection() as connection:
            found = connection.execute("SELECT DISTINCT experiment FROM runs ORDER BY experiment").fetchall()
        return [name for (name,) in found]

    def rows(self, experiment: str) -> list[dict[str, Any]]:
        """All columns of an experiment's runs, as plain values."""
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
    """The value of the ``curve`` column: a list of pairs if there is one curve, else a mapping of such lists."""
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
    remedy = "The file is unchanged; choose another path."
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
    """Start time of a process as the system reports it; distinguishes processes that reuse a process id."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return ""


def _alive(host: str, pid: int, born: str, since: float, now: float, me: tuple[str, int, str]) -> bool:
    """Whether a claim's owner still runs: checked directly on this host, by the age of the claim on another."""
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
