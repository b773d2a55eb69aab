"""A disk that fills up: the error names it, and what was there before stays complete."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from robustness.counts import Counts

import eigencurve as ec
from eigencurve.hessian import estimate_spectrum
from eigencurve.runs.origin import origin_here
from eigencurve.runs.store import Outcome, Run, Store, StoreError

SIZE = "512k"


def attack(folder: Path, rounds: int) -> Counts:
    """Fill a small file system, with a little more room in each round, and write to it."""
    counts = Counts("a full disk")
    for number in range(rounds):
        place = folder / str(number)
        place.mkdir(parents=True)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(_small_disk(place))
            except (OSError, subprocess.CalledProcessError):
                counts.notes.append("left out: a file system in memory (tmpfs) needs the right to mount")
                return counts
            for write in (_store, _spectrum, _checkpoint):
                counts.cases += 1
                write(place, number, counts)
    return counts


@contextlib.contextmanager
def _small_disk(place: Path) -> Iterator[None]:
    words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    subprocess.run(words, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True, capture_output=True)


@contextlib.contextmanager
def _filled(place: Path, left: int) -> Iterator[None]:
    """Fill the disk up to ``left`` bytes, and free it again."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        file.truncate(max(0, file.tell() - left))
    try:
        yield
    finally:
        filler.unlink()


def _expect(error: type[Exception], act: Callable[[], object], words: str, counts: Counts) -> bool:
    """Whether the act succeeded; an error other than a full disk is a fault."""
    try:
        act()
    except error as found:
        if words not in str(found):
            counts.faults[f"{type(found).__name__}: {found}"] += 1
        return False
    except Exception as found:
        counts.faults[f"{type(found).__name__}: {found}"] += 1
        return False
    return True


def _store(place: Path, number: int, counts: Counts) -> None:
    store, origin, kept = Store(place / "s.sqlite"), origin_here(), []
    with _filled(place, 4096 * number):
        for seed in range(60):
            run, outcome = Run({"x": "y" * 500}, seed), Outcome({"score": seed / 3})
            if not _expect(
                StoreError, lambda r=run, o=outcome: store.add("full", [r], [o], origin, 0.0), "full", counts
            ):
                break
            kept.append((run, outcome))
    found = Store(place / "s.sqlite").outcomes("full", [run for run, _ in kept])
    lost = sum(one != other for one, (_, other) in zip(found, kept, strict=True))
    counts.rows_lost += lost
    counts.survived += not lost


def _spectrum(place: Path, number: int, counts: Counts) -> None:
    path, old = place / "spectrum.npz", ec.Spectrum([1.0, 2.0], [1, 1])
    ec.save_spectrum(old, path)
    new = ec.Spectrum(np.linspace(1, 2, 5000), np.ones(5000))
    with _filled(place, 4096 * number):
        expected = new if _expect(OSError, lambda: ec.save_spectrum(new, path), "No space left", counts) else old
    _compare(ec.load_spectrum(path), expected, counts)


def _checkpoint(place: Path, number: int, counts: Counts) -> None:
    matrix, path = np.diag(np.linspace(1, 2, 400)), place / "checkpoint"

    def estimate() -> ec.Spectrum:
        return estimate_spectrum(matrix, 20, settle=None, checkpoint=path, progress=False).spectrum

    with _filled(place, 4096 * number):
        _expect(OSError, estimate, "No space left", counts)
    plain = estimate_spectrum(matrix, 20, settle=None, progress=False).spectrum
    _compare(estimate(), plain, counts)


def _compare(found: ec.Spectrum, expected: ec.Spectrum, counts: Counts) -> None:
    is_equal = np.array_equal(found.eigenvalues, expected.eigenvalues)
    counts.survived += is_equal
    counts.wrong_values += not is_equal
