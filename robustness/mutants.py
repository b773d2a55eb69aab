"""Sampled mutation test of the core: ``python -m robustness.mutants``.

Each mutant is one change to one module (:mod:`robustness.mutations`). The tests of the module, which are its same-named
file and its doctests, run on a copy of the tree; a mutant that they accept has survived. With ``--wider``, all tests of
the package run on survivors. The sample depends only on the seed and on the source. Results are kept: the same command
resumes, and repeats nothing whose source and tests are unchanged.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numba  # imported once here, like pytest; the children are forks
import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from robustness.mutations import Mutation, sample

ROOT = Path(__file__).resolve().parents[1]
CORE = ("spectrum", "schedules", "theory")
# A mutant may loop forever: it counts as noticed after this many times the usual duration, and some seconds.
PATIENCE = 10
LEAST_SECONDS = 60.0
KILLED, WIDER, SURVIVED, UNKNOWN = "killed", "killed by the package", "survived", "unknown"


def modules(folder: Path, names: list[str]) -> list[Path]:
    """The named modules, and those of the named packages, that have a test file of the same name.

    The paths are relative to the folder.
    """
    source = folder / "src/eigencurve"
    found = [path for name in names for path in (source / f"{name}.py", *sorted((source / name).glob("[!_]*.py")))]
    return [path.relative_to(folder) for path in found if (folder / tests_of(path.relative_to(folder))).exists()]


def tests_of(module: Path) -> Path:
    """The test file of a module."""
    return Path("tests", *module.parts[2:-1], f"test_{module.name}")


@contextmanager
def copied_tree() -> Iterator[Path]:
    """A copy of what the tests need, so a mutant never touches the work tree."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        for part in ("src", "tests"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        for file in ("pyproject.toml", "conftest.py"):
            shutil.copy(ROOT / file, folder / file)
        yield folder


def accepts(folder: Path, paths: list[Path], cache: Path, limit: float | None = None) -> bool:
    """Whether the tests in ``paths`` pass in the copy; a test that takes longer than ``limit`` seconds does not."""
    child = os.fork()
    if child == 0:
        _run_tests(folder, paths, cache)
    deadline = time.monotonic() + limit if limit else None
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        if deadline and time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.02)


def _run_tests(folder: Path, paths: list[Path], cache: Path) -> None:
    """In the child: run the tests on the source of the copy, and exit."""
    os.setsid()
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    # Without bytecode files: Python compares only sizes and whole seconds, and would run an older mutant.
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(cache)}
    numba.config.reload_config()
    sys.path.insert(0, str(folder / "src"))
    code = 1
    try:
        words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *map(str, paths)]
        code = int(pytest.main(words))
    finally:
        os._exit(code)


