"""PyTorch: measure the curvature of the network, then train with the schedule made from it."""

import torch
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve.adapters.torch import ScheduleLR

source = torch.Generator().manual_seed(0)
x = torch.randn(256, 8, generator=source)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))

schedule, estimate = ec.torch_schedule(
    model, F.cross_entropy, (x, y), total_steps=100, lr=0.3, weight_decay=1e-3, num_products=200
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-3)
scheduler = ScheduleLR(optimizer, schedule)
for _ in range(schedule.total_steps):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
print(estimate)
print(f"loss {loss.item():.4f} at learning rate {scheduler.get_last_lr()[0]:.2e}")
