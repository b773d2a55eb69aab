"""Training steps in bfloat16 mixed precision and in float32: ``python -m benchmarks.precision``.

Prints the time of a step of the desk scale's networks in each precision: as the trainer does it, and for bfloat16 also
with PyTorch's own kernels, which the trainer avoids on processors that PyTorch has no fast ones for. They take turns;
times are medians of processor time, with one thread.
"""

from contextlib import nullcontext
from functools import partial

import torch
from benchmarks.products import medians
from torch.nn import functional as F

from paper.byte_text import scales as byte_scales
from paper.images import scales as image_scales
from paper.images.task import best_layout
from paper.models.registry import build
from paper.models.transformer import next_byte_loss
from paper.training.devices import kernels_for

CPU = torch.device("cpu")


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


def step(model, loss_fn, x, y, optimizer, is_mixed, kernels):
    optimizer.zero_grad()
    with kernels:
        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            loss = loss_fn(model(x), y)
        loss.backward()
    optimizer.step()


def steps(model, loss_fn, x, y, make):
    """A step in float32, in bfloat16 with our products, and with PyTorch's own."""
    optimizer = make(model.parameters(), lr=1e-3)
    ways = (False, nullcontext()), (True, kernels_for(torch.bfloat16, CPU)), (True, nullcontext())
    return [partial(step, model, loss_fn, x, y, optimizer, *way) for way in ways]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{'network':<20}{'float32':>10}{'bfloat16':>10}{'PyTorch':>10}   seconds per step; both / float32")
    for name, problem in (("narrow ResNet-18", image_problem()), ("transformer", byte_problem())):
        full, *mixed = medians(partial(steps, *problem))
        times = "".join(f"{spent:>10.3f}" for spent in (full, *mixed))
        print(f"{name:<20}{times}   {', '.join(f'{spent / full:.2f}' for spent in mixed)}")


if __name__ == "__main__":
    main()
