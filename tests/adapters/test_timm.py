"""timm is not installed here: the tests follow the calls of its training script."""

import pytest

pytest.importorskip("torch")

import torch
from tests.adapters.recording import make_optimizer, recorded

import eigencurve as ec
from eigencurve.adapters.timm import TimmSchedule

LR = 0.25
SCHEDULE = ec.warmup(ec.cosine(9, LR), 3)


class TimmLoop:
    """timm's script without the training: it counts updates over all epochs and calls ``step`` after each epoch."""

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


def test_it_counts_updates_and_scales_layers():
    optimizer = make_optimizer({"lr_scale": 0.5}, {"lr_scale": 1.0}, {}, lr=LR)
    seen = recorded(optimizer)
    TimmLoop(optimizer, TimmSchedule(optimizer, SCHEDULE)).train(range(3))
    assert seen == [[0.5 * SCHEDULE(t), SCHEDULE(t), SCHEDULE(t)] for t in range(12)]


def test_it_resumes_and_refuses_another_horizon():
    first = make_optimizer({"lr_scale": 0.5}, {}, lr=LR)
    loop = TimmLoop(first, TimmSchedule(first, SCHEDULE))
    loop.train([0])
    state = loop.lr_scheduler.state_dict()
    second = make_optimizer({"lr_scale": 0.5}, {}, lr=LR)
    seen, resumed = recorded(second), TimmSchedule(second, SCHEDULE)
    resumed.load_state_dict(state)
    TimmLoop(second, resumed).train([1, 2])
    assert seen == [[0.5 * SCHEDULE(t), SCHEDULE(t)] for t in range(4, 12)]
    with pytest.raises(ValueError, match="on_resume='extend'"):
        TimmSchedule(make_optimizer({}, {}, lr=LR), ec.cosine(50, LR)).load_state_dict(state)


def test_it_cools_down_and_has_a_schedule_per_group():
    optimizer = make_optimizer({"lr_scale": 0.5}, {}, lr=LR)
    seen, scheduler = recorded(optimizer), TimmSchedule(optimizer, [SCHEDULE, ec.constant(12, 0.1)])
    loop = TimmLoop(optimizer, scheduler)
    loop.train([0])
    scheduler.cooldown(num_steps=4)
    loop.train([1])
    assert seen[:4] == [[0.5 * SCHEDULE(t), 0.1] for t in range(4)]
    assert seen[4:] == [
        [0.5 * rate, low]
        for rate, low in zip(ec.linear(4, SCHEDULE(4)).values(), ec.linear(4, 0.1).values(), strict=True)
    ]


def test_a_group_that_is_added_has_its_scale():
    optimizer = make_optimizer({"lr_scale": 0.5}, {}, lr=LR)
    scheduler = TimmSchedule(optimizer, SCHEDULE)
    scheduler.step_update(4)
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))], "lr_scale": 0.25})
    for updates in (5, 6):
        scheduler.step_update(updates)
        assert [g["lr"] for g in optimizer.param_groups] == [SCHEDULE(updates) * scale for scale in (0.5, 1.0, 0.25)]
