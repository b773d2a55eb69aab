"""Composer is not installed here: the tests follow the calls of its trainer."""

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

import torch
from tests.adapters.recording import make_optimizer, recorded

import eigencurve as ec
from eigencurve.adapters.composer import composer_scheduler

LR = 0.25
SCHEDULE = ec.warmup(ec.cosine(9, LR), 3)


class ComposerLoop:
    """Composer's LambdaLR gets a multiplier of the initial rates from the function, and advances every batch."""

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
def test_it_multiplies_the_optimizers_own_rate(lr):
    optimizer = make_optimizer({}, {"lr": (lr or LR) / 2}, lr=lr or LR)
    seen = recorded(optimizer)
    ComposerLoop(optimizer, composer_scheduler(SCHEDULE, lr)).train(12)
    # two roundings
    torch.testing.assert_close(seen, [[SCHEDULE(t), SCHEDULE(t) / 2] for t in range(12)], rtol=4e-16, atol=0)


def test_it_stretches_the_schedule_by_its_ratio():
    optimizer = make_optimizer({}, lr=LR)
    seen = recorded(optimizer)
    ComposerLoop(optimizer, composer_scheduler(SCHEDULE), ssr=0.5).train(6)
    torch.testing.assert_close(seen, [[SCHEDULE(2 * t)] for t in range(6)], rtol=4e-16, atol=0)


def test_bad_arguments():
    with pytest.raises(TypeError, match="composer_scheduler: 'schedule' must be a Schedule"):
        composer_scheduler(0.1)
    with pytest.raises(ValueError, match="composer_scheduler: 'lr' must be > 0"):
        composer_scheduler(SCHEDULE, 0.0)
