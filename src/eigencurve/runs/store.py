"""The store of finished runs: one SQLite row per run, so a killed search resumes where it stopped."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from eigencurve import _check
from eigencurve._files import NAME_BYTES
from eigencurve.runs.origin import Origin

APPLICATION_ID = 0x45494743  # "EIGC", the SQLite field that identifies the file type
VERSION = 1
LEASE_SECONDS = 3600.0
# The longest ending that SQLite appends to the name of a file.
JOURNAL = "-journal"
# Seconds to wait for a lock, and what SQLite's codes mean to the user.
TIMEOUT = 60.0
# SQLite's files next to the store need this much; with less, it calls a full disk an I/O error.
LITTLE_SPACE = 64 << 10
FORBIDDEN = (sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH)
REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written",
    sqlite3.SQLITE_BUSY: "another process keeps it locked",
    sqlite3.SQLITE_LOCKED: "another process keeps it locked",
    sqlite3.SQLITE_NOMEM: "too little memory",
}
# All columns of a run, those that hold JSON, and the exceptions that reading a damaged one may raise.
COLUMNS = (
    "key", "experiment", "settings", "seed", "metrics", "diverged", "curve", "versions", "revision", "finished",
    "seconds",
)  # fmt: skip
PACKED = ("settings", "metrics", "curve", "versions")
SELECT = f"SELECT {', '.join(COLUMNS)}"
DAMAGE = (AttributeError, KeyError, TypeError, ValueError, RecursionError)
# The rows of a JSON list of keys; a list of parameters would be limited in length.
THESE = "key IN (SELECT value FROM json_each(?))"
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, experiment TEXT NOT NULL, settings TEXT NOT NULL, seed INTEGER NOT NULL,
    metrics TEXT NOT NULL, diverged INTEGER NOT NULL, curve TEXT NOT NULL, versions TEXT NOT NULL,
    revision TEXT NOT NULL, finished REAL NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS claims (
    key TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, born TEXT NOT NULL, since REAL NOT NULL
) WITHOUT ROWID""",
    # A table of its own, so programs of version 0.1 can use the same file. Their rows get a checksum later.
    "CREATE TABLE IF NOT EXISTS checks (key TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID",
)


class StoreError(OSError):
    """The store cannot be read or written now: no permission, no space, or locked by another process."""


