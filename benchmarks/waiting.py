"""Time until the schedule of a network is right, compared with other packages: ``python -m benchmarks.waiting``.

A schedule is right if it is within 10 % of that of 1,000 products at every step. Prints the smallest number of products
for which the schedules of all random probes are right and stay right with more products, and its time. For eigencurve
there are 32 probes, five of which are followed up to 400 products. The other packages return the nodes of every Lanczos
run with the probe's weights. Their schedule is that of one run of k steps, for k = 100, 200, … 2,000, or of the mean of
n runs of 400 steps or of as many as ours; printed is the smallest number of products of the three. "≥" marks a lower
bound: everything below it was tried and was wrong, or only one probe was tried. PyHessian and hessian-eigenthings are
given the numbers of our own Lanczos runs, because all three re-orthogonalise; curvlinops does not, and is given those
of the same recurrence without it, up to 4,000 steps. Times are processor seconds of one thread for whole calls: of
``estimate_spectrum``, and of the other packages' density functions with that number of steps, once for each of the n
runs. The second LSTM and the second transformer have other weights and another text; no constant of the package was
chosen on them. Run it with ``make bench-peers``.

The Lanczos runs of all probes are not timed and take an hour or two. They are kept in ``.waiting/``, so the benchmark
resumes there, and a second call only measures times.
"""

import argparse
import io
import math
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from benchmarks.peers import TOOLS, run_density
from benchmarks.products import WordModel, seconds
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve._files import write_atomically
from eigencurve.hessian import HessianOperator, Settling, estimate_spectrum, keep_freed_memory, log_curve
from eigencurve.hessian.lanczos import Recurrence, diagonal_lanczos
from eigencurve.hessian.memory import plan_memory
from eigencurve.hessian.settings import seed_of
from eigencurve.spectrum.quadrature import gauss_quadrature
from paper.models.registry import build
from paper.models.resnet import resnet20_problem

WEIGHT_DECAY, TOTAL_STEPS, TOLERANCE = 5e-4, 39_100, 0.1
# Our schedules are compared at these numbers of products. Two probes have 2,000 steps; the first 1,000 of one are the
# reference. Three have 400, and the others have the smallest of the short lengths that is enough.
MARKS = (20, 30, 40, 50, 60, 80, 100, 120, *range(140, 201, 10), 250, 300, 350, 400)
REFERENCE = 1000
# Seeds of the 32 probes. The runs of the first two are as long as the others' longest single runs.
LONGEST_PROBES, LONG_PROBES, SHORT_PROBES = (99, 0), range(1, 4), range(100, 127)
FOLLOWED = (*LONGEST_PROBES, *LONG_PROBES)
LONG, SHORT = 400, (40, 200, 400)
# Largest numbers of steps of the others' single runs, with and without re-orthogonalisation.
LONGEST, LONGEST_PLAIN, EVERY = 2000, 4000, 100
NUM_WORDS, NUM_UPDATES = 100, 300
# Seeds of the language models' weights, text and updates.
NETWORKS = {"ResNet-20": None, "LSTM": 0, "transformer": 0, "second LSTM": 1, "second transformer": 1}
WITHOUT_ORTHOGONALISATION = "curvlinops"
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


