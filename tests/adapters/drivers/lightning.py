"""Lightning's Trainer with optimizer_config, its checkpoints and its mixed precision."""

import tempfile
import warnings
from pathlib import Path

import pytest

pytest.importorskip("lightning")

import lightning.pytorch as pl
import torch
from lightning.pytorch.plugins.precision import MixedPrecision
from tests.adapters.contract import LR, Driver
from tests.adapters.recording import recorded

from eigencurve.adapters.lightning import optimizer_config


class Module(pl.LightningModule):
    """One weight per group; an infinite batch makes the loss overflow."""

    def __init__(self, schedule, ratios=(1.0,), on_resume="refuse"):
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2)) for _ in ratios])
        self.schedule, self.ratios, self.on_resume, self.seen = schedule, ratios, on_resume, []

    def training_step(self, batch, _index):
        return batch.mean() * sum(weight.square().sum() for weight in self.weights)

    def configure_optimizers(self):
        groups = [
            {"params": [weight], "lr": LR * ratio} for weight, ratio in zip(self.weights, self.ratios, strict=True)
        ]
        optimizer = torch.optim.SGD(groups, lr=LR, momentum=0.9)
        self.seen = recorded(optimizer)
        return optimizer_config(optimizer, self.schedule, on_resume=self.on_resume)

    def first(self):
        return [rates[0] for rates in self.seen]


def trainer(num_updates, **options):
    settings = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    settings |= {"enable_model_summary": False, "accelerator": "cpu", "devices": 1}
    return pl.Trainer(max_steps=num_updates, **{**settings, **options})


def fit(module, num_updates, batches=None, checkpoint=None, loader=None, **options):
    """Train in epochs of four batches, so that runs end within an epoch and continue beyond it."""
    if loader is None:
        loader = torch.utils.data.DataLoader(torch.full((8, 1), 0.1) if batches is None else batches, batch_size=2)
    running = trainer(num_updates, **options)
    with warnings.catch_warnings():
        # Lightning's advice on the loader (its workers, and resuming within an epoch), and a deprecation warning that
        # Lightning itself triggers in the pinned PyTorch.
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated")
        warnings.filterwarnings("ignore", message=".*your dataloader is not resumable.*")
        running.fit(module, loader, ckpt_path=checkpoint, weights_only=True if checkpoint else None)
    return running


class LightningDriver(Driver):
    name = "Lightning"

    def rates(self, schedule, num_steps):
        module = Module(schedule)
        fit(module, num_steps)
        return module.first()

    def rates_accumulating(self, schedule, num_updates, accumulation):
        module = Module(schedule)
        fit(module, num_updates, accumulate_grad_batches=accumulation)
        return module.first()

    def rates_groups(self, schedule, num_steps, ratios):
        module = Module(schedule, ratios)
        fit(module, num_steps)
        return module.seen

    def rates_skipping(self, schedule, num_steps, skipped):
        module, batches = Module(schedule), torch.full((2 * num_steps, 1), 0.1)
        for t in skipped:
            batches[2 * t] = float("inf")
        precision = MixedPrecision("16-mixed", "cpu", scaler=torch.amp.GradScaler("cpu", init_scale=2.0**4))
        fit(module, -1, batches, plugins=[precision], max_epochs=1)
        return module.first()

    def resumed(self, schedule, later, num_steps, stop_at, on_resume):
        before, after = Module(schedule), Module(later, on_resume=on_resume)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.ckpt"
            fit(before, stop_at).save_checkpoint(path)
            fit(after, num_steps, checkpoint=path)
        return before.first() + after.first()


DRIVER = LightningDriver()
