"""A plain PyTorch loop with PyTorch's own LambdaLR and the schedule's factor."""

import pytest

pytest.importorskip("torch")

import torch
from tests.adapters.drivers.torch import Loop, TorchDriver


class LambdaLoop(Loop):
    def make_scheduler(self, schedule, ratios):
        for group, ratio in zip(self.optimizer.param_groups, ratios, strict=True):
            group["lr"] = schedule(0) * ratio  # LambdaLR multiplies the current rate
        return torch.optim.lr_scheduler.LambdaLR(self.optimizer, schedule.factor)


class LambdaDriver(TorchDriver):
    name = "torch, LambdaLR"
    rtol = 4e-16  # f(0) · (f(t) / f(0)) is two roundings away from f(t)
    not_applicable = {  # noqa: RUF012
        "rates_skipping": "PyTorch warns if the first step was skipped",
        "rates_extended": "not detected: continues with the new function, one update late",
    }
    loop = LambdaLoop


DRIVER = LambdaDriver()
