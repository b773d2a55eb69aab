"""How often the search of a short run misses the best schedule: ``python -m benchmarks.short_runs``.

The random problems have 1 to 6 eigenvalues, condition numbers up to 10,000, noise of 0 or from 0.001 to 10,000, and
rates up to 1/L, 2/L or 4/L. For each, SciPy's L-BFGS-B minimises the loss over the rates from many random starts. A
search has missed the best schedule if its loss is more than 0.1 % above the lower of the two.

Losses below a billionth of the initial one count as zero. With momentum, SciPy's losses count if they agree with a sum
of squares, because what remains after rates above the largest stable one may be a rounding error of the recursion.
"""

import numpy as np
from tests.reference.short_runs import excess, lowest_loss, short_run

MISSED = 1e-3
LAWS = ((0.5, False), (0.9, False), (0.5, True), (0.9, True))
# Range of the steps, number of problems, and random starts of SciPy.
LENGTHS = ((2, 6, 500, 100), (7, 16, 200, 60), (17, 50, 200, 40))
WIDTH = 12


def problems(shortest, longest, count, with_momentum):
    rng = np.random.default_rng([shortest, longest, with_momentum])
    for i in range(count):
        yield short_run(rng, shortest, longest, *(LAWS[i % len(LAWS)] if with_momentum else ()))


def excesses(run, num_starts, seed):
    """The excess of the library's search and of SciPy's over the lower of their losses."""
    ours = run.quadratic.search_best(run.total_steps, run.max_lr).loss
    theirs = lowest_loss(run, num_starts, seed)
    lowest = min(ours, theirs)
    return excess(ours, lowest, run), excess(theirs, lowest, run)


def row(label, found):
    ours, theirs = np.array(found).T if found else np.zeros((2, 0))
    cells = [len(found), (ours > MISSED).sum(), f"{ours.max(initial=0):.2%}", (theirs > MISSED).sum()]
    print(label.ljust(54) + "".join(f"{cell!s:>{WIDTH}}" for cell in cells), flush=True)


def main():
    heads = ("problems", "missed", "worst", "by SciPy")
    print("steps, momentum, rates".ljust(54) + "".join(f"{head:>{WIDTH}}" for head in heads))
    for with_momentum in (False, True):
        for shortest, longest, count, num_starts in LENGTHS:
            found = {True: [], False: []}
            for seed, run in enumerate(problems(shortest, longest, count, with_momentum)):
                stable = run.max_lr <= run.quadratic.stable_rate * (1 + 1e-12)
                found[stable].append(excesses(run, num_starts, seed))
            label = f"{shortest} to {longest} steps, {'momentum' if with_momentum else 'no momentum'}"
            row(f"{label}, rates up to a stable one", found[True])
            row(f"{label}, higher rates", found[False])


if __name__ == "__main__":
    main()
