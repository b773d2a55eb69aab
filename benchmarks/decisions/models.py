"""The networks of the tasks: small, plain PyTorch, and twice differentiable."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def mlp(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with an activation between each two."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])


def cnn(width: int = 16, classes: int = 10) -> nn.Sequential:
    """Three convolutions without normalisation, and a mean over the image."""
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, classes),
    )  # fmt: skip


class Residual(nn.Module):
    """Two convolutions with batch norm, and a shortcut."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.first = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(inner)) + self.shortcut(x))


def resnet(width: int = 8, classes: int = 10) -> nn.Sequential:
    """A residual network of eight layers."""
    stages = [Residual(width, width), Residual(width, 2 * width), Residual(2 * width, 4 * width)]
    stem = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, classes))


class Attention(nn.Module):
    """Multi-head self-attention, causal or not, without fused kernels."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inputs, self.outputs = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        parts = self.inputs(x).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        scores = query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5
        if self.causal:
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        return self.outputs((scores.softmax(-1) @ value).transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    """A transformer block with the norms first."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.attention, self.norms = Attention(width, heads, causal), nn.ModuleList(nn.LayerNorm(width) for _ in "ab")
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.outer(F.gelu(self.inner(self.norms[1](x))))


class CharacterTransformer(nn.Module):
    """A causal transformer over characters."""

    def __init__(self, alphabet: int, context: int, width: int = 32, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(alphabet, width), nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.Sequential(*(Block(width, heads, causal=True) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, alphabet)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.embedding(x) + self.positions)))


class PatchTransformer(nn.Module):
    """A vision transformer on patches of 4 × 4 pixels."""

    def __init__(self, side: int, width: int = 32, heads: int = 4, depth: int = 2, classes: int = 10) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.positions = nn.Parameter(0.02 * torch.randn((side // 4) ** 2, width))
        self.blocks = nn.Sequential(*(Block(width, heads, causal=False) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.blocks(x)).mean(1))


class CharacterLSTM(nn.Module):
    """One LSTM layer over characters."""

    def __init__(self, alphabet: int, width: int = 64) -> None:
        super().__init__()
        self.embedding, self.cell = nn.Embedding(alphabet, width // 2), nn.LSTM(width // 2, width, batch_first=True)
        self.head = nn.Linear(width, alphabet)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(self.embedding(x))[0])


def measure_statistics(model: nn.Module, x: Tensor) -> None:
    """Set the running statistics of all batch norms to those of ``x``."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    if not norms:
        return
    usual = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    model.train()
    model(x)
    for norm, momentum in zip(norms, usual, strict=True):
        norm.momentum = momentum


def token_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean cross entropy per character."""
    return F.cross_entropy(outputs.flatten(0, -2), targets.flatten())