class Results:
    """Outcomes of mutants, one JSON line each, kept between runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.known = dict(json.loads(line) for line in lines if line.endswith("]"))

    def add(self, key: str, outcome: str) -> None:
        """Keep one more outcome."""
        self.known[key] = outcome
        with self.path.open("a") as file:
            file.write(json.dumps([key, outcome]) + "\n")


def key_of(folder: Path, module: Path, mutation: Mutation) -> str:
    """The mutant, its source and its tests."""
    digest = hashlib.sha256()
    for path in (module, tests_of(module)):
        digest.update((folder / path).read_bytes())
    return f"{module}:{mutation.start}:{mutation.text}:{digest.hexdigest()[:16]}"


class Session:
    """One copy of the tree, and the durations of unchanged tests."""

    def __init__(self, folder: Path, wider: bool) -> None:
        self.folder = folder
        self.wider = wider
        self.caches = folder / "numba"
        self.caches.mkdir()
        self.usual: dict[tuple[Path, ...], float] = {}

    def outcome(self, module: Path, mutation: Mutation) -> str:
        """Whether the tests notice the mutant."""
        source = (self.folder / module).read_text()
        own, package = [module, tests_of(module)], [tests_of(module).parent]
        for paths in (own, package) if self.wider else (own,):
            limit = PATIENCE * self._usual_seconds(paths) + LEAST_SECONDS
            cache = self._cache(source)
            (self.folder / module).write_text(mutation.applied(source))
            try:
                if not accepts(self.folder, paths, cache, limit):
                    return KILLED if paths is own else WIDER
            finally:
                (self.folder / module).write_text(source)
        return SURVIVED

    def _usual_seconds(self, paths: list[Path]) -> float:
        if tuple(paths) not in self.usual:
            begun = time.monotonic()
            if not accepts(self.folder, paths, self.caches / "shared"):
                raise SystemExit(f"The tests fail without a mutant: {' '.join(map(str, paths))}")
            self.usual[tuple(paths)] = time.monotonic() - begun
        return self.usual[tuple(paths)]

    def _cache(self, source: str) -> Path:
        """Compiled functions that include others are not compiled again if only those change: start without any."""
        if "njit" not in source:
            return self.caches / "shared"
        return Path(tempfile.mkdtemp(dir=self.caches))


def main() -> None:
    """Test the sampled mutants, and print the score of each module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", default=CORE, help="packages or modules, such as theory/tuning")
    parser.add_argument("--per-module", type=int, default=4, help="mutants of each module")
    parser.add_argument("--seed", default="0", help="seed of the sample")
    parser.add_argument("--wider", action="store_true", help="run all tests of the package on survivors")
    parser.add_argument("--results", type=Path, default=ROOT / ".mutants.jsonl", help="file of finished mutants")
    options = parser.parse_args()
    results = Results(options.results)
    with copied_tree() as folder:
        names = modules(folder, list(options.packages))
        if not names:
            parser.error(f"no module with a test file of its own in {' '.join(options.packages)}")
        samples = [sample((folder / name).read_text(), options.per_module, f"{options.seed}:{name}:") for name in names]
        # One of each module, then the second of each: an interrupted run has seen all modules.
        rounds = itertools.zip_longest(
            *([(name, one) for one in found] for name, found in zip(names, samples, strict=True))
        )
        chosen = [pair for turn in rounds for pair in turn if pair is not None]
        run_all(Session(folder, options.wider), chosen, results)
        outcomes = {pair: results.known[key_of(folder, *pair)] for pair in chosen}
        show(folder, outcomes)


def run_all(session: Session, chosen: list[tuple[Path, Mutation]], results: Results) -> None:
    """Test the mutants whose outcome is not known yet."""
    untested = (UNKNOWN, SURVIVED) if session.wider else (UNKNOWN,)
    with bar() as progress:
        task = progress.add_task("", total=len(chosen))
        for module, mutation in chosen:
            progress.update(task, description="/".join(module.parts[2:]))
            key = key_of(session.folder, module, mutation)
            if results.known.get(key, UNKNOWN) in untested:
                results.add(key, session.outcome(module, mutation))
            progress.advance(task)


def bar() -> Progress:
    """A progress bar on the standard error."""
    columns = (TextColumn("{task.description:32}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))


def show(folder: Path, outcomes: dict[tuple[Path, Mutation], str]) -> None:
    """Print the score of each module, the survivors, and the total."""
    for module in dict.fromkeys(module for module, _ in outcomes):
        mine = Counter(outcome for (other, _), outcome in outcomes.items() if other == module)
        print(f"{'/'.join(module.parts[2:]):32} {line(mine)}")
    for (module, mutation), outcome in outcomes.items():
        if outcome != KILLED:
            print(f"{outcome}: {module}, {mutation.shown((folder / module).read_text())}")
    print(f"{'all':32} {line(Counter(outcomes.values()))}")


def line(found: Counter[str]) -> str:
    """The score of some mutants."""
    total = sum(found.values())
    noticed = total - found[SURVIVED]
    wider = f", {found[WIDER]} more by the package's" if found[WIDER] else ""
    return f"{found[KILLED]:4} of {total:4} by its own tests{wider}: {noticed / total:.0%}"


if __name__ == "__main__":
    main()
