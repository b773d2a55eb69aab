"""Speed of the core: ``python -m benchmarks.core``.

Compares schedules with the literal transcriptions in tests/reference and, if torch is installed, with its cosine
scheduler; both compute the rates of a whole run. Compares ``import eigencurve`` and short commands with the import of
torch, which most users pay for anyway. The time of a process is the shortest of seven.
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
    lengths = reference.interval_lengths(ec.spectrum.group(LAW).share.tolist(), 10**6)
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


def starting():
    """Print how long new processes take."""
    schedule = ["schedule", "resnet20_cifar10", "--steps", "39100", "--lr", "0.1"]
    processes = {
        "an empty process": ["-c", ""],
        "import torch": ["-c", "import torch"],
        "import scipy.interpolate": ["-c", "import scipy.interpolate"],
        "import eigencurve": ["-c", "import eigencurve"],
        "eigencurve --help": ["-m", "eigencurve.cli", "--help"],
        "eigencurve schedule": ["-m", "eigencurve.cli", *schedule],
    }
    times = {what: process_seconds(arguments) for what, arguments in processes.items()}
    for what, seconds in times.items():
        print(f"{what:<26} {seconds:>6.2f} s   {seconds / times['import torch']:>6.2f} x import torch")


def process_seconds(arguments):
    command = [sys.executable, *arguments]
    return best_of(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), repeat=7)


if __name__ == "__main__":
    making()
    evaluating()
    starting()
