"""Work that is killed with SIGKILL, again and again, and started again: it must end as if nothing had happened."""

from __future__ import annotations

import os
import pickle
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from robustness.counts import Counts
from tests.paper.engine.toy import Toy
from tests.paper.training.training_job import Blobs, net, settings
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve._files import write_atomically
from eigencurve.forecast import LoggedRun, fit_runs
from eigencurve.hessian import HessianOperator, checkpoint, estimate_noise, estimate_spectrum
from eigencurve.runs.store import Run, Store
from paper.engine.protocol import execute
from paper.engine.request import Workers
from paper.training.loop import train

PATIENCE = 600.0
GRID = [Run({"x": x}, seed) for x in range(5) for seed in range(20)]


@dataclass(frozen=True)
class Work:
    """A function of a folder; what it returns must not depend on kills.

    Attributes:
        name: What is done.
        run: Does it, and continues from the files in the folder.
        rows: Counts finished runs in the folder, for work with a store.
    """

    name: str
    run: Callable[[Path], Any]
    rows: Callable[[Path], int] = lambda _: 0


def attack(work: Work, folder: Path, kills: int, seed: int) -> Counts:
    """Kill the work ``kills`` times at random moments. Each time it ends, a new one begins."""
    counts, rng = Counts(f"killed: {work.name}"), random.Random(f"{seed}:{work.name}")
    begun, undisturbed = time.monotonic(), _fresh(folder, 0)
    expected = _finish(work, undisturbed)
    if (undisturbed / "error").exists():
        raise RuntimeError(f"{work.name} fails undisturbed: {expected.decode()}")
    usual = time.monotonic() - begun
    number, rows, is_whole = 1, 0, True
    place = _fresh(folder, number)
    while counts.cases < kills:
        begun, child = time.monotonic(), _started(work, place)
        _wait(child, rng.uniform(0.0, 0.7 * usual))
        if not _kill(child):
            if is_whole:  # the first run compiled more, or the machine was busy
                usual = min(usual, time.monotonic() - begun)
            _compare(place, expected, counts)
            number, rows, is_whole = number + 1, 0, True
            place = _fresh(folder, number)
            continue
        counts.cases, is_whole = counts.cases + 1, False
        found = work.rows(place)
        counts.rows_lost += max(0, rows - found)
        rows = found
        counts.survived += 1
    _finish(work, place)
    _compare(place, expected, counts)
    return counts


def _fresh(folder: Path, number: int) -> Path:
    place = folder / str(number)
    place.mkdir(parents=True)
    return place


def _started(work: Work, place: Path) -> int:
    """A fork of this process, which has imported everything already, that does the work and writes its result."""
    child = os.fork()
    if child:
        return child
    try:
        torch.set_num_threads(1)
        write_atomically(place / "result", pickle.dumps(work.run(place)))
        os._exit(0)
    except BaseException as error:
        write_atomically(place / "error", f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(1)


def _finish(work: Work, place: Path) -> bytes:
    child = _started(work, place)
    _wait(child, PATIENCE)
    if _kill(child):
        (place / "error").write_text(f"no end after {PATIENCE:.0f} seconds")
    return _result(place)


def _result(place: Path) -> bytes:
    error = place / "error"
    return error.read_bytes() if error.exists() else (place / "result").read_bytes()


def _compare(place: Path, expected: bytes, counts: Counts) -> None:
    found = _result(place)
    if (place / "error").exists():
        counts.faults[found.decode()[:200]] += 1
    elif found != expected:
        counts.wrong_values += 1


def _wait(child: int, seconds: float) -> None:
    """Wait until the child has ended, at most ``seconds``, and leave it to be collected."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(0.002)


def _kill(child: int) -> bool:
    """Kill the child and everything that waits for it; False if it had already ended."""
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def works() -> list[Work]:
    """Everything that is long and resumes, and a fit, which starts again."""
    return [
        Work("an estimate", _estimate),
        Work("a noise estimate", _noise),
        Work("a grid of runs", _grid, _grid_rows),
        Work("a training run", _train),
        Work("a fit", _fit),
    ]


def _estimate(place: Path) -> Any:
    checkpoint.SECONDS_BETWEEN = 0.0
    found = estimate_spectrum(
        np.diag(np.geomspace(1e-4, 9.0, 60)), 40, num_probes=2, settle=None, checkpoint=place / "c", progress=False
    )
    return [found.spectrum.eigenvalues.tolist(), found.spectrum.weights.tolist(), found.num_products]


def _noise(place: Path) -> Any:
    checkpoint.SECONDS_BETWEEN = 0.0
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    operator = HessianOperator(model, F.cross_entropy, (torch.randn(24, 4), torch.arange(24) % 2))
    spectrum = ec.Spectrum(np.geomspace(1e-4, 2.0, 37), np.ones(37), dim=37)
    found = estimate_noise(
        operator, spectrum, batch_size=8, num_samples=2, num_products=12, checkpoint=place / "c", progress=False,
        weight_decay=1e-3,
    )  # fmt: skip
    return [repr(found.octaves), found.trace, found.sigma2]


def _grid(place: Path) -> Any:
    toy = Toy(str(place / "log"), seconds=0.002)
    found = execute(toy, GRID, Store(place / "store.sqlite"), Workers(1, "sequential"))
    return [dict(outcome.metrics) for outcome in found]


def _grid_rows(place: Path) -> int:
    path = place / "store.sqlite"
    return sum(outcome is not None for outcome in Store(path).outcomes("toy", GRID)) if path.exists() else 0


def _train(place: Path) -> Any:
    model, task = net(), Blobs()
    found = train(model, task, settings(), run="job", checkpoint=place / "c.pt", save_seconds=0.0)
    weights = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
    return [weights, {name: list(values) for name, values in found.history.items()}]


def _fit(place: Path) -> Any:
    """A fit that writes its best schedule, as the command does."""
    steps = np.arange(50, 1001, 50)
    truth = ec.NoisyQuadratic(ec.Spectrum(np.geomspace(1e-3, 1.0, 12), np.ones(12)), 0.1, 1.0)
    schedules = (ec.constant(1000, 0.3), ec.cosine(1000, 0.5))
    found = fit_runs([LoggedRun(steps, [truth.expected_loss(part(f, k)) for k in steps], f) for f in schedules])
    best = found.best_schedule(500, 0.5).schedule.to_dict()
    write_atomically(place / "best.json", repr(best).encode())
    return [best, found.predict(ec.linear(500, 0.4)).loss.tolist()]


def part(schedule: ec.Schedule, steps: int) -> ec.Schedule:
    """The first steps of a schedule."""
    return ec.piecewise(int(steps), np.arange(steps), schedule.values()[:steps])
