"""The cost of measuring the gradient noise: ``python -m benchmarks.noise``.

Prints the time of 60 noise products (the signed sum of gradients, one Lanczos run from it, and the sharpened measure)
as a ratio to the time of 60 products of a spectrum estimate, for a small convolutional network in one process. The
time of the second run of ``estimate_noise``, from the mean gradient, is not counted.
"""

import time

import torch
from torch import nn
from torch.nn import functional as F

from eigencurve.hessian import HessianOperator, estimate_spectrum, keep_freed_memory
from eigencurve.hessian.directions import DirectionSettings, measure_directions
from eigencurve.hessian.gradients import ExampleGradients

NUM_EXAMPLES, NUM_STEPS, DECAY = 256, 60, 5e-4


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 8 * 8, 10),
    )  # fmt: skip


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def noise_products(operator):
    source = ExampleGradients("benchmark", operator)
    settings = DirectionSettings("benchmark", NUM_STEPS, 0, None, None, False)
    measure_directions(operator, [lambda: source.sample(0)], settings, DECAY)


def main():
    keep_freed_memory()
    torch.manual_seed(0)
    batch = torch.randn(NUM_EXAMPLES, 3, 16, 16), torch.randint(0, 10, (NUM_EXAMPLES,))
    operator = HessianOperator(network(), F.cross_entropy, batch)
    spectrum = seconds(lambda: estimate_spectrum(operator, NUM_STEPS, settle=None, weight_decay=DECAY, progress=False))
    noise = seconds(lambda: noise_products(operator))
    print(f"{NUM_STEPS} spectrum products {spectrum:.2f} s, {NUM_STEPS} noise products {noise:.2f} s")
    print(f"ratio {noise / spectrum:.3f}")


if __name__ == "__main__":
    main()
