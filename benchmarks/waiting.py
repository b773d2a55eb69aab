"""Time until the schedule of a network is right, compared with other packages: ``python -m benchmarks.waiting``.

A schedule is right if it is within 10 % of that of 1,000 products at every step. Prints the smallest number of products
for which the schedules of 32 random probes are right, and its time. The other packages return the nodes of every
Lanczos run with the probe's weights; their schedule is that of the mean of n runs of k steps, and it is right if all
disjoint groups of n runs are. The number of steps k is ours (32 runs are tried), 400 (five runs), 1,000 and 2,000 (one
run each); printed is the smallest product n k. "≥" marks a lower bound: fewer runs of these k were tried and were
wrong, or there was only one group to try. The other packages are given the numbers of our Lanczos runs, so they differ
only in the time of a product. Times are processor seconds of one thread: for eigencurve those of the whole call of
``estimate_spectrum``, for the others those of their products alone. Run it with ``make bench-peers``.

The Lanczos runs of all probes are not timed and take an hour or two. They are kept in ``.waiting/``, so the benchmark
resumes there, and a second call only measures times.
"""

import argparse
import io
import math
from pathlib import Path

import numpy as np
import torch
from benchmarks.peers import TOOLS, make_product
from benchmarks.products import WordModel, medians, seconds
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve._files import write_atomically
from eigencurve.experiments.models.registry import build
from eigencurve.experiments.studies.resnet20_spectrum import resnet20_problem
from eigencurve.hessian import HessianOperator, estimate_spectrum, keep_freed_memory
from eigencurve.hessian.settling import Settling, log_curve
from eigencurve.spectrum.quadrature import gauss_quadrature

WEIGHT_DECAY, TOTAL_STEPS, TOLERANCE = 5e-4, 39_100, 0.1
# Numbers of Lanczos steps: five runs have the first, one has the second, which is also the reference, or the third.
LONG, REFERENCE, LONGEST = 400, 1000, 2000
NUM_PROBES = 32
# Numbers of products at which our schedules are compared.
MARKS = (20, 30, 40, 50, 60, 80, 100, 120, 150, 200, 250, 300, 400)
NUM_WORDS, NUM_UPDATES = 100, 300
NETWORKS = ("ResNet-20", "LSTM", "transformer")
FOLDER = Path(".waiting")


class ClassesSecond(nn.Module):
    """A network whose output has the classes in the second dimension, as cross entropy expects them."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, words):
        """Logits, with the words in the last dimension."""
        return self.network(words).transpose(1, 2)


def markov_text(num_rows, length):
    """Rows of words, each of which depends on the one before."""
    chances = torch.softmax(3 * torch.randn(NUM_WORDS, NUM_WORDS), dim=1)
    columns = [torch.randint(0, NUM_WORDS, (num_rows,))]
    for _ in range(length - 1):
        columns.append(torch.multinomial(chances[columns[-1]], 1)[:, 0])
    return torch.stack(columns, dim=1)


def trained(model, text):
    """``model`` after some updates with Adam on random rows, and the first rows as a batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(NUM_UPDATES):
        rows = text[torch.randint(0, len(text), (32,))]
        optimizer.zero_grad()
        F.cross_entropy(model(rows[:, :-1]), rows[:, 1:]).backward()
        optimizer.step()
    return model.eval(), (text[:32, :-1], text[:32, 1:])


def problem(name):
    """Trained network and batch; ResNet-20 and its images are read from ``EIGENCURVE_DATA``."""
    torch.manual_seed(0)
    if name == "ResNet-20":
        return resnet20_problem(num_images=100)[::2]
    text = markov_text(1000, 33)
    return trained(
        WordModel(NUM_WORDS, 64) if name == "LSTM" else ClassesSecond(build("transformer", NUM_WORDS, divisor=2)), text
    )


def is_right(curve, reference):
    return np.abs(curve - reference).max() <= np.log1p(TOLERANCE)


def run(operator, num_steps, seed):
    return estimate_spectrum(
        operator, num_steps, seed=seed, settle=None, weight_decay=WEIGHT_DECAY, total_steps=TOTAL_STEPS, progress=False
    )


