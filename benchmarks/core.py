"""The core's speed, as ratios in one run: ``python -m benchmarks.core``.

Against the literal transcriptions of tests/reference and, where torch is installed, against its own cosine
scheduler. The peers do the same work as ours: the rates of a whole run.
"""

import importlib.util
import subprocess
import sys
import time

from tests.reference import schedules as reference

import eigencurve as ec

LAW = ec.PowerLaw(1.3, 1e-4, 700.0)


def best_of(call, repeat=5):
    """The shortest of a few timings of one call, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def row(what, ours, theirs, peer):
    print(f"{what:<58} {ours * 1e6:>12,.1f} us   {theirs / ours:>12,.1f} x faster than {peer}")


def making():
    spectrum = LAW.spectrum(5000)
    eigenvalues, weights = spectrum.eigenvalues.tolist(), spectrum.weights.tolist()
    literal = best_of(lambda: reference.eigencurve(eigenvalues, weights, 1000, 0.1), repeat=2)
    for beta in (2.0, 1.000005, 1):
        ours = best_of(lambda beta=beta: ec.eigencurve(spectrum, 10**6, 0.1, beta=beta))
        row(
            f"make eigencurve, 5,000 nodes, 10^6 steps, beta={beta}",
            ours,
            literal,
            "the transcription of beta=2, 10^3 steps",
        )


def evaluating():
    f = ec.eigencurve(LAW, 10**6, 0.1)
    lengths = reference.interval_lengths(ec.group(LAW).share.tolist(), 10**6)
    some = range(0, 10**6, 1000)
    part = best_of(lambda: [reference.eigencurve_rate(t, [LAW.mu, LAW.L], lengths, 0.1, 2.0) for t in some])
    row("all rates of 10^6 steps, values()", best_of(f.values), part * 1000, "the transcription (a thousandth, scaled)")
    calls = best_of(lambda: [f(t) for t in some]) / 1000
    row("one rate, f(t)", calls, part / 1000, "the transcription")
    if importlib.util.find_spec("torch"):
        torch_rates(f, calls)


def torch_rates(f, call):
    import torch

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10**6)
    optimizer.step()

    def thousand_steps():
        for _ in range(1000):
            scheduler.step()

    theirs = best_of(thousand_steps) / 1000
    row("one rate, f(t)", call, theirs, "torch CosineAnnealingLR.step()")
    row("all rates of 10^6 steps, values()", best_of(f.values), theirs * 10**6, "torch CosineAnnealingLR (scaled)")


def importing():
    def seconds(module):
        return best_of(lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True), repeat=7)

    base, ours = seconds("scipy.interpolate"), seconds("eigencurve")
    print(f"import eigencurve: {ours:.2f} s, {ours - base:+.2f} s over scipy.interpolate ({base:.2f} s)")


if __name__ == "__main__":
    making()
    evaluating()
    importing()
