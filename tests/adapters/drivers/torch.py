"""A plain PyTorch loop with ScheduleLR, files loaded with ``weights_only=True``, and a real GradScaler."""

import tempfile
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from tests.adapters.contract import LR, Driver
from tests.adapters.recording import recorded

from eigencurve.adapters.torch import ScheduleLR


class Loop:
    """A model with one weight per group, its optimizer and its scheduler."""

    def __init__(self, schedule, ratios=(1.0,)):
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2)) for _ in ratios])
        groups = [{"params": [weight], "lr": LR * ratio} for weight, ratio in zip(self.weights, ratios, strict=True)]
        self.optimizer = torch.optim.SGD(groups, lr=LR, momentum=0.9)
        self.seen = recorded(self.optimizer)
        self.scheduler = self.make_scheduler(schedule, ratios)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4)

    def make_scheduler(self, schedule, _ratios):
        return ScheduleLR(self.optimizer, schedule)

    def update(self, accumulation=1, overflow=False):
        for _ in range(accumulation):
            loss = sum(weight.square().sum() for weight in self.weights) / accumulation
            self.scaler.scale(loss * float("inf") if overflow else loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        self.scheduler.step()

    def run(self, num_steps, **options):
        for _ in range(num_steps):
            self.update(**options)
        return self

    def save(self, path):
        torch.save({"optimizer": self.optimizer.state_dict(), "scheduler": self.scheduler.state_dict()}, path)

    def load(self, path):
        state = torch.load(path, weights_only=True)
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        return self


class TorchDriver(Driver):
    name = "torch, ScheduleLR"
    loop = Loop

    def rates(self, schedule, num_steps):
        return self.first(self.loop(schedule).run(num_steps))

    def rates_resumed(self, schedule, num_steps, stop_at):
        before, after = self.halves(schedule, stop_at)
        return self.first(before) + self.first(after.run(num_steps - stop_at))

    def rates_accumulating(self, schedule, num_updates, accumulation):
        return self.first(self.loop(schedule).run(num_updates, accumulation=accumulation))

    def rates_groups(self, schedule, num_steps, ratios):
        return self.loop(schedule, ratios).run(num_steps).seen

    def rates_skipping(self, schedule, num_steps, skipped):
        loop = self.loop(schedule)
        for t in range(num_steps):
            loop.update(overflow=t in skipped)
        return self.first(loop)

    def rates_extended(self, schedule, longer, num_steps, at):
        before, after = self.halves(schedule, at)
        after.scheduler.extend(longer)
        return self.first(before) + self.first(after.run(num_steps - at))

    def halves(self, schedule, stop_at):
        before = self.loop(schedule).run(stop_at)
        with tempfile.TemporaryDirectory() as folder:
            before.save(Path(folder) / "state.pt")
            return before, self.loop(schedule).load(Path(folder) / "state.pt")

    def first(self, loop):
        return [rates[0] for rates in loop.seen]


DRIVER = TorchDriver()