def trained(model, x, y, batch_size=32):
    """``model`` after some updates with Adam on random rows, and the first rows as a batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(NUM_UPDATES):
        rows = torch.randint(0, len(x), (batch_size,))
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    return model.eval(), (x[:batch_size], y[:batch_size])


def language(make, seed):
    """The language model ``make(seed)``, trained on a text of its own, and a batch."""
    torch.manual_seed(seed)
    text = markov_text(1000, 33)
    return trained(make(seed), text[:, :-1], text[:, 1:])


def lstm(width=64):
    """How to make an LSTM."""
    return lambda _seed: WordModel(NUM_WORDS, width)


def transformer(divisor=2):
    """How to make a transformer."""
    return lambda seed: ClassesSecond(build("transformer", NUM_WORDS, divisor=divisor, seed=seed))


def problem(name):
    """Trained network and batch; ResNet-20 and its images are read from ``EIGENCURVE_DATA``."""
    if name == "ResNet-20":
        return resnet20_problem(None, 100)[::2]
    return language(lstm() if name.endswith("LSTM") else transformer(), NETWORKS[name])


def is_right(curve, reference):
    return np.abs(curve - reference).max() <= np.log1p(TOLERANCE)


def estimate(operator, num_steps):
    return estimate_spectrum(
        operator, num_steps, settle=None, weight_decay=WEIGHT_DECAY, total_steps=TOTAL_STEPS, progress=False
    )


def probe_of(operator, seed):
    """The probe of an estimate with this seed, including parameters that the loss does not depend on."""
    return torch.randn(operator.dim, generator=torch.Generator().manual_seed(seed_of(seed, 0)), dtype=operator.dtype)


def our_run(operator, num_steps, seed):
    """The recurrence of ``estimate_spectrum``, which leaves out parameters that the loss does not depend on."""
    found = Recurrence(operator, plan_memory(operator.dim, num_steps, None, operator.dtype, operator.device))
    found.start(probe_of(operator, seed), is_probe=True)
    while not found.is_done:
        found.step()
    return found.alphas, found.betas


def whole_run(alphas, betas, unused_share):
    """The run of the probe with all its entries, as in the other packages, from ours: no product is needed.

    The measure of the whole probe is ours plus an atom at zero, whose mass is the squared norm of the unused entries.
    """
    nodes, weights = gauss_quadrature(alphas, betas)
    shares = np.append((1 - unused_share) * weights, unused_share)
    found = diagonal_lanczos(np.append(nodes, 0.0), np.sqrt(shares))
    return found[0][:-1], found[1]


def plain_run(operator, num_steps, seed):
    """The recurrence alone, without making new vectors orthogonal to all earlier ones."""
    vector, before, beta, numbers = probe_of(operator, seed), 0.0, 0.0, []
    vector /= vector.norm()
    for _ in range(num_steps):
        product = operator(vector) - beta * before
        alpha = float(product @ vector)
        product -= alpha * vector
        beta = float(product.norm())
        numbers.append((alpha, beta))
        vector, before = product / beta, vector
    return tuple(np.array(numbers).T)


class LanczosRuns:
    """Lanczos runs of one network with many probes; those of an earlier call are read from ``FOLDER``.

    The leading rows of a tridiagonal are that of a shorter run, so every probe needs only its longest run.
    """

    def __init__(self, operator, longest):
        self.operator, self.longest, self.stem = operator, longest, operator.fingerprint()[:12]
        product = operator(probe_of(operator, LONGEST_PROBES[0]))
        self.unused = product == 0

    @property
    def num_unused(self):
        """Number of parameters that the loss does not depend on."""
        return int(self.unused.sum())

    def reference(self):
        """The run whose schedule is the reference."""
        return self._ours(LONGEST_PROBES[0], REFERENCE)

    def of(self, seeds, num_steps):
        """Our runs of these probes, with so many steps."""
        return [self._ours(seed, num_steps) for seed in seeds]

    def plain(self, seed):
        """A run without re-orthogonalisation."""
        return self._coefficients(plain_run, LONGEST_PLAIN, seed)

    def whole(self, seeds, num_steps):
        """Runs of the probes with all their entries, as in the other packages."""
        found = zip(self.of(seeds, num_steps), map(self._unused_share, seeds), strict=True)
        return [whole_run(*run, share) for run, share in found]

    def _unused_share(self, seed):
        """The share of a probe's squared norm in parameters that the loss does not depend on."""
        squares = probe_of(self.operator, seed).double() ** 2
        return float(squares[self.unused].sum() / squares.sum())

    def _ours(self, seed, num_steps):
        """Our run of a probe."""
        if seed in FOLLOWED:
            length = self.longest if seed in LONGEST_PROBES else LONG
        else:
            length = next(one for one in SHORT if one >= num_steps)
        alphas, betas = self._coefficients(our_run, length, seed)
        return alphas[:num_steps], betas[:num_steps]

    def _coefficients(self, make, num_steps, seed):
        path = FOLDER / f"{self.stem}_{make.__name__}_{num_steps}_{seed}.npz"
        if not path.exists():
            buffer = io.BytesIO()
            np.savez(buffer, numbers=make(self.operator, num_steps, seed))
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, buffer.getvalue())
        with np.load(path) as found:
            return tuple(found["numbers"])


def right_from(marks, all_right):
    """The smallest of the marks, in ascending order, from which on all are right; None if the last is wrong."""
    wrong = next((i for i in reversed(range(len(marks))) if not all_right(marks[i])), -1)
    return marks[wrong + 1] if wrong + 1 < len(marks) else None


def our_count(settling, runs, reference):
    """The smallest number of products from which on the schedules of all probes are right; None if there is none."""

    def all_right(num_steps, seeds):
        return all(is_right(settling.curve(*run), reference) for run in runs.of(seeds, num_steps))

    start = right_from(MARKS, lambda k: all_right(k, FOLLOWED))
    marks = [k for k in MARKS if start is not None and k >= start]
    return next((k for k in marks if all_right(k, SHORT_PROBES)), None)


