"""The cost of measuring the gradient noise: ``python -m benchmarks.noise``.

Prints the time of 60 products of ``estimate_noise`` as a ratio to the time of 60 products of ``estimate_spectrum``, for
a small convolutional network in one process. Both are whole calls: that of the noise includes the gradients, their
signed sums and the sharpened measures, and that of the spectrum the sharpened density and its errors. The two calls
alternate, so other work on the machine slows both; the ratio is the median over the pairs. The ratio of the processor
times does not depend on other work at all.
"""

import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

from eigencurve.hessian import HessianOperator, estimate_noise, estimate_spectrum, keep_freed_memory

NUM_EXAMPLES, NUM_STEPS, DECAY, BATCH_SIZE = 256, 60, 5e-4, 128
NUM_PAIRS = 7


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 8 * 8, 10),
    )  # fmt: skip


def timed(call):
    """The result of a call, and the wall and processor seconds of 60 of its products."""
    wall, processor = time.perf_counter(), time.process_time()
    found = call()
    seconds = time.perf_counter() - wall, time.process_time() - processor
    return found, [part * NUM_STEPS / found.num_products for part in seconds]


def pair(operator, seed):
    """Wall and processor seconds of the spectrum, and those of the noise."""
    spectrum, first = timed(
        lambda: estimate_spectrum(operator, NUM_STEPS, seed=seed, settle=None, weight_decay=DECAY, progress=False)
    )
    _, second = timed(
        lambda: estimate_noise(operator, spectrum, BATCH_SIZE, num_products=NUM_STEPS, seed=seed, progress=False)
    )
    return first, second


def main():
    keep_freed_memory()
    torch.manual_seed(0)
    batch = torch.randn(NUM_EXAMPLES, 3, 16, 16), torch.randint(0, 10, (NUM_EXAMPLES,))
    operator = HessianOperator(network(), F.cross_entropy, batch)
    pair(operator, 0)  # warm up
    pairs = [pair(operator, seed) for seed in range(1, NUM_PAIRS + 1)]
    for place, what in enumerate(("wall clock", "processor")):
        ratios = sorted(noise[place] / spectrum[place] for spectrum, noise in pairs)
        spectrum, noise = (statistics.median(both[which][place] for both in pairs) for which in (0, 1))
        print(
            f"{what}: {NUM_STEPS} products of the spectrum {spectrum:.2f} s, of the noise {noise:.2f} s; ratio"
            f" {statistics.median(ratios):.3f} (from {ratios[0]:.3f} to {ratios[-1]:.3f} in {NUM_PAIRS} pairs)"
        )


if __name__ == "__main__":
    main()
