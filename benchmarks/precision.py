"""Training steps in bfloat16 mixed precision and in float32: ``python -m benchmarks.precision``.

Prints the time of a step of the desk scale's networks in each precision, and the ratio. The two take turns; times are
medians of processor time, with one thread.
"""

from functools import partial

import torch
from benchmarks.products import medians
from torch.nn import functional as F

from eigencurve.experiments.bytes import scales as byte_scales
from eigencurve.experiments.images import scales as image_scales
from eigencurve.experiments.images.task import best_layout
from eigencurve.experiments.models.registry import build
from eigencurve.experiments.models.transformer import next_byte_loss


def image_problem():
    """The narrow ResNet-18 and a batch of random images."""
    scale = image_scales.DESK_SCALE
    model = build("resnet18", 10, scale.divisors["resnet18"])
    layout = best_layout(model)
    x, y = torch.randn(scale.batch_size, 3, 32, 32), torch.randint(0, 10, (scale.batch_size,))
    return model.to(memory_format=layout), F.cross_entropy, x.to(memory_format=layout), y, torch.optim.SGD


def byte_problem():
    """The transformer and a batch of random bytes."""
    scale = byte_scales.DESK_SCALE
    text = torch.randint(0, 256, (scale.batch_size, scale.context + 1))
    return build("transformer", 256, scale.divisor), next_byte_loss, text[:, :-1], text[:, 1:], torch.optim.AdamW


def step(model, loss_fn, x, y, optimizer, is_mixed):
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{'network':<20}{'float32':>10}{'bfloat16':>10}   seconds per step; bfloat16 / float32")
    for name, problem in (("narrow ResNet-18", image_problem()), ("transformer", byte_problem())):
        *rest, make = problem
        optimizer = make(rest[0].parameters(), lr=1e-3)
        full, mixed = medians([partial(step, *rest, optimizer, is_mixed) for is_mixed in (False, True)])
        print(f"{name:<20}{full:>10.3f}{mixed:>10.3f}   {mixed / full:.2f}")


if __name__ == "__main__":
    main()
