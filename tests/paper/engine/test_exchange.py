import json

import pytest

from eigencurve.runs import Origin, Outcome, Run, Store
from paper.engine.exchange import _digest, add_runs, read_runs, write_runs

RUNS = [Run({"lr": lr, "points": [[0.0, 1.0]], "name": "ä"}, seed) for lr in (0.1, 0.3) for seed in (0, 1)]
OUTCOMES = [
    Outcome({"loss": 1 / 3}, curves={"loss": ((1.0, 0.5), (2.0, 1 / 3))}),
    Outcome({"loss": 0.25}, ((0.0, 1.0),)),
    Outcome({"num_steps": 3.0}, diverged=True),
    Outcome({"loss": 1e-300}),
]


@pytest.fixture
def store(tmp_path):
    found = Store(tmp_path / "a.sqlite")
    found.add("one", RUNS[:3], OUTCOMES[:3], Origin({"python": "3"}, "abc"), 1.5)
    found.add("two", RUNS[3:], OUTCOMES[3:], Origin({"python": "3"}, ""), 2.5)
    return found


def with_checksum(lines):
    body = b"".join(line + b"\n" for line in lines)
    return json.dumps({"eigencurve": "runs", "version": 1, "check": _digest(body)}).encode() + b"\n" + body


def test_runs_move_to_another_store_with_everything_known_of_them(store, tmp_path):
    path, other = tmp_path / "new" / "runs.jsonl", Store(tmp_path / "b.sqlite")
    assert write_runs(store, path) == 4
    add_runs(other, path)
    assert other.outcomes("one", RUNS[:3]) == OUTCOMES[:3]
    assert other.outcomes("two", RUNS[3:]) == OUTCOMES[3:]
    for name in ("one", "two"):
        assert other.rows(name) == store.rows(name)
    assert other.claim("one", RUNS) == RUNS[3:]
    write_runs(other, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()


def test_a_run_that_the_store_has_is_kept(store, tmp_path):
    path, other = tmp_path / "runs.jsonl", Store(tmp_path / "b.sqlite")
    own = Outcome({"loss": 9.0})
    other.add("one", RUNS[:1], [own], Origin({}, "own"), 1.0)
    write_runs(store, path)
    add_runs(other, path)
    add_runs(other, path)
    assert other.outcomes("one", RUNS[:2]) == [own, OUTCOMES[1]]


def test_damage_is_refused_and_nothing_is_added(store, tmp_path):
    path, other = tmp_path / "runs.jsonl", Store(tmp_path / "b.sqlite")
    write_runs(store, path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"0.25", b"0.26"))
    with pytest.raises(ValueError, match=r"runs\.jsonl: it does not match its checksum.*Restore the file"):
        add_runs(other, path)
    path.write_bytes(content[: content.rindex(b"\n", 0, -1) + 1])  # without its last line
    with pytest.raises(ValueError, match="does not match its checksum"):
        add_runs(other, path)
    assert other.experiments() == []


@pytest.mark.parametrize(
    ("column", "value"), [("key", "0" * 64), ("seed", 7), ("metrics", []), ("curve", 3), ("settings", None)]
)
def test_a_line_that_would_spoil_the_store_is_refused(store, tmp_path, column, value):
    path = tmp_path / "runs.jsonl"
    row = {**store.rows("two")[0], column: value}
    path.write_bytes(with_checksum([json.dumps(store.rows("one")[0]).encode(), json.dumps(row).encode()]))
    with pytest.raises(ValueError, match="line 3 is not a run"):
        read_runs(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "another kind of file"),
        (b"step,lr,loss\n1,2,3\n", "another kind of file"),
        (b"\xff\xfe\n", "another kind of file"),
        (b"[1]\n", "another kind of file"),
        (b'{"eigencurve": "runs", "version": 2, "check": ""}\n', "version 2"),
        (with_checksum([b"not JSON"]), "line 2 is not a run"),
        (with_checksum([b"[" * 100_000]), "line 2 is not a run"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_runs(tmp_path / "x")
