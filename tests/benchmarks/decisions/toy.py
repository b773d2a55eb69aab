"""A task of seconds, with data of its own."""

import torch
from benchmarks.decisions.data import Examples
from benchmarks.decisions.tasks import Task
from torch import nn
from torch.nn import functional as F


def examples() -> Examples:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 4, generator=generator)
    y = x @ torch.tensor([1.0, -2.0, 0.5, 0.0]) + 0.3 * torch.randn(300, generator=generator)
    return Examples(x[:200], y[:200, None], x[200:], y[200:, None])


def toy_task(optimizer: str = "adamw", **settings: object) -> Task:
    values = {"middle_rate": 0.05, "total_steps": 128, "batch_size": 4, "weight_decay": 0.01} | settings
    return Task("toy", "shaping", "a toy", examples, Net, F.mse_loss, optimizer, **values)


class Net(nn.Module):
    """Hidden layers under the name that Muon takes matrices from."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
        self.head = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(x))