class DamagedStoreError(_check.ArgumentValueError):
    """The file is damaged, or not a store."""


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

    Every row has a checksum, so a damaged value is refused instead of returned.

    Args:
        path: Path of the file, created if missing. Any other kind of file, or a damaged store, is refused and left
            unchanged.
        read_only: Whether to leave the file unchanged. It must then exist.

    Raises:
        FileNotFoundError: The file does not exist, with ``read_only``.
        ValueError: The name is longer than SQLite allows.
        StoreError: The file cannot be read or written: no permission, no space, or locked by another process.
        DamagedStoreError: The file is damaged or of another kind. All methods raise these two.
    """

    def __init__(self, path: str | os.PathLike[str], read_only: bool = False) -> None:
        self.path, self.read_only = Path(path), read_only
        length, longest = len(os.fsencode(self.path.name)), NAME_BYTES - len(JOURNAL)
        if length > longest:
            need = f"a file name of at most {longest} bytes, because SQLite appends {JOURNAL!r} to it"
            _check.refuse("Store", "path", need, length, "Pass a shorter name.")
        self._file = self.path.absolute()  # the process may change its folder
        if read_only and not self.path.exists():
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        _require_ours(self.path)
        if not read_only:
            self._make()

    def _make(self) -> None:
        """Create what is missing, and give a checksum to rows that have none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connection() as connection:
            # One transaction: another process that opens the file meanwhile sees an empty file or a complete store.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for statement in SCHEMA:
                connection.execute(statement)
            _seal(connection, "key NOT IN (SELECT key FROM checks)")
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode = WAL")

    def outcomes(self, experiment: str, runs: Iterable[Run]) -> list[Outcome | None]:
        """The outcomes of ``runs`` in the same order; None for each run that is not in the store."""
        keys = [key_of(experiment, run) for run in runs]
        with self._reading() as connection:
            outcomes = {row["key"]: _outcome(row) for row in self._verified(connection, THESE, json.dumps(keys))}
        return [outcomes.get(key) for key in keys]

    def claim(self, experiment: str, runs: Sequence[Run]) -> list[Run]:
        """Claim the ``runs`` that are not finished and not claimed by another live process, and return them."""
        now, me = time.time(), _myself()
        keys = {key_of(experiment, run): run for run in runs}
        wanted = [json.dumps(list(keys))]
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            busy = {key for (key,) in connection.execute(f"SELECT key FROM runs WHERE {THESE}", wanted)}
            claims = connection.execute(f"SELECT key, host, pid, born, since FROM claims WHERE {THESE}", wanted)
            busy |= {key for key, host, pid, born, since in claims if _alive(host, pid, born, now - since, me)}
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
        keys = json.dumps([key_of(experiment, run) for run in runs])
        with self._connection() as connection:
            connection.execute(
                f"DELETE FROM claims WHERE {THESE} AND host = ? AND pid = ? AND born = ?", (keys, *_myself())
            )

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
        common = {"versions": dict(origin.versions), "revision": origin.revision, "finished": time.time()}
        self.add_rows(
            {
                "key": key_of(experiment, run), "experiment": experiment, "settings": dict(run.settings),
                "seed": run.seed, "metrics": dict(outcome.metrics), "diverged": int(outcome.diverged),
                "curve": _curves(outcome), "seconds": seconds, **common,
            }
            for run, outcome in zip(runs, outcomes, strict=True)
        )  # fmt: skip

    def add_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Save runs of another store, as its :meth:`rows` returned them; a run already saved is kept."""
        packed = [[_packed(name, row[name]) for name in COLUMNS] for row in rows]
        keys = json.dumps([key for key, *_ in packed])
        with self._connection() as connection:
            connection.executemany("INSERT OR IGNORE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?)", packed)
            _seal(connection, THESE, keys)
            connection.execute(f"DELETE FROM claims WHERE {THESE}", [keys])

    def experiments(self) -> list[str]:
        """Names of all experiments that have finished runs."""
        with self._reading() as connection:
            rows = connection.execute("SELECT DISTINCT experiment FROM runs ORDER BY experiment").fetchall()
        return [name for (name,) in rows]

    def rows(self, experiment: str) -> list[dict[str, Any]]:
        """All columns of an experiment's runs, as plain values."""
        with self._reading() as connection:
            return list(self._verified(connection, "experiment = ? ORDER BY key", experiment))

    def _verified(self, connection: sqlite3.Connection, where: str, value: str) -> Iterator[dict[str, Any]]:
        """Rows with their JSON decoded, each compared with its checksum."""
        has_checks = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'checks'").fetchone()[0]
        digest = "(SELECT digest FROM checks WHERE checks.key = runs.key)" if has_checks else "NULL"
        for *columns, expected in connection.execute(f"{SELECT}, {digest} FROM runs WHERE {where}", [value]):
            try:
                row = {n: json.loads(v) if n in PACKED else v for n, v in zip(COLUMNS, columns, strict=True)}
                key = key_of(row["experiment"], Run(row["settings"], row["seed"]))
            except DAMAGE as error:
                _refuse("a store in good order", f"{self.path}: the run {columns[0]!r:.14}: {error}")
            if key != row["key"] or expected not in (None, _digest(columns)):
                damage = f"{self.path}: the run {key[:12]} of {row['experiment']!r} does not match its checksum"
                _refuse("a store in good order", damage, "Restore the file from a copy, or delete that row.")
            yield row

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if self.read_only:
            raise StoreError(f"Store: {self.path} was opened for reading; it is not changed.")
        with _translated(self.path), contextlib.closing(sqlite3.connect(self._file, timeout=TIMEOUT)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            with connection:
                yield connection

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with _translated(self.path), contextlib.closing(_open_for_reading(self._file)) as connection:
            yield connection


def _digest(columns: Sequence[Any]) -> str:
    """The checksum of a row: a hash of its columns as SQLite returns them."""
    return hashlib.sha256(json.dumps(list(columns)).encode()).hexdigest()[:16]


def _seal(connection: sqlite3.Connection, where: str, *values: str) -> None:
    """Give a checksum to the rows among ``where`` that have none."""
    rows = connection.execute(f"{SELECT} FROM runs WHERE {where}", values)
    connection.executemany("INSERT OR IGNORE INTO checks VALUES (?,?)", ((row[0], _digest(row)) for row in rows))


def _open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing and leaves no file behind, also in a folder that cannot be written."""
    file = path.resolve()  # SQLite keeps its log next to the target of a link
    address = file.as_uri()
    connection = sqlite3.connect(f"{address}?mode=rw", uri=True, timeout=TIMEOUT)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return connection
    except sqlite3.OperationalError as error:
        connection.close()
        log = file.with_name(f"{file.name}-wal")
        if _code(error) not in FORBIDDEN or (log.exists() and log.stat().st_size):
            raise
    except BaseException:
        connection.close()
        raise
    return sqlite3.connect(f"{address}?immutable=1", uri=True)


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Raise StoreError or DamagedStoreError in place of SQLite's errors."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = _code(error)
        if code in FORBIDDEN:
            raise StoreError(f"Store: {path} cannot be written or opened ({error}). Check its permissions.") from error
        if code == sqlite3.SQLITE_IOERR and shutil.disk_usage(path.parent).free < LITTLE_SPACE:
            code = sqlite3.SQLITE_FULL
        if code in REASONS:
            raise StoreError(f"Store: {path}: {REASONS[code]} ({error}). Finished runs are kept.") from error
        is_foreign = code == sqlite3.SQLITE_NOTADB
        _refuse("a store of eigencurve's results" if is_foreign else "a store in good order", f"{path}: {error}")


def _code(error: sqlite3.DatabaseError) -> int | None:
    """The primary code of SQLite's error; None if Python raised it."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _refuse(constraint: str, problem: str, remedy: str = "The file is unchanged; choose another path.") -> NoReturn:
    raise DamagedStoreError("Store", "path", constraint, _check.Description(problem), remedy)


def _packed(column: str, value: Any) -> Any:
    return json.dumps(value, sort_keys=column in ("settings", "versions")) if column in PACKED else value


def _curves(outcome: Outcome) -> Any:
    """The value of the ``curve`` column: a list of pairs if there is one curve, else a mapping of such lists."""
    one = [list(pair) for pair in outcome.curve]
    if not outcome.curves:
        return one
    return {"curve": one, "curves": {name: [list(pair) for pair in pairs] for name, pairs in outcome.curves.items()}}


def _outcome(row: Mapping[str, Any]) -> Outcome:
    fields = row["curve"] if isinstance(row["curve"], dict) else {"curve": row["curve"], "curves": {}}
    curves = {name: _pairs(pairs) for name, pairs in fields["curves"].items()}
    return Outcome(row["metrics"], _pairs(fields["curve"]), bool(row["diverged"]), curves)


def _pairs(values: Any) -> tuple[tuple[float, float], ...]:
    return tuple((a, b) for a, b in values)


def _require_ours(path: Path) -> None:
    if not path.exists() or path.stat().st_size == 0:
        return
    with _translated(path), contextlib.closing(_open_for_reading(path)) as connection:
        kind = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        health = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if kind != APPLICATION_ID:
        _refuse("a store of eigencurve's results", f"{path}: another kind of database")
    if version != VERSION:
        _refuse(f"a store of version {VERSION}", f"{path}: version {version}")
    if health != "ok":
        _refuse("a store in good order", f"{path}: {health}")


def _myself() -> tuple[str, int, str]:
    return socket.gethostname(), os.getpid(), _born(os.getpid())


def _born(pid: int) -> str:
    """Start time of a process as the system reports it; distinguishes processes that reuse a process id."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return ""


def _alive(host: str, pid: int, born: str, age: float, me: tuple[str, int, str]) -> bool:
    """Whether a claim's owner still runs: checked directly on this host, by the age of the claim on another."""
    if (host, pid, born) == me:
        return False
    if host != me[0]:
        return age < LEASE_SECONDS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _born(pid) == born
