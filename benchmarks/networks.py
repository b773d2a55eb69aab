"""How many products the schedules of other networks need: ``python -m benchmarks.networks``.

No constant of the package was chosen on these networks. Each is trained for 300 updates. Prints the median and the
largest |ln(f/f_ref)| of five random probes after k products, at T = 39,100 and a weight decay of 5e-4, and the smallest
k of those tried from which on all five schedules are within 10 %. The reference f_ref is the schedule of 1,000 products
with a sixth probe.
"""

import numpy as np
import torch
from benchmarks.waiting import (
    REFERENCE,
    TOLERANCE,
    TOTAL_STEPS,
    WEIGHT_DECAY,
    language,
    lstm,
    our_run,
    probe_of,
    right_from,
    trained,
    transformer,
)
from torch import nn
from torch.nn import functional as F

from eigencurve.hessian import HessianOperator, Settling, keep_freed_memory

MARKS = (40, 60, 80, 100, 120, 150, 200, 250, 300, 350, 400)
SHOWN = (60, 100, 150, 250, 400)
SEEDS, REFERENCE_SEED = range(5), 99


def perceptron(num_rows=2000, num_inputs=100, num_classes=10, width=200):
    """A network of dense layers, trained on labels from a random network, and a batch."""
    torch.manual_seed(0)
    x, outer = torch.randn(num_rows, num_inputs), torch.randn(num_inputs, num_classes)
    y = (torch.tanh(x @ torch.randn(num_inputs, num_inputs) / num_inputs**0.5) @ outer).argmax(1)
    layers = nn.Linear(num_inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, num_classes)
    return trained(nn.Sequential(*layers), x, y, batch_size=256)


NETWORKS = {
    "transformer": lambda: language(transformer(), 2),
    "another transformer": lambda: language(transformer(), 3),
    "wide transformer": lambda: language(transformer(divisor=1), 4),
    "wide LSTM": lambda: language(lstm(width=128), 2),
    "MLP": perceptron,
}


def errors(operator):
    """The errors of all probes, in ascending order, by number of products."""
    settling = Settling(WEIGHT_DECAY, TOTAL_STEPS, operator.dtype, operator.dim)
    settling.num_unused = int((operator(probe_of(operator, REFERENCE_SEED)) == 0).sum())
    reference = settling.curve(*our_run(operator, REFERENCE, REFERENCE_SEED))
    runs = [our_run(operator, MARKS[-1], seed) for seed in SEEDS]
    return {k: np.sort([np.abs(settling.curve(a[:k], b[:k]) - reference).max() for a, b in runs]) for k in MARKS}


def main():
    torch.set_num_threads(1)
    keep_freed_memory()
    print(f"| network | parameters | {' | '.join(f'k = {k}' for k in SHOWN)} | within 10 % from |")
    print("|" + " --- |" * (len(SHOWN) + 3))
    for name, make in NETWORKS.items():
        model, batch = make()
        operator = HessianOperator(model, F.cross_entropy, batch)
        found = errors(operator)
        enough = right_from(MARKS, lambda k, found=found: found[k][-1] <= np.log1p(TOLERANCE))
        cells = [f"{np.median(found[k]):.3f}, {found[k][-1]:.3f}" for k in SHOWN]
        print(f"| {name} | {operator.dim:,} | {' | '.join(cells)} | {enough or '-'} |", flush=True)


if __name__ == "__main__":
    main()
