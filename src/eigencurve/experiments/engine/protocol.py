"""A grid search on selection seeds, then trials of each winner on fresh ones; for every experiment alike."""

from __future__ import annotations

import contextlib
import math
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import joblib

from eigencurve import _check
from eigencurve.experiments.engine.progress import Progress
from eigencurve.experiments.engine.workers import Workers, results
from eigencurve.runs.origin import origin_here
from eigencurve.runs.store import Outcome, Run, Store

MAX_DEATHS = 5
WAIT_SECONDS = 0.2
HEARTBEAT_SECONDS = 60.0
Settings = Mapping[str, Any]


class Experiment(Protocol):
    """Something that can be run with settings and a seed.

    Attributes:
        name: of the experiment in the store; it names the data too, so that other data are other runs.
        metric: the outcome's number that the winner has the least of (``minimise``) or the most of.
        minimise: which of the two.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def metric(self) -> str: ...  # noqa: D102
    @property
    def minimise(self) -> bool: ...  # noqa: D102
    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """The runs in groups that are best run together, the longest first."""

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Run a group; a pure function of it."""


@dataclass(frozen=True)
class Trials:
    """Outcomes of one schedule's winner over several seeds.

    A run that diverged has no number: mean and deviation are those of the others, and ``num_diverged`` says how
    many there were. ``mean`` is None where all diverged.
    """

    settings: Settings
    values: tuple[float, ...]
    num_diverged: int

    @property
    def mean(self) -> float | None:
        """Mean over the runs that did not diverge."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float:
        """Their sample standard deviation; 0 for a single one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    def text(self, digits: int = 6) -> str:
        """``mean ± deviation``, with the paper's star where any run diverged."""
        if self.mean is None:
            return "* all diverged"
        return f"{'*' if self.num_diverged else ''}{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"


@dataclass(frozen=True)
class Finding:
    """What a search found for one schedule: its winner on the seeds it was chosen by, and on fresh ones."""

    schedule: str
    chosen_on: Trials
    fresh: Trials


def execute(
    experiment: Experiment, runs: Iterable[Run], store: Store, workers: Workers | None = None, progress: bool = False
) -> list[Outcome]:
    """Outcomes of all ``runs``, in their order; those that the store has are not run again.

    Each outcome is in the store as soon as its group is done. Several processes may work on one store: each takes
    groups that no other living process is at, and waits for the rest. Workers that die are replaced, and what they
    had under way is run again.

    Raises:
        RuntimeError: a run raised an error, or workers died again and again; what was finished is kept.
    """
    wanted = list(runs)
    deaths = 0
    with Progress(experiment.name, len(wanted), enabled=progress) as bar, _heartbeat(store):
        while missing := _missing(experiment, wanted, store):
            bar.show(done=len(wanted) - len(missing))
            try:
                if not _run_unclaimed(experiment, missing, store, workers or Workers(), bar):
                    time.sleep(WAIT_SECONDS)  # all of them are under way in other processes
            except RunError:
                raise
            except Exception as error:  # whatever a backend raises when its workers die
                deaths += 1
                if deaths == MAX_DEATHS:
                    message = f"{experiment.name}: workers died {deaths} times ({error}); finished runs are kept."
                    raise RuntimeError(message) from error
        bar.show(done=len(wanted))
    return [outcome for outcome in store.outcomes(experiment.name, wanted) if outcome is not None]


