"""Attack readers, long computations, the store, changed models and options, and count: ``python -m robustness.soak``.

The attacks depend only on the seed, apart from the moments of the kills. ``--slice`` is a short version.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import track
from robustness.counts import Counts, table

from robustness import changes, cluster, damaged_logs, full_disk, kills, options, readers, store_load

Attack = tuple[str, Callable[[Path], list[Counts]]]


def attacks(small: bool, seed: int) -> Iterator[Attack]:
    """Every attack with its name, in the order of the table."""
    num_kills, num_files, num_runs, rounds = (2, 15, 100, 2) if small else (100, 1_000, 10_000, 40)
    for work in kills.works():
        yield work.name, lambda place, work=work: [kills.attack(work, place, num_kills, seed)]
    if not small:
        yield "Ray", lambda place: [cluster.attack(place, 3)]
    yield "full disk", lambda place: [full_disk.attack(place, rounds)]
    yield "logs", lambda place: [damaged_logs.attack(place, 1 if small else 20, seed)]
    yield "changes", lambda place: changes.attack(place, small)
    yield "store", lambda place: [store_load.attack(place, num_runs)]
    yield "options", lambda place: options.attack(place, small)
    # The last, because it limits the memory of the process.
    yield "files", lambda place: readers.attack(place, num_files, seed)


def main() -> None:
    """Run the attacks and print their counts; exit with 1 if something was lost, wrong or undocumented."""
    names = [name for name, _ in attacks(small=False, seed=0)]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slice", action="store_true", help="a short version of every attack but Ray's")
    parser.add_argument("--only", action="append", metavar="NAME", help=f"one of {', '.join(names)}; can be repeated")
    parser.add_argument("--seed", type=int, default=0, help="seed of the damage")
    asked = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    begun, found = time.monotonic(), list[Counts]()
    chosen = [pair for pair in attacks(asked.slice, asked.seed) if pair[0] in (asked.only or names)]
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        for number, (_, attack) in enumerate(track(chosen, "attacks", console=Console(stderr=True))):
            place = Path(name, str(number))
            place.mkdir()
            found += attack(place)
            print(*(counts.line() for counts in found[-1:]), file=sys.stderr)
    print(table(found))
    print(f"{time.monotonic() - begun:.0f} seconds", file=sys.stderr)
    sys.exit(not all(counts.is_clean for counts in found))


if __name__ == "__main__":
    main()
