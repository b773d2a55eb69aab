"""The search protocol of every experiment: a grid search on selection seeds, then trials on fresh seeds."""

from __future__ import annotations

import contextlib
import math
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from eigencurve.runs import DamagedStoreError, Outcome, Run, Store, StoreError, origin_here
from paper import checks
from paper.engine.pool import results
from paper.engine.progress import Progress
from paper.engine.request import Workers

MAX_DEATHS = 5
WAIT_SECONDS = 0.2
HEARTBEAT_SECONDS = 60.0
Settings = Mapping[str, Any]
Item = TypeVar("Item")


class Experiment(Protocol):
    """Training runs that are a function of settings and a seed.

    Attributes:
        name: Name of the experiment in the store. It identifies the data too, so runs on other data are other runs.
        metric: Name of the metric by which settings are chosen.
        minimise: Whether a smaller metric is better.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def metric(self) -> str: ...  # noqa: D102
    @property
    def minimise(self) -> bool: ...  # noqa: D102
    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Group the runs that are best run together, the longest groups first."""

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Run one group. The outcomes depend on nothing but the group."""


@dataclass(frozen=True)
class Trials:
    """One metric of one setting over several seeds."""

    settings: Settings  # settings of the runs
    values: tuple[float, ...]  # metric of each run that did not diverge
    num_diverged: int  # Number of runs that diverged. They enter neither the mean nor the deviation.
    seeds: tuple[int, ...] = ()  # seed of each value, to compare runs of the same seed; empty if nothing is compared

    @property
    def mean(self) -> float | None:
        """Mean over the runs that did not diverge; None if all did."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float:
        """Sample standard deviation over the runs that did not diverge; 0 for a single run."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    def text(self, digits: int = 6) -> str:
        """``mean ± deviation``; as in the paper, a leading star means that some run diverged."""
        if self.mean is None:
            return "* all diverged"
        return f"{'*' if self.num_diverged else ''}{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"


@dataclass(frozen=True)
class Finding:
    """The winner of one schedule's grid."""

    schedule: str  # name of the schedule
    chosen_on: Trials  # trials of the winner on the selection seeds
    fresh: Trials  # trials of the winner on fresh seeds


def execute(
    experiment: Experiment, runs: Iterable[Run], store: Store, workers: Workers | None = None, progress: bool = False
) -> list[Outcome]:
    """The outcomes of ``runs``, in the same order; runs that are already in the store are not repeated.

    An outcome is saved as soon as its group has finished. Several processes can share a store: each claims groups
    that no other live process works on, and waits for the rest. Workers that die are replaced and their unfinished
    runs repeated.

    Raises:
        RuntimeError: A run raised an error, or workers died repeatedly. Finished runs are kept.
        StoreError, DamagedStoreError: The store cannot be used, for example because the disk is full.
    """
    wanted = list(runs)
    deaths = 0
    with Progress(experiment.name, len(wanted), enabled=progress) as bar, _heartbeat(store):
        while missing := _missing(experiment, wanted, store):
            bar.show(done=len(wanted) - len(missing))
            try:
                if not _run_unclaimed(experiment, missing, store, workers or Workers(), bar):
                    time.sleep(WAIT_SECONDS)  # other processes work on all of them
            except (RunError, StoreError, DamagedStoreError):
                raise
            except Exception as error:  # each backend raises its own error when a worker dies
                deaths += 1
                if deaths == MAX_DEATHS:
                    message = f"{experiment.name}: workers died {deaths} times ({error}); finished runs are kept."
                    raise RuntimeError(message) from error
        bar.show(done=len(wanted))
    return [outcome for outcome in store.outcomes(experiment.name, wanted) if outcome is not None]


def search(
    experiment: Experiment, grids: Mapping[str, Sequence[Settings]], selection_seeds: Sequence[int],
    fresh_seeds: Sequence[int], store: Store, workers: Workers | None = None, progress: bool = False,
    final: Callable[[Settings], Settings] = dict,
) -> list[Finding]:  # fmt: skip
    """Choose the best settings of each schedule's grid on the selection seeds, then run them on fresh seeds.

    Settings that diverged on any selection seed lose against all that did not. A grid of one setting is not searched.
    The first settings of all grids run first, then the second ones, and so on; the trials run seed by seed. So an
    interrupted search has treated all schedules alike.

    Args:
        experiment: Experiment to run.
        grids: Settings to try, by name of the schedule.
        selection_seeds: Seeds on which the winner is chosen.
        fresh_seeds: Other seeds, on which the winner is reported.
        store: Store of finished runs.
        workers: Worker processes.
        progress: Whether to draw a progress bar.
        final: Maps the winning settings to those of its trials, if the two differ (for example in the training data).
    """
    if set(selection_seeds) & set(fresh_seeds):
        checks.refuse("search", "fresh_seeds", "other than the selection seeds", list(fresh_seeds))
    searched = [grid for grid in grids.values() if len(grid) > 1]
    every = [Run(settings, seed) for settings in in_turn(searched) for seed in selection_seeds]
    execute(experiment, every, store, workers, progress)
    chosen = {name: best_of(experiment, grid, selection_seeds, store) for name, grid in grids.items()}
    fresh_runs = [Run(final(trials.settings), seed) for seed in fresh_seeds for trials in chosen.values()]
    execute(experiment, fresh_runs, store, workers, progress)
    return [
        Finding(name, trials, _trials(experiment, final(trials.settings), fresh_seeds, store))
        for name, trials in chosen.items()
    ]


