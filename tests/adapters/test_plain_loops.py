"""Trainers that are not installed here: what is held is their calling convention, as their own scripts have it."""

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

import torch
from tests.adapters.recording import recorded

import eigencurve as ec
from eigencurve.adapters.composer import composer_scheduler
from eigencurve.adapters.timm import TimmSchedule

LR = 0.25
SCHEDULE = ec.warmup(ec.cosine(9, LR), 3)


def make_optimizer(*groups, lr=LR):
    return torch.optim.SGD([{"params": [torch.nn.Parameter(torch.ones(1))], **group} for group in groups], lr=lr)


class TimmLoop:
    """timm's script without the training: updates counted over all epochs, and a call after each epoch."""

    def __init__(self, optimizer, lr_scheduler, updates_per_epoch=4):
        self.optimizer, self.lr_scheduler, self.updates_per_epoch = optimizer, lr_scheduler, updates_per_epoch

    def train(self, epochs):
        for epoch in epochs:
            num_updates = epoch * self.updates_per_epoch
            for _ in range(self.updates_per_epoch):
                self.optimizer.step()
                num_updates += 1
                self.lr_scheduler.step_update(num_updates=num_updates, metric=0.5)
            self.lr_scheduler.step(epoch + 1, 0.7)


def test_timm_counts_updates_and_scales_layers():
    optimizer = make_optimizer({"lr_scale": 0.5}, {"lr_scale": 1.0}, {})
    seen = recorded(optimizer)
    TimmLoop(optimizer, TimmSchedule(optimizer, SCHEDULE)).train(range(3))
    assert seen == [[0.5 * SCHEDULE(t), SCHEDULE(t), SCHEDULE(t)] for t in range(12)]


def test_timm_resumes_and_refuses_another_horizon():
    first = make_optimizer({"lr_scale": 0.5}, {})
    loop = TimmLoop(first, TimmSchedule(first, SCHEDULE))
    loop.train([0])
    state = loop.lr_scheduler.state_dict()
    second = make_optimizer({"lr_scale": 0.5}, {})
    seen, resumed = recorded(second), TimmSchedule(second, SCHEDULE)
    resumed.load_state_dict(state)
    TimmLoop(second, resumed).train([1, 2])
    assert seen == [[0.5 * SCHEDULE(t), SCHEDULE(t)] for t in range(4, 12)]
    with pytest.raises(ValueError, match="on_resume='extend'"):
        TimmSchedule(make_optimizer({}, {}), ec.cosine(50, LR)).load_state_dict(state)


class ComposerLoop:
    """Composer's LambdaLR asks the function for a multiplier of the initial rates, and is stepped every batch."""

    def __init__(self, optimizer, function, ssr=1.0):
        self.state = SimpleNamespace(timestamp=SimpleNamespace(batch=SimpleNamespace(value=0)))
        self.optimizer = optimizer
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: function(self.state, ssr))

    def train(self, num_batches):
        for _ in range(num_batches):
            self.optimizer.step()
            self.state.timestamp.batch.value += 1
            self.scheduler.step()


@pytest.mark.parametrize("lr", [None, 0.1])
def test_composer_multiplies_the_optimizers_own_rate(lr):
    optimizer = make_optimizer({}, {"lr": (lr or LR) / 2}, lr=lr or LR)
    seen = recorded(optimizer)
    ComposerLoop(optimizer, composer_scheduler(SCHEDULE, lr)).train(12)
    # two roundings
    torch.testing.assert_close(seen, [[SCHEDULE(t), SCHEDULE(t) / 2] for t in range(12)], rtol=4e-16, atol=0)


def test_composer_stretches_the_schedule_by_its_ratio():
    optimizer = make_optimizer({})
    seen = recorded(optimizer)
    ComposerLoop(optimizer, composer_scheduler(SCHEDULE), ssr=0.5).train(6)
    torch.testing.assert_close(seen, [[SCHEDULE(2 * t)] for t in range(6)], rtol=4e-16, atol=0)


def test_bad_arguments():
    with pytest.raises(TypeError, match="composer_scheduler: 'schedule' must be a Schedule"):
        composer_scheduler(0.1)
    with pytest.raises(ValueError, match="composer_scheduler: 'lr' must be > 0"):
        composer_scheduler(SCHEDULE, 0.0)
