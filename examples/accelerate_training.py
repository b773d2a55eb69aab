"""Accelerate with gradient accumulation: the schedule advances once per update, for any number of processes.

Run it with python, or with ``accelerate launch --cpu --num_processes 2 examples/accelerate_training.py``.
"""

import math

import torch
from accelerate import Accelerator
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import eigencurve as ec
from eigencurve.adapters.accelerate import prepare_schedule
from eigencurve.schedules import epochs

ACCUMULATION, EPOCHS = 2, 20
torch.manual_seed(0)
x = torch.randn(256, 8)
data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATION)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=16, shuffle=True))

total_steps = epochs(EPOCHS, steps_per_epoch=math.ceil(len(loader) / ACCUMULATION))  # the prepared loader counts
bare = accelerator.unwrap_model(model)
schedule, estimate = ec.torch_schedule(bare, F.cross_entropy, data.tensors, total_steps, lr=0.3, weight_decay=1e-3)
scheduler = prepare_schedule(accelerator, optimizer, schedule)  # instead of accelerator.prepare
for _ in range(EPOCHS):
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
accelerator.print(estimate)
accelerator.print(f"loss {loss.item():.4f} at learning rate {scheduler.get_last_lr()[0]:.2e}")
