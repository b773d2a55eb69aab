import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from eigencurve.runs.origin import Origin
from eigencurve.runs.store import DamagedStoreError, Outcome, Run, Store, StoreError, _require_ours, key_of

ORIGIN = Origin({"python": "3"}, "abc")
RUN = Run({"lr": 0.1, "epochs": 5, "min_lr": None}, seed=3)
OUTCOME = Outcome({"gap": 1 / 3}, ((0.0, 1.0), (5.0, 1 / 3)))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.sqlite"


@pytest.fixture
def filled(path):
    """A store with one run."""
    store = Store(path)
    store.add("e", [RUN], [OUTCOME], ORIGIN, seconds=1.5)
    return store


def rows_of(path, query):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def change(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def test_a_run_comes_back_exactly(path):
    store = Store(path)
    other = Run({**RUN.settings, "lr": 0.2}, seed=3)
    assert store.outcomes("e", [RUN]) == [None]
    store.add("e", [RUN], [OUTCOME], ORIGIN, seconds=1.5)
    store.add("e", [RUN], [Outcome({"gap": 9.0})], ORIGIN, 1.0)  # a second outcome changes nothing
    assert Store(path).outcomes("e", [other, RUN]) == [None, OUTCOME]
    assert store.outcomes("another", [RUN]) == [None]
    (row,) = store.rows("e")
    assert (row["settings"], row["seed"], row["metrics"]) == (RUN.settings, 3, {"gap": 1 / 3})
    assert (row["versions"], row["revision"], row["seconds"], row["diverged"]) == ({"python": "3"}, "abc", 1.5, 0)


def test_several_curves_come_back_and_one_is_stored_as_ever(path):
    store = Store(path)
    several = Outcome({"a": 1.0}, curves={"loss": ((1.0, 0.5), (2.0, 1 / 3)), "accuracy": ((2.0, 0.9),)})
    both = Outcome({"a": 1.0}, ((0.0, 2.0),), True, {"loss": ()})
    runs = [Run({"lr": lr}, 0) for lr in (0.1, 0.2, 0.3)]
    store.add("e", runs, [several, both, OUTCOME], ORIGIN, 1.0)
    assert store.outcomes("e", runs) == [several, both, OUTCOME]
    text = "[[0.0, 1.0], [5.0, 0.3333333333333333]]"  # as stores of one curve always had it
    assert rows_of(path, f"SELECT curve FROM runs WHERE key = '{key_of('e', runs[2])}'") == [(text,)]


def test_a_store_that_is_just_being_made_is_never_taken_for_another_file(path, monkeypatch):
    plain, looks = sqlite3.connect, []

    class Watched(sqlite3.Connection):
        def execute(self, *words):
            found = super().execute(*words)
            try:
                _require_ours(path)  # what another process does at this moment
                looks.append("ours")
            except StoreError as error:
                looks.append("waits" if "keeps it locked" in str(error) else str(error))
            return found

    def connect(*words, **options):
        if options.get("uri"):
            return plain(*words, **{**options, "timeout": 0.0})
        return plain(*words, factory=Watched, **options)

    monkeypatch.setattr("eigencurve.runs.store.sqlite3.connect", connect)
    Store(path)
    assert len(looks) >= 6
    assert set(looks) <= {"ours", "waits"}


def test_the_order_of_settings_does_not_matter_and_their_values_do():
    shuffled = Run(dict(reversed(list(RUN.settings.items()))), seed=3)
    assert key_of("e", shuffled) == key_of("e", RUN)
    others = [Run(RUN.settings, 4), Run({**RUN.settings, "lr": 0.11}, 3)]
    assert len({key_of("e", run) for run in [RUN, *others]}) == 3
    with pytest.raises(ValueError, match="JSON"):
        key_of("e", Run({"lr": float("nan")}, 3))


def test_a_claim_keeps_other_processes_off_until_its_owner_dies(path):
    store = Store(path)
    code = (
        "import sys, time; from eigencurve.runs.store import Run, Store\n"
        "won = Store(sys.argv[1]).claim('e', [Run({'lr': 0.1, 'epochs': 5, 'min_lr': None}, 3)])\n"
        "print(len(won), flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline().strip() == "1"
        assert store.claim("e", [RUN, Run(RUN.settings, 4)]) == [Run(RUN.settings, 4)]
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert store.claim("e", [RUN]) == [RUN]
    finally:
        child.kill()
        child.stdout.close()


def test_claims_end_with_the_run_or_when_given_up(path):
    store = Store(path)
    store.claim("e", [RUN])
    store.renew()
    store.release("e", [RUN])
    assert rows_of(path, "SELECT * FROM claims") == []
    store.claim("e", [RUN])
    store.add("e", [RUN], [OUTCOME], ORIGIN, 1.0)
    assert rows_of(path, "SELECT * FROM claims") == []
    assert store.claim("e", [RUN]) == []


def test_claims_of_another_host_are_believed_for_an_hour(path):
    store = Store(path)
    for age, won in ((60, []), (7200, [RUN])):
        fields = (key_of("e", RUN), "elsewhere", 1, "", time.time() - age)
        change(path, "INSERT OR REPLACE INTO claims VALUES (?,?,?,?,?)", *fields)
        assert store.claim("e", [RUN]) == won


def test_many_writers_leave_one_row_a_run(path):
    Store(path)
    runs = [Run({"i": i}, 0) for i in range(40)]

    def write(_):
        store = Store(path)
        for run in runs:
            store.add("e", [run], [OUTCOME], ORIGIN, 0.0)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(Store(path).rows("e")) == 40


def newer_store(path):
    Store(path)
    change(path, "PRAGMA user_version = 99")


def damaged_store(path):
    store = Store(path)
    store.add("e", [Run({"i": i}, 0) for i in range(500)], [OUTCOME] * 500, ORIGIN, 0.0)
    rows_of(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[8192:40000] = b"\xff" * (40000 - 8192)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda path: path.write_text("no database, but long enough to look like one"), "a store of eigencurve"),
        (lambda path: change(path, "CREATE TABLE mine (x)"), "another kind of database"),
        (newer_store, "a store of version 1"),
        (damaged_store, "a store"),
    ],
)
def test_a_foreign_or_damaged_file_is_refused_and_left_unchanged(make, match, path):
    make(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=match):
        Store(path)
    assert path.read_bytes() == before


