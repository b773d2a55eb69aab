"""A small decoder-only transformer that predicts the next byte of a text."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paper import checks
from paper.models.making import divided

NUM_BYTES = 256
CONTEXT = 128
NUM_LAYERS = 3
NUM_HEADS = 4
HEAD_WIDTH = 20
INITIAL = 0.02


class Attention(nn.Module):
    r"""Causal self-attention.

    .. math:: \text{softmax}\bigl(QK^\top / \sqrt{d} + M\bigr) V, \qquad M_{ij} = -\infty \text{ if } j > i

    The products are written out, because PyTorch's fused attention has no second derivative.

    Args:
        width: Width of inputs and outputs.
        num_heads: Number of heads; it divides ``width``.
    """

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.joint = nn.Linear(width, 3 * width, bias=False)
        self.project = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs for inputs of shape (rows, columns, width)."""
        rows, columns, width = x.shape
        split = self.joint(x).view(rows, columns, 3, self.num_heads, width // self.num_heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        future = torch.ones(columns, columns, dtype=torch.bool, device=x.device).triu(1)
        scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(future, -math.inf)
        mixed: Tensor = self.project((scores.softmax(-1) @ value).transpose(1, 2).reshape(rows, columns, width))
        return mixed


class Block(nn.Module):
    """Attention and a hidden layer of four times the width, each after a layer norm and with a shortcut."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, num_heads)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width, bias=False)
        self.project = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs of the block."""
        x = x + self.attention(self.norm1(x))
        outputs: Tensor = x + self.project(F.gelu(self.expand(self.norm2(x))))
        return outputs


class Transformer(nn.Module):
    """Embeddings of bytes and positions, blocks, a layer norm and a linear layer, without dropout.

    Weights are drawn from a normal distribution of standard deviation 0.02, divided by √(2 · layers) for the last
    layer before each of the 2 · layers shortcuts, as in GPT-2. If ``tied``, the linear layer shares the weights of the
    embedding.
    """

    def __init__(
        self, num_classes: int, width: int, num_layers: int, num_heads: int, context: int, tied: bool = False
    ) -> None:
        super().__init__()
        self.context = context
        self.embedding = nn.Embedding(num_classes, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, num_heads) for _ in range(num_layers)))
        self.norm = nn.LayerNorm(width)
        self.decoder = nn.Linear(width, num_classes, bias=False)
        if tied:
            self.decoder.weight = self.embedding.weight
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                shrunk = math.sqrt(2 * num_layers) if name.endswith("project.weight") else 1.0
                nn.init.normal_(weight, std=INITIAL / shrunk)

    def forward(self, text: Tensor) -> Tensor:
        """Logits (rows, columns, classes) of the next byte after each byte of ``text`` (rows, columns)."""
        columns = text.shape[1]
        if columns > self.context:
            checks.refuse("Transformer", "text", f"at most {self.context} columns wide", columns)
        x = self.embedding(text) + self.position.weight[:columns]
        logits: Tensor = self.decoder(self.norm(self.blocks(x)))
        return logits


def transformer(num_classes: int = NUM_BYTES, divisor: int = 1) -> Transformer:
    """3 blocks of width 80 with 4 heads and a context of 128: 282,720 parameters for 256 bytes.

    Embedding and linear layer have 256 × 80 weights each, positions 128 × 80, each block 12 × 80² and 4 × 80 of its
    layer norms, the last layer norm 2 × 80. ``divisor`` divides the width of each head, 20.

    >>> sum(p.numel() for p in transformer().parameters())
    282720
    """
    checks.whole("transformer", "num_classes", num_classes, minimum=1)
    (head_width,) = divided("transformer", (HEAD_WIDTH,), divisor)
    return Transformer(num_classes, NUM_HEADS * head_width, NUM_LAYERS, NUM_HEADS, CONTEXT)


def gpt2() -> Transformer:
    """A transformer of GPT-2's sizes: 12 blocks of width 768 with 12 heads, 50,257 tokens and 1,024 positions.

    Its linear layers have no biases, which are 0.07 % of GPT-2's parameters.

    >>> import torch
    >>> with torch.device("meta"):
    ...     print(sum(p.numel() for p in gpt2().parameters()))
    124356864
    """
    return Transformer(50_257, 768, 12, 12, 1024, tied=True)


def next_byte_loss(logits: Tensor, following: Tensor) -> Tensor:
    """Mean cross entropy of the bytes that follow (rows, columns), in nats per byte."""
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())