class LanczosRuns:
    """Lanczos runs of one network with many probes; those of an earlier call are read from ``FOLDER``."""

    def __init__(self, operator):
        self.operator, self.stem = operator, operator.fingerprint()[:12]

    def of_length(self, num_steps, seeds):
        """The coefficients of one run for each seed."""
        return [self._coefficients(FOLDER / f"{self.stem}_{num_steps}_{seed}.npz", num_steps, seed) for seed in seeds]

    def at_least(self, num_steps):
        """All runs of at least so many steps; long runs are used again as short ones."""
        found = self.of_length(max(num_steps, REFERENCE), [99])
        if num_steps <= LONG:
            found += self.of_length(LONG, range(4))
        if num_steps < LONG:
            found += self.of_length(num_steps, range(100, 100 + NUM_PROBES - len(found)))
        return found

    def _coefficients(self, path, num_steps, seed):
        if not path.exists():
            estimate, buffer = run(self.operator, num_steps, seed), io.BytesIO()
            np.savez(buffer, alphas=estimate.alphas[0], betas=estimate.betas[0])
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, buffer.getvalue())
        with np.load(path) as found:
            return found["alphas"], found["betas"]


def our_count(settling, runs, reference):
    """The smallest number of products for which the schedules of all probes are right; None if none is.

    The leading rows of a tridiagonal are that of a shorter run.
    """

    def all_right(num_steps, found):
        return all(is_right(settling.curve(a[:num_steps], b[:num_steps]), reference) for a, b in found)

    return next((k for k in MARKS if all_right(k, runs.at_least(LONG)) and all_right(k, runs.at_least(k))), None)


def mean_curve(runs, num_steps):
    """The schedule of the mean of several runs, weighted by their probes."""
    nodes, weights = zip(*(gauss_quadrature(a[:num_steps], b[:num_steps]) for a, b in runs), strict=True)
    return log_curve(ec.Spectrum(np.concatenate(nodes), np.concatenate(weights)), WEIGHT_DECAY, TOTAL_STEPS)


def probes_needed(runs, num_steps, reference):
    """The smallest n for which all disjoint groups of n runs are right, and whether there are at least two of them.

    Fewer runs are too few. If all runs together are wrong, n is one more than their number.
    """
    for n in range(1, len(runs) + 1):
        groups = [runs[i : i + n] for i in range(0, len(runs) - n + 1, n)]
        if all(is_right(mean_curve(group, num_steps), reference) for group in groups):
            return n, len(groups) > 1
    return len(runs) + 1, False


def others_count(runs, ours, reference):
    """The smallest number of products over all lengths of a run, that length, and whether the products are enough."""
    count, length, is_enough = math.inf, 0, False
    for k in (ours, LONG, REFERENCE, LONGEST):
        if k <= count:  # longer runs take more products
            n, is_right_for_all = probes_needed(runs.at_least(k), k, reference)
            if n * k <= count:
                count, length, is_enough = n * k, k, is_right_for_all
    return count, length, is_enough


def product_times(model, batch):
    """Median seconds of a product of each package."""
    before = torch.backends.mkldnn.enabled
    torch._C._set_mkldnn_enabled(not any(isinstance(module, nn.LSTM) for module in model.modules()))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        times = medians(lambda: [make_product(tool, model, batch) for tool in TOOLS[1:]])
    torch._C._set_mkldnn_enabled(before)
    return dict(zip(TOOLS[1:], times, strict=True))


def compare(name, model, batch):
    """Print the lines of one network."""
    operator = HessianOperator(model, F.cross_entropy, batch)
    settling = Settling(WEIGHT_DECAY, TOTAL_STEPS, operator.dtype, operator.dim)
    runs = LanczosRuns(operator)
    reference = settling.curve(*runs.at_least(REFERENCE)[0])
    ours = our_count(settling, runs, reference)
    if ours is None:
        print(f"{name}: {MARKS[-1]} products of eigencurve are not enough")
        return
    own_time = seconds(lambda: run(HessianOperator(model, F.cross_entropy, batch), ours, 0))
    print(f"{name} ({operator.dim:,} parameters)", flush=True)
    print(f"  {'eigencurve':<22}{ours:>9} products{own_time:>9.1f} s", flush=True)
    count, length, is_enough = others_count(runs, ours, reference)
    sign = "" if is_enough else "≥"
    for tool, one in product_times(model, batch).items():
        total = f"{sign}{count * one:.1f} s"
        ratio = f"{sign}{count * one / own_time:.0f} times as long, in runs of {length}"
        print(f"  {tool:<22}{sign + str(count):>9} products{total:>11}   {ratio}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NETWORKS, help=f"networks: {', '.join(NETWORKS)}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    for name in options.names:
        compare(name, *problem(name))


if __name__ == "__main__":
    main()
