"""One scheduler step, as a ratio to PyTorch's schedulers: ``python -m benchmarks.scheduler``.

All of them set the rates of an optimizer with four parameter groups. The calls take turns; times are the medians of
1,000 steps each.
"""

import statistics
import time
import warnings

import torch
from torch.optim import lr_scheduler

import eigencurve as ec
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.spectrum.zoo import zoo_spectrum

T, NUM_STEPS, NUM_ROUNDS = 10**6, 1000, 15


def optimizer():
    parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in range(4)]
    found = torch.optim.SGD([{"params": [p], "lr": 0.1 / (i + 1)} for i, p in enumerate(parameters)])
    found.step()
    return found


def schedulers():
    spectrum = zoo_spectrum("resnet20_cifar10")
    yield "ScheduleLR, cosine", ScheduleLR(optimizer(), ec.cosine(T, 0.1))
    yield "ScheduleLR, eigencurve", ScheduleLR(optimizer(), ec.eigencurve(ec.spectrum.prepare(spectrum, 5e-4), T, 0.1))
    yield "CosineAnnealingLR", lr_scheduler.CosineAnnealingLR(optimizer(), T)
    yield "LambdaLR", lr_scheduler.LambdaLR(optimizer(), lambda t: 1 - t / T)
    yield "OneCycleLR", lr_scheduler.OneCycleLR(optimizer(), 0.1, T, cycle_momentum=False)


def seconds(scheduler):
    start = time.process_time()
    for _ in range(NUM_STEPS):
        scheduler.step()
    return time.process_time() - start


def main():
    warnings.simplefilter("ignore")
    found = dict(schedulers())
    rounds = [{name: seconds(scheduler) for name, scheduler in found.items()} for _ in range(NUM_ROUNDS)]
    times = {name: statistics.median(one[name] for one in rounds) for name in found}
    cosine = times["CosineAnnealingLR"]
    for name, spent in times.items():
        print(f"{name:<24} {spent / NUM_STEPS * 1e6:>8.2f} us a step   {spent / cosine:>6.2f} of CosineAnnealingLR")


if __name__ == "__main__":
    main()
