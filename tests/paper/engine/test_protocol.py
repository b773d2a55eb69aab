import itertools
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.paper.engine.toy import Toy

from eigencurve.runs.store import Outcome, Run, Store, StoreError
from paper.engine.protocol import RunError, Trials, execute, search, trials_of
from paper.engine.request import Workers

HERE = Workers(backend="sequential", count=1)
GRIDS = {"small": [{"x": x} for x in (0, 1, 2)], "large": [{"x": x} for x in (2, 3, 99)]}


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log"
    path.touch()
    return path


def lines(log):
    return Counter(Path(log).read_text().split("\n")[:-1])


def test_the_winner_is_chosen_on_some_seeds_and_reported_on_others(tmp_path, log):
    small, large = search(Toy(str(log)), GRIDS, (10, 11), (20, 21, 22), Store(tmp_path / "s.sqlite"), HERE)
    assert (small.schedule, small.fresh.settings, large.fresh.settings) == ("small", {"x": 2}, {"x": 3})
    assert small.chosen_on.values == pytest.approx((1.010, 1.011))
    assert small.fresh.values == pytest.approx((1.020, 1.021, 1.022))
    assert (small.fresh.mean, small.fresh.deviation) == (pytest.approx(1.021), pytest.approx(0.001))
    assert small.fresh.text(3) == "1.021 ± 0.001"
    # Five settings, for x = 2 stands in both grids, on two seeds; two winners on three.
    assert sum(lines(log).values()) == 5 * 2 + 2 * 3
    assert max(lines(log).values()) == 1


def test_the_largest_wins_where_the_metric_is_to_be_maximised(tmp_path, log):
    toy = Toy(str(log), minimise=False)
    (found,) = search(toy, {"small": GRIDS["small"]}, (10,), (20,), Store(tmp_path / "s.sqlite"), HERE)
    assert found.fresh.settings == {"x": 0}


def test_trials_may_have_settings_of_their_own_and_a_grid_of_one_is_not_searched(tmp_path, log):
    grids = {"small": GRIDS["small"], "one": [{"x": 7}]}
    store = Store(tmp_path / "s.sqlite")
    small, one = search(
        Toy(str(log)), grids, (10,), (20,), store, HERE, final=lambda settings: {**settings, "all": True}
    )
    assert small.chosen_on.settings == {"x": 2}
    assert small.fresh.settings == {"x": 2, "all": True}
    assert (one.chosen_on.values, one.chosen_on.mean) == ((), None)
    assert one.fresh.settings == {"x": 7, "all": True}
    assert lines(log) == Counter(["0 10", "1 10", "2 10", "2 20", "7 20"])


def test_all_schedules_advance_together(tmp_path, log):
    grids = {"a": [{"x": 0}, {"x": 4}], "b": [{"x": 5}, {"x": 6}]}
    search(Toy(str(log)), grids, (10,), (20, 21), Store(tmp_path / "s.sqlite"), HERE)
    order = log.read_text().split("\n")[:-1]
    assert order == ["0 10", "5 10", "4 10", "6 10", "4 20", "5 20", "4 21", "5 21"]


def test_nothing_is_run_twice(tmp_path, log):
    for _ in range(2):
        search(Toy(str(log)), GRIDS, (10, 11), (20,), Store(tmp_path / "s.sqlite"), HERE)
    assert max(lines(log).values()) == 1


def test_diverged_runs_are_counted_and_never_averaged(tmp_path, log):
    (found,) = search(Toy(str(log)), {"large": [{"x": 99}]}, (10,), (20, 21), Store(tmp_path / "s.sqlite"), HERE)
    assert (found.fresh.num_diverged, found.fresh.values, found.fresh.mean) == (2, (), None)
    assert found.fresh.text() == "* all diverged"
    assert Trials({}, (1.0, 3.0), num_diverged=1).text(1) == "*2.0 ± 1.4"


def test_settings_that_diverge_lose_against_any_that_do_not(tmp_path, log):
    worse = {"grid": [{"x": 99}, {"x": 1000}]}
    (found,) = search(Toy(str(log)), worse, (10,), (20,), Store(tmp_path / "s.sqlite"), HERE)
    assert found.fresh.settings == {"x": 1000}


def test_the_reported_seeds_must_be_fresh(tmp_path, log):
    with pytest.raises(ValueError, match="'fresh_seeds' must be other than the selection seeds"):
        search(Toy(str(log)), GRIDS, (1, 2), (2, 3), Store(tmp_path / "s.sqlite"), HERE)


def test_an_error_of_a_run_is_told_and_the_finished_ones_are_kept(tmp_path, log):
    store = Store(tmp_path / "s.sqlite")
    runs = [Run({"x": x}, 1) for x in (0, 1, -1)]
    with pytest.raises(
        RunError, match=r"toy: ArithmeticError: x is negative \(one, settings {'x': -1}\); finished runs"
    ):
        execute(Toy(str(log)), runs, store, HERE)
    assert [outcome is not None for outcome in store.outcomes("toy", runs)] == [True, True, False]
    assert store.claim("toy", runs) == [runs[2]]