def in_turn(lists: Iterable[Iterable[Item]]) -> list[Item]:
    """The first items of all lists, then the second ones, and so on.

    >>> in_turn(["abc", "12"])
    ['a', '1', 'b', '2', 'c']
    """
    rows = [list(items) for items in lists]
    return [row[place] for place in range(max(map(len, rows), default=0)) for row in rows if place < len(row)]


class RunError(RuntimeError):
    """A run raised an error; running it again on another worker would not help."""


def _missing(experiment: Experiment, wanted: Sequence[Run], store: Store) -> list[Run]:
    outcomes = store.outcomes(experiment.name, wanted)
    return [run for run, outcome in zip(wanted, outcomes, strict=True) if outcome is None]


def _run_unclaimed(
    experiment: Experiment, missing: Sequence[Run], store: Store, workers: Workers, bar: Progress
) -> bool:
    """Run the groups that no other process has claimed; return whether there were any."""
    claimed: list[Run] = []

    def groups() -> Iterator[tuple[Experiment, list[Run]]]:
        for batch in experiment.batches(missing):
            if ours := store.claim(experiment.name, batch):
                claimed.extend(ours)
                bar.show(started=len(ours))
                yield experiment, ours

    origin = origin_here()
    try:
        for batch, outcomes, seconds, failure in results(workers, _guarded, groups()):
            if failure:
                bar.show(failed=len(batch))
                raise RunError(f"{experiment.name}: {failure}; finished runs are kept.")
            store.add(experiment.name, batch, outcomes, origin, seconds / len(batch))
            bar.show(finished=len(batch))
    finally:
        store.release(experiment.name, claimed)
    return bool(claimed)


def _guarded(task: tuple[Experiment, list[Run]]) -> tuple[list[Run], list[Outcome], float, str]:
    """Run a group in a worker process; an error is returned as text that says where it happened."""
    experiment, batch = task
    start = time.perf_counter()
    try:
        outcomes = experiment.run(batch)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return batch, [], 0.0, f"{type(error).__name__}: {error} ({last.name}, settings {dict(batch[0].settings)})"
    return batch, outcomes, time.perf_counter() - start, ""


def best_of(experiment: Experiment, grid: Sequence[Settings], seeds: Sequence[int], store: Store) -> Trials:
    """The best settings of a grid by the runs in the store; see :func:`search`."""
    sign = 1 if experiment.minimise else -1
    tried = [_trials(experiment, settings, seeds, store) for settings in grid]
    return min(tried, key=lambda t: (t.num_diverged > 0, t.num_diverged, math.inf if t.mean is None else sign * t.mean))


def _trials(experiment: Experiment, settings: Settings, seeds: Sequence[int], store: Store) -> Trials:
    return trials_of(settings, stored_outcomes(experiment, settings, seeds, store), experiment.metric)


def stored_outcomes(
    experiment: Experiment, settings: Settings, seeds: Sequence[int], store: Store
) -> dict[int, Outcome]:
    """The outcomes of some settings that are in the store, by seed."""
    outcomes = store.outcomes(experiment.name, [Run(settings, seed) for seed in seeds])
    return {seed: outcome for seed, outcome in zip(seeds, outcomes, strict=True) if outcome is not None}


def trials_of(settings: Settings, outcomes: Mapping[int, Outcome], metric: str) -> Trials:
    """One metric of several outcomes, by seed; runs that diverged, or whose metric is not finite, are only counted."""
    values = {seed: outcome.metrics[metric] for seed, outcome in outcomes.items() if not outcome.diverged}
    kept = {seed: value for seed, value in values.items() if math.isfinite(value)}
    return Trials(settings, tuple(kept.values()), len(outcomes) - len(kept), tuple(kept))


@contextlib.contextmanager
def _heartbeat(store: Store) -> Iterator[None]:
    """Renew this process's claims while runs are in progress."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(HEARTBEAT_SECONDS):
            with contextlib.suppress(StoreError):  # a busy store is tried again at the next beat
                store.renew()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