DAMAGE = {
    "metrics": '{"gap": 0.9333333333333333}',
    "curve": "[[0.0, 1.0], [5.0, 0.4]]",
    "diverged": 1,
    "settings": '{"lr": 0.2}',
    "seed": 4,
    "versions": '{"python": "4"}',
    "revision": "abd",
    "finished": 1.0,
    "seconds": 2.0,
}


@pytest.mark.parametrize("column", DAMAGE)
@pytest.mark.usefixtures("filled")
def test_a_changed_value_is_refused_instead_of_returned(column, path):
    change(path, f"UPDATE runs SET {column} = ?", DAMAGE[column])
    for store in (Store(path), Store(path, read_only=True)):
        with pytest.raises(DamagedStoreError, match="checksum") as error:
            store.rows("e")
        assert error.value.constraint == "a store in good order"
        with pytest.raises(DamagedStoreError, match="checksum"):
            store.outcomes("e", [RUN])


def test_every_flipped_bit_is_refused_or_changes_nothing(path, filled):
    copy = path.with_name("copy.sqlite")
    whole, expected = path.read_bytes(), filled.rows("e")
    used = [place for place in range(100, len(whole)) if whole[place]]
    for place in used[::3]:
        copy.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with contextlib.suppress(ValueError, StoreError):
            assert Store(copy, read_only=True).rows("e") in (expected, [])