def test_a_metric_that_is_not_finite_counts_as_diverged():
    scores = {5: 1.0, 6: math.nan, 7: 3.0, 8: math.inf}
    outcomes = {seed: Outcome({"score": score, "other": math.nan}) for seed, score in scores.items()}
    found = trials_of({"x": 1}, outcomes, "score")
    assert (found.values, found.seeds, found.num_diverged) == ((1.0, 3.0), (5, 7), 2)
    assert found.text(1) == "*2.0 ± 1.4"


class Full(Store):
    """A store on a disk that is full."""

    def add(self, *_):
        raise StoreError("Store: s.sqlite: the disk is full")


def test_a_full_disk_is_told_at_once_and_not_taken_for_a_dead_worker(tmp_path, log):
    for workers in (HERE, Workers(count=2)):
        with pytest.raises(StoreError, match=r"^Store: s\.sqlite: the disk is full$"):
            execute(Toy(str(log)), [Run({"x": 0}, 1)], Full(tmp_path / "s.sqlite"), workers)
    assert sum(lines(log).values()) == 2


def test_workers_that_keep_dying_are_given_up_after_five_times(tmp_path, monkeypatch, log):
    tries = []

    def dying(_workers, _function, tasks):
        tries.append(list(tasks))
        raise OSError("a worker died")
        yield

    monkeypatch.setattr("paper.engine.protocol.results", dying)
    store = Store(tmp_path / "s.sqlite")
    with pytest.raises(RuntimeError, match=r"toy: workers died 5 times \(a worker died\); finished runs are kept"):
        execute(Toy(str(log)), [Run({"x": 0}, 1)], store, HERE)
    assert len(tries) == 5
    assert store.claim("toy", [Run({"x": 0}, 1)]) == [Run({"x": 0}, 1)]


def test_the_seconds_of_a_group_are_shared_by_its_runs(tmp_path, monkeypatch, log):
    class Pairs(Toy):
        def batches(self, runs):
            return [runs[i : i + 2] for i in range(0, len(runs), 2)]

    clock = itertools.count(100.0, 3.0)  # every look at the clock is three seconds later
    monkeypatch.setattr("paper.engine.protocol.time.perf_counter", lambda: next(clock))
    store = Store(tmp_path / "s.sqlite")
    execute(Pairs(str(log)), [Run({"x": x}, 1) for x in range(4)], store, HERE)
    assert [row["seconds"] for row in store.rows("toy")] == [1.5] * 4


def test_processes_give_the_same_as_one(tmp_path, log):
    found = [
        search(Toy(str(log)), GRIDS, (10, 11), (20,), Store(tmp_path / f"{workers.backend}.sqlite"), workers)
        for workers in (HERE, Workers(count=2))
    ]
    assert found[0] == found[1]


def test_a_worker_that_is_killed_is_replaced(tmp_path, log):
    toy = Toy(str(log), kill_once=str(tmp_path / "killed"))
    found = search(toy, GRIDS, (10, 11), (20,), Store(tmp_path / "s.sqlite"), Workers(count=2))
    assert (tmp_path / "killed").exists()
    assert found == search(Toy(str(log)), GRIDS, (10, 11), (20,), Store(tmp_path / "t.sqlite"), HERE)


SCRIPT = """
import sys
from paper.engine.protocol import execute
from eigencurve.runs.store import Run, Store
from paper.engine.request import Workers
from tests.paper.engine.toy import Toy
runs = [Run({"x": x}, seed) for x in range(10) for seed in range(4)]
execute(Toy(sys.argv[1], seconds=0.05), runs, Store(sys.argv[2]), Workers(backend="sequential", count=1))
"""


def start(log, store):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(log), str(store)], cwd=Path(__file__).parents[3])


def test_goes_on_after_kill_9_and_loses_only_what_was_under_way(tmp_path, log):
    child = start(log, tmp_path / "s.sqlite")
    while sum(lines(log).values()) < 10:
        time.sleep(0.02)
        assert child.poll() is None
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    kept = len(Store(tmp_path / "s.sqlite").rows("toy"))
    assert kept >= 9
    assert start(log, tmp_path / "s.sqlite").wait() == 0
    assert len(Store(tmp_path / "s.sqlite").rows("toy")) == 40
    assert sum(lines(log).values()) <= 41  # the one that was under way may have run twice


def test_two_processes_share_the_work_of_one_store(tmp_path, log):
    children = [start(log, tmp_path / "s.sqlite") for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    assert len(Store(tmp_path / "s.sqlite").rows("toy")) == 40
    assert max(lines(log).values()) == 1
    assert sum(lines(log).values()) == 40


def test_a_ray_cluster_gives_the_same_table_also_when_a_worker_is_killed(tmp_path, log, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]), prepend=os.pathsep)
    toy = Toy(str(log), kill_once=str(tmp_path / "killed"))
    try:
        found = search(toy, GRIDS, (10, 11), (20,), Store(tmp_path / "ray.sqlite"), Workers(count=2, backend="ray"))
    finally:
        ray.shutdown()
    assert (tmp_path / "killed").exists()
    assert found == search(Toy(str(log)), GRIDS, (10, 11), (20,), Store(tmp_path / "plain.sqlite"), HERE)
