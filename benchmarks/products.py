"""Hessian products of several kinds of networks: ``python -m benchmarks.products``.

Prints the time of one product in forward-backward passes of the same network and batch, for
:class:`~eigencurve.hessian.HessianOperator` and for the plain product, ``torch.autograd.grad`` of a retained gradient
graph, as one flat vector. Pass and products take turns in every order; the graphs are built several times, because
their place in memory changes the time of a product by a few percent. The ratios are of medians of processor time, with
one thread. How much faster the products of linear layers are depends on the processor.

The last column is the time to compare a model, its examples and its loss with what a kept graph was built from, as a
share of one product; it must stay below 1 % on ResNet-20. Both are measured in the same run.
"""

import statistics
import time
from itertools import permutations

import torch
from torch import nn
from torch.nn import functional as F

from eigencurve.hessian import HessianOperator, keep_freed_memory
from eigencurve.hessian.watched import Snapshot
from paper.models.registry import build
from paper.models.transformer import next_byte_loss

NUM_BUILDS = 4
NUM_COMPARISONS = 9


class WordModel(nn.Module):
    """A language model of two LSTM layers, read along the second dimension."""

    def __init__(self, num_words=1000, width=128):
        super().__init__()
        self.embedding = nn.Embedding(num_words, width)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, num_words)

    def forward(self, words):
        """Logits, with the words in the second dimension."""
        return self.head(self.lstm(self.embedding(words))[0]).transpose(1, 2)


def images(name, divisor, count):
    return build(name, 10, divisor), F.cross_entropy, (torch.randn(count, 3, 32, 32), torch.randint(0, 10, (count,)))


def problems():
    """Network, loss and batch by name."""
    torch.manual_seed(0)
    mlp = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    words, text = torch.randint(0, 1000, (20, 36)), torch.randint(0, 256, (16, 129))
    yield "ResNet-20", *images("resnet20", 1, 128)
    yield "narrow ResNet-18", *images("resnet18", 8, 128)
    yield "narrow GoogLeNet", *images("googlenet", 16, 128)
    yield "narrow VGG16", *images("vgg16", 8, 256)
    yield "MLP", mlp, F.cross_entropy, (torch.randn(512, 784), torch.randint(0, 10, (512,)))
    yield "LSTM", WordModel(), F.cross_entropy, (words[:, :-1], words[:, 1:])
    yield "transformer", build("transformer", 256), next_byte_loss, (text[:, :-1], text[:, 1:])


def plain_product(model, loss_fn, batch, vector, without_fused):
    """Return v -> Hv by autograd alone; a fused LSTM has to be disabled for it."""
    parameters = list(model.parameters())
    parts = [part.view_as(p) for part, p in zip(vector.split([p.numel() for p in parameters]), parameters, strict=True)]
    before = torch.backends.mkldnn.enabled
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        torch._C._set_mkldnn_enabled(before and not without_fused)
        gradient = torch.autograd.grad(loss_fn(model(batch[0]), batch[1]), parameters, create_graph=True)
        torch._C._set_mkldnn_enabled(before)
    return lambda: torch.cat(
        [p.reshape(-1) for p in torch.autograd.grad(gradient, parameters, parts, retain_graph=True)]
    )


def seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def medians(build):
    """Median seconds of each call that ``build()`` returns, over several builds and all orders of the calls.

    What runs before a call changes its time.
    """
    rounds = []
    for _ in range(NUM_BUILDS):
        calls = build()
        for order in permutations(range(len(calls))):
            rounds.append([one for _, one in sorted((i, seconds(calls[i])) for i in order)])
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def measure(name, model, loss_fn, batch):
    """Median seconds of a pass, of our product and of the plain one."""

    def build():
        operator = HessianOperator(model.eval(), loss_fn, batch)
        vector = torch.randn(operator.dim)
        plain = plain_product(model, loss_fn, batch, vector, name == "LSTM")
        return lambda: loss_fn(model(batch[0]), batch[1]).backward(), lambda: operator(vector), plain

    return medians(build)


def comparison(model, loss_fn, batch):
    """Median share of a product's time that the comparison with the state of its graph takes."""
    operator = HessianOperator(model.eval(), loss_fn, batch)
    vector = torch.randn(operator.dim)
    snapshot = Snapshot(model, batch, loss_fn, with_training=False)
    shares = [seconds(snapshot.change) / seconds(lambda: operator(vector)) for _ in range(NUM_COMPARISONS)]
    return statistics.median(shares)


def main():
    torch.set_num_threads(1)
    keep_freed_memory()
    print(f"{'network':<18}{'ours':>8}{'plain':>8}   passes per product; ours / plain; comparison / ours")
    for name, *problem in problems():
        one_pass, ours, other = measure(name, *problem)
        share = comparison(*problem)
        print(f"{name:<18}{ours / one_pass:>8.2f}{other / one_pass:>8.2f}   {ours / other:<12.2f}{share:.2%}")


if __name__ == "__main__":
    main()