@pytest.fixture
def old_store(path, filled):
    """A store as version 0.1 wrote it: the same tables without checksums."""
    change(path, "DROP TABLE checks")
    assert set(rows_of(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")) == {("runs",), ("claims",)}
    return filled


@pytest.mark.usefixtures("old_store")
def test_a_store_without_checksums_opens_and_gets_them(path):
    assert Store(path, read_only=True).outcomes("e", [RUN]) == [OUTCOME]
    assert Store(path).outcomes("e", [RUN]) == [OUTCOME]
    change(path, "UPDATE runs SET metrics = '{}'")
    with pytest.raises(DamagedStoreError, match="checksum"):
        Store(path).outcomes("e", [RUN])


def test_an_older_version_can_still_write(path):
    other = Run({"lr": 9.0}, 1)
    store = Store(path)
    row = (key_of("e", other), "e", '{"lr": 9.0}', 1, '{"gap": 1.0}', 0, "[]", "{}", "abc", 1.0, 2.0)
    change(path, "INSERT OR IGNORE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?)", *row)
    assert store.outcomes("e", [other]) == [Outcome({"gap": 1.0})]
    assert [row["seconds"] for row in Store(path).rows("e")] == [2.0]
    assert rows_of(path, "SELECT count(*) FROM checks") == [(1,)]
    assert rows_of(path, "PRAGMA user_version") == [(1,)]


def test_text_that_is_no_text_is_damage(path, old_store):
    change(path, "UPDATE runs SET metrics = CAST(x'ff41' AS TEXT)")
    with pytest.raises(DamagedStoreError, match=r"a store in good order, got .*decode"):
        old_store.rows("e")
    for statement in ("UPDATE runs SET metrics = '{'", "ALTER TABLE runs DROP COLUMN curve"):
        change(path, statement)
        with pytest.raises(DamagedStoreError, match="a store in good order"):
            old_store.outcomes("e", [RUN])


@pytest.mark.usefixtures("filled")
def test_reading_leaves_no_trace(path):
    before, times = path.read_bytes(), path.stat().st_mtime_ns
    reader = Store(path, read_only=True)
    assert reader.outcomes("e", [RUN]) == [OUTCOME]
    assert reader.experiments() == ["e"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, times)
    with pytest.raises(StoreError, match="opened for reading"):
        reader.add("e", [RUN], [OUTCOME], ORIGIN, 1.5)
    with pytest.raises(FileNotFoundError):
        Store(path.with_name("none.sqlite"), read_only=True)
    assert list(path.parent.iterdir()) == [path]


@pytest.fixture
def write_protected():
    """A store in a folder that this process may read but not write."""
    folder = tempfile.mkdtemp()  # pytest's own folder is closed to other users
    path = os.path.join(folder, "s.sqlite")
    Store(path).add("e", [RUN], [OUTCOME], ORIGIN, 1.5)
    os.chmod(path, 0o444)
    os.chmod(folder, 0o555)
    is_root = os.geteuid() == 0
    if is_root:  # permissions do not bind root
        os.seteuid(65534)
    yield path
    if is_root:
        os.seteuid(0)
    os.chmod(folder, 0o755)
    shutil.rmtree(folder)


def test_a_store_that_cannot_be_written_is_not_called_foreign(write_protected):
    with pytest.raises(StoreError, match=r"s\.sqlite cannot be written.*permission"):
        Store(write_protected)
    assert Store(write_protected, read_only=True).outcomes("e", [RUN]) == [OUTCOME]


def test_a_full_disk_is_called_so(path, monkeypatch):
    store, plain = Store(path), sqlite3.connect

    class Small(sqlite3.Connection):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            self.execute("PRAGMA max_page_count = 1")

    monkeypatch.setattr("eigencurve.runs.store.sqlite3.connect", lambda *w, **o: plain(*w, factory=Small, **o))
    long = Outcome({"gap": 1.0}, tuple((float(i), 1.0) for i in range(5000)))
    with pytest.raises(StoreError, match="the disk is full"):
        store.add("e", [RUN], [long], ORIGIN, 1.0)


def test_an_io_error_on_a_full_disk_is_called_so(path, monkeypatch):
    """SQLite needs space next to the store, and calls a lack of it an I/O error."""
    store = Store(path)

    class Failing(sqlite3.Connection):
        def executemany(self, *_):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
            raise error

    plain, free = sqlite3.connect, shutil.disk_usage(path.parent)
    monkeypatch.setattr("eigencurve.runs.store.sqlite3.connect", lambda *w, **o: plain(*w, factory=Failing, **o))
    for left, words in ((0, "the disk is full"), (1 << 30, "the disk cannot be read or written")):
        monkeypatch.setattr("eigencurve.runs.store.shutil.disk_usage", lambda _, left=left: free._replace(free=left))
        with pytest.raises(StoreError, match=words):
            store.add("e", [RUN], [OUTCOME], ORIGIN, 1.0)


@pytest.mark.parametrize("letter", ["s", "é"])
def test_the_longest_name_works_and_a_longer_one_is_refused_in_one_line(tmp_path, letter):
    count = 240 // len(letter.encode())
    store = Store(tmp_path / f"{letter * count}.sqlite")
    store.add("e", [RUN], [OUTCOME], ORIGIN, 1.0)
    assert Store(store.path, read_only=True).outcomes("e", [RUN]) == [OUTCOME]
    for read_only in (False, True):
        with pytest.raises(ValueError, match=r"Store: 'path' must be a file name of at most 247 bytes.*'-journal'"):
            Store(tmp_path / f"{letter * count}x.sqlite", read_only)


def test_a_store_stays_in_the_folder_of_the_call(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    store = Store("s.sqlite")
    os.chdir("other")
    store.add("e", [RUN], [OUTCOME], ORIGIN, 1.0)
    assert store.outcomes("e", [RUN]) == [OUTCOME]
    assert not list((tmp_path / "other").iterdir())


def test_a_link_to_a_store_finds_the_log_of_its_target(tmp_path, monkeypatch):
    """In a folder that cannot be written, runs that are still in the log must not be left out in silence."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "real" / "s.sqlite")
    Store(tmp_path / "real" / "s.sqlite")
    (tmp_path / "real" / "s.sqlite-wal").write_bytes(b"runs that are not in the store yet")

    class Denied:
        """A connection to a file that cannot be locked, because no file can be created next to it."""

        def __init__(self, address, **_settings):
            assert "immutable" not in address, "the log is ignored"

        def execute(self, _statement):
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error

        def close(self):
            pass

    monkeypatch.setattr(sqlite3, "connect", Denied)
    with pytest.raises(StoreError, match=r"link\.sqlite cannot be written or opened"):
        Store(tmp_path / "link.sqlite", read_only=True)