def search(
    experiment: Experiment,
    grids: Mapping[str, Sequence[Settings]],
    selection_seeds: Sequence[int],
    fresh_seeds: Sequence[int],
    store: Store,
    workers: Workers | None = None,
    progress: bool = False,
    final: Callable[[Settings], Settings] = dict,
) -> list[Finding]:
    """For each schedule, the best settings of its grid by the selection seeds, and their trials on fresh seeds.

    Settings that diverged on any selection seed lose against all that did not. A grid of one is not searched.

    Args:
        experiment: what to run.
        grids: for each schedule's name, the settings to try.
        selection_seeds: that the winner is chosen on.
        fresh_seeds: others, that the winner is reported on.
        store: where finished runs are kept and looked up.
        workers: who runs.
        progress: whether to draw a progress bar.
        final: the settings of a trial for those that won, where a trial is not run as the search is (on all training
            data, for instance).
    """
    if set(selection_seeds) & set(fresh_seeds):
        _check.refuse("search", "fresh_seeds", "other than the selection seeds", list(fresh_seeds))
    searched = [grid for grid in grids.values() if len(grid) > 1]
    every = [Run(settings, seed) for grid in searched for settings in grid for seed in selection_seeds]
    execute(experiment, every, store, workers, progress)
    chosen = {name: _winner(experiment, grid, selection_seeds, store) for name, grid in grids.items()}
    fresh_runs = [Run(final(trials.settings), seed) for trials in chosen.values() for seed in fresh_seeds]
    execute(experiment, fresh_runs, store, workers, progress)
    return [
        Finding(name, trials, _trials(experiment, final(trials.settings), fresh_seeds, store))
        for name, trials in chosen.items()
    ]


class RunError(RuntimeError):
    """A run raised an error of its own: nothing that another worker could mend."""


def _missing(experiment: Experiment, wanted: Sequence[Run], store: Store) -> list[Run]:
    found = store.outcomes(experiment.name, wanted)
    return [run for run, outcome in zip(wanted, found, strict=True) if outcome is None]


def _run_unclaimed(
    experiment: Experiment, missing: Sequence[Run], store: Store, workers: Workers, bar: Progress
) -> bool:
    """Run what nobody else is at, group by group; whether there was anything."""
    claimed: list[Run] = []

    def tasks() -> Iterator[Any]:
        for batch in experiment.batches(missing):
            if ours := store.claim(experiment.name, batch):
                claimed.extend(ours)
                bar.show(started=len(ours))
                yield joblib.delayed(_guarded)(experiment, ours)

    origin = origin_here()
    try:
        for batch, outcomes, seconds, failure in results(workers, tasks()):
            if failure:
                bar.show(failed=len(batch))
                raise RunError(f"{experiment.name}: {failure}; finished runs are kept.")
            store.add(experiment.name, batch, outcomes, origin, seconds / len(batch))
            bar.show(finished=len(batch))
    finally:
        store.release(experiment.name, claimed)
    return bool(claimed)


def _guarded(experiment: Experiment, batch: Sequence[Run]) -> tuple[Sequence[Run], list[Outcome], float, str]:
    """Run a group in a worker; an error of its own comes back as text, with where it happened."""
    start = time.perf_counter()
    try:
        outcomes = experiment.run(batch)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return batch, [], 0.0, f"{type(error).__name__}: {error} ({last.name}, settings {dict(batch[0].settings)})"
    return batch, outcomes, time.perf_counter() - start, ""


def _winner(experiment: Experiment, grid: Sequence[Settings], seeds: Sequence[int], store: Store) -> Trials:
    sign = 1 if experiment.minimise else -1
    tried = [_trials(experiment, settings, seeds, store) for settings in grid]
    return min(tried, key=lambda t: (t.num_diverged > 0, t.num_diverged, math.inf if t.mean is None else sign * t.mean))


def _trials(experiment: Experiment, settings: Settings, seeds: Sequence[int], store: Store) -> Trials:
    found = store.outcomes(experiment.name, [Run(settings, seed) for seed in seeds])
    outcomes = [outcome for outcome in found if outcome is not None]
    values = tuple(outcome.metrics[experiment.metric] for outcome in outcomes if not outcome.diverged)
    return Trials(settings, values, sum(outcome.diverged for outcome in outcomes))


@contextlib.contextmanager
def _heartbeat(store: Store) -> Iterator[None]:
    """Keep this process's claims alive while runs are under way."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(HEARTBEAT_SECONDS):
            store.renew()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