def mean_curve(runs, num_steps):
    """The schedule of the mean of several runs, weighted by their probes."""
    nodes, weights = zip(*(gauss_quadrature(a[:num_steps], b[:num_steps]) for a, b in runs), strict=True)
    return log_curve(ec.Spectrum(np.concatenate(nodes), np.concatenate(weights)), WEIGHT_DECAY, TOTAL_STEPS)


def single_run(runs, reference):
    """Number of steps from which on single runs are right, and whether it is enough; without one, a lower bound."""
    longest, count = len(runs[0][0]), 0
    for found in runs:
        own = right_from(
            range(EVERY, longest + 1, EVERY), lambda k, found=found: is_right(mean_curve([found], k), reference)
        )
        if own is None:
            return longest + EVERY, False
        count = max(count, own)
    return count, True


def mean_of_runs(runs, num_steps, reference):
    """The smallest n for which the means of all disjoint groups of n runs are right, and whether there are two groups.

    Fewer runs are too few. If all runs together are wrong, n is one more than their number.
    """
    for n in range(1, len(runs) + 1):
        groups = [runs[i : i + n] for i in range(0, len(runs) - n + 1, n)]
        if all(is_right(mean_curve(group, num_steps), reference) for group in groups):
            return n, len(groups) > 1
    return len(runs) + 1, False


def others_counts(runs, ours, reference):
    """Number of runs, their length, and whether they are enough, for the smallest product of both numbers, by package.

    The means of several runs are those of runs of 400 steps, or of as many as ours.
    """
    single, is_enough = single_run(runs.whole(LONGEST_PROBES, runs.longest), reference)
    found = [(single, 1, single, is_enough)]
    for length, seeds in ((ours, (*FOLLOWED, *SHORT_PROBES)), (LONG, FOLLOWED)):
        # One run is not enough, or not for long: only means of several are of interest.
        n, is_enough = mean_of_runs(runs.whole(seeds, length), length, reference)
        found.append((max(n, 2) * length, max(n, 2), length, is_enough))
    best = min(found)
    counts = dict.fromkeys(TOOLS[1:], best[1:])
    if best[1] == 1:  # short runs lose no orthogonality
        single, is_enough = single_run([runs.plain(seed) for seed in LONGEST_PROBES], reference)
        counts[WITHOUT_ORTHOGONALISATION] = (1, single, is_enough)
    return counts


@contextmanager
def twice_differentiable(model):
    """Settings with which the other packages can differentiate the network twice."""
    before = torch.backends.mkldnn.enabled
    torch._C._set_mkldnn_enabled(not any(isinstance(module, nn.LSTM) for module in model.modules()))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield
    torch._C._set_mkldnn_enabled(before)


def compare(name, model, batch, longest):
    """Print the lines of one network, with single runs of the others of up to ``longest`` steps."""
    operator = HessianOperator(model, F.cross_entropy, batch)
    runs = LanczosRuns(operator, longest)
    settling = Settling(WEIGHT_DECAY, TOTAL_STEPS, operator.dtype, operator.dim)
    settling.num_unused = runs.num_unused
    reference = settling.curve(*runs.reference())
    ours = our_count(settling, runs, reference)
    if ours is None:
        print(f"{name}: {MARKS[-1]} products of eigencurve are not enough")
        return
    own_time = seconds(lambda: estimate(HessianOperator(model, F.cross_entropy, batch), ours))
    print(f"{name} ({operator.dim:,} parameters)", flush=True)
    print(f"  {'eigencurve':<22}{ours:>9} products{own_time:>9.1f} s", flush=True)
    for tool, (n, length, is_enough) in others_counts(runs, ours, reference).items():
        with twice_differentiable(model):
            model.zero_grad(set_to_none=True)  # PyHessian differentiates whatever the gradients contain
            time = n * seconds(lambda tool=tool, length=length: run_density(tool, model, batch, length))
        sign, how = "" if is_enough else "≥", "one run" if n == 1 else f"{n} runs of {length}"
        print(
            f"  {tool:<22}{f'{sign}{n * length}':>9} products{f'{sign}{time:.1f}':>9} s"
            f"   {sign}{math.floor(time / own_time)} times as long, {how}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(NETWORKS), help=f"networks: {', '.join(NETWORKS)}")
    parser.add_argument("--longest", type=int, default=LONGEST, help="steps of the others' longest single runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    for name in options.names:
        compare(name, *problem(name), options.longest)


if __name__ == "__main__":
    main()
