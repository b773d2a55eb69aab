"""Forecast: log two short runs of a network, forecast a third schedule from the logs, then train with it."""

import torch
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.forecast import LoggedRun, fit_runs

STEPS, LR = 1000, 2.0
torch.manual_seed(0)
TEACHER = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 32)).requires_grad_(False)
# Coordinates of the input have very different sizes, as in real data, so the loss falls slowly.
SCALES = torch.arange(1, 65) ** -0.5


def batch(size, source):
    x = torch.randn(size, 64, generator=source) * SCALES
    return x, 3 * TEACHER(x) + torch.randn(size, 32, generator=source)


def train(schedule, name):
    """Train from the same start, and log the validation loss every 20 steps."""
    source = torch.Generator().manual_seed(1)
    x_val, y_val = batch(2048, source)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=schedule.lr)
    scheduler = ScheduleLR(optimizer, schedule)
    steps, losses = [], []
    for step in range(1, schedule.total_steps + 1):
        x, y = batch(32, source)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 20 == 0:
            with torch.no_grad():
                losses.append(F.mse_loss(model(x_val), y_val).item())
            steps.append(step)
    return LoggedRun(steps, losses, schedule, name)


runs = [train(ec.constant(STEPS, LR), "constant"), train(ec.cosine(STEPS, LR), "cosine")]
forecast = fit_runs(runs)
print(forecast)

schedule = ec.wsd(STEPS, LR, decay_steps=STEPS // 4)
expected = forecast.predict(schedule)
trained = train(schedule, "wsd")
print("step   forecast loss (80 % interval)   trained")
for step in range(200, STEPS + 1, 200):
    at = forecast.predict(schedule, at=step)
    loss = trained.losses[list(trained.steps).index(step)]
    print(f"{step:>4}   {at.loss[0]:.4f} ({at.low[0]:.4f} to {at.high[0]:.4f})       {loss:.4f}")
print(f"constant {runs[0].losses[-1]:.4f}, cosine {runs[1].losses[-1]:.4f}, trained {trained.losses[-1]:.4f}")
