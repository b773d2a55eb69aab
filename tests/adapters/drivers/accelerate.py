"""A loop under accelerate in one process, with accelerate's own accumulation, checkpoints and loss scaling."""

import tempfile

import pytest

pytest.importorskip("accelerate")

import accelerate
import torch
from tests.adapters.contract import LR, Driver
from tests.adapters.recording import recorded

from eigencurve.adapters.accelerate import prepare_schedule


class Grouped(torch.nn.Module):
    """One weight per group; an infinite scale makes the loss overflow."""

    def __init__(self, num_groups):
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2)) for _ in range(num_groups)])

    def forward(self, scale):
        return scale * sum(weight.square().sum() for weight in self.weights)


class Loop:
    def __init__(self, schedule, ratios=(1.0,), accumulation=1, scaled=False, on_resume="refuse"):
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
        accelerate.state.GradientState._reset_state()
        self.accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=accumulation)
        if scaled:  # accelerate creates one only on a GPU
            self.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4)
        model = Grouped(len(ratios))
        groups = [{"params": [weight], "lr": LR * ratio} for weight, ratio in zip(model.weights, ratios, strict=True)]
        optimizer = torch.optim.SGD(groups, lr=LR, momentum=0.9)
        self.seen = recorded(optimizer)
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.scheduler = prepare_schedule(self.accelerator, self.optimizer, schedule, on_resume)

    def run(self, num_batches, skipped=()):
        for t in range(num_batches):
            with self.accelerator.accumulate(self.model):
                loss = self.model(torch.tensor(float("inf") if t in skipped else 0.1))
                self.accelerator.backward(loss)
                self.optimizer.step()
                self.scheduler.step()
                self.optimizer.zero_grad()
        return self

    def first(self):
        return [rates[0] for rates in self.seen]


class AccelerateDriver(Driver):
    name = "accelerate"

    def rates(self, schedule, num_steps):
        return Loop(schedule).run(num_steps).first()

    def rates_accumulating(self, schedule, num_updates, accumulation):
        return Loop(schedule, accumulation=accumulation).run(num_updates * accumulation).first()

    def rates_groups(self, schedule, num_steps, ratios):
        return Loop(schedule, ratios).run(num_steps).seen

    def rates_skipping(self, schedule, num_steps, skipped):
        return Loop(schedule, scaled=True).run(num_steps, skipped).first()

    def resumed(self, schedule, later, num_steps, stop_at, on_resume):
        with tempfile.TemporaryDirectory() as folder:
            before = Loop(schedule).run(stop_at)
            before.accelerator.save_state(folder)
            after = Loop(later, on_resume=on_resume)
            after.accelerator.load_state(folder)
        return before.first() + after.run(num_steps - stop_at).first()


DRIVER = AccelerateDriver()
