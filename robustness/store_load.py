"""Many tiny runs through the store: none may be lost, and neither memory nor time per run may grow."""

from __future__ import annotations

import resource
import statistics
import time
from pathlib import Path

from robustness.counts import Counts

from eigencurve.runs.origin import origin_here
from eigencurve.runs.store import Outcome, Run, Store

MOST_GROWTH_MB = 20.0
MOST_RATIO = 3.0


def attack(folder: Path, number: int) -> Counts:
    """Claim, add and read ``number`` runs, one after the other."""
    counts, store, origin = Counts("runs through one store"), Store(folder / "s.sqlite"), origin_here()
    seconds, memory = [], []
    for index in range(number):
        run, outcome = _run(index), Outcome({"score": index / 7}, ((1.0, 0.5),))
        begun = time.perf_counter()
        store.claim("tiny", [run])
        store.add("tiny", [run], [outcome], origin, 0.0)
        found = store.outcomes("tiny", [run])
        seconds.append(time.perf_counter() - begun)
        memory.append(_megabytes())
        counts.cases += 1
        counts.wrong_values += found != [outcome]
        counts.survived += found == [outcome]
    kept = store.outcomes("tiny", [_run(index) for index in range(number)])
    counts.rows_lost += sum(one != Outcome({"score": i / 7}, ((1.0, 0.5),)) for i, one in enumerate(kept))
    tenth = max(1, number // 10)
    ratio = statistics.median(seconds[-tenth:]) / statistics.median(seconds[tenth : 2 * tenth])
    growth = memory[-1] - memory[tenth]
    counts.notes.append(
        f"the last tenth takes {ratio:.2f} times as long as the second, with {growth:+.1f} MB of memory"
    )
    if growth > MOST_GROWTH_MB or ratio > MOST_RATIO:
        counts.faults["memory or time per run grows"] += 1
    return counts


def _run(index: int) -> Run:
    return Run({"lr": index % 50, "epochs": 1}, index)


def _megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)
