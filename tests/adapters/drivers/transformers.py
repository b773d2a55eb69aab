"""The Trainer of transformers with ``optimizers=(optimizer, ScheduleLR)`` and a tiny GPT-2."""

import gc
import tempfile

import pytest

pytest.importorskip("transformers")

import torch
import transformers
from tests.adapters.contract import LR, Driver
from tests.adapters.recording import recorded

from eigencurve.adapters.torch import ScheduleLR
from eigencurve.adapters.transformers import ScheduleCallback

transformers.utils.logging.disable_progress_bar()
# The Trainer collects garbage after every run: exclude the objects that live forever.
gc.freeze()


def tiny_gpt2(**options):
    settings = {"vocab_size": 11, "n_positions": 8, "n_embd": 4, "n_layer": 1, "n_head": 1, "bos_token_id": 0}
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings, eos_token_id=0, **options))


def sentences(num_rows=8):
    tokens = torch.randint(0, 11, (num_rows, 6), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": row, "labels": row} for row in tokens]


def arguments(folder, num_updates, **options):
    settings = {"report_to": "none", "use_cpu": True, "save_strategy": "no", "logging_strategy": "no"}
    settings |= {"per_device_train_batch_size": 2, "max_steps": num_updates, "disable_tqdm": True}
    return transformers.TrainingArguments(output_dir=str(folder), **{**settings, **options})


def grouped(model, ratios):
    """An optimizer with the model's parameters split into one group per ratio."""
    parameters = list(model.parameters())
    groups = [{"params": parameters[i :: len(ratios)], "lr": LR * ratio} for i, ratio in enumerate(ratios)]
    return torch.optim.SGD(groups, lr=LR)


class Run:
    """A trainer and the rates of its optimizer."""

    def __init__(self, folder, schedule, num_updates, ratios=(1.0,), on_resume="refuse", callback=False, **options):
        self.model = tiny_gpt2()
        optimizer = grouped(self.model, ratios)
        self.seen = recorded(optimizer)
        self.callback = ScheduleCallback(schedule, on_resume) if callback else None
        self.trainer = transformers.Trainer(
            model=self.model,
            args=arguments(folder, num_updates, **options),
            train_dataset=sentences(),
            optimizers=(optimizer, None if callback else ScheduleLR(optimizer, schedule, on_resume=on_resume)),
            callbacks=[self.callback] if callback else None,
        )

    def train(self, checkpoint=None):
        self.trainer.train(resume_from_checkpoint=checkpoint)
        return self

    def first(self):
        return [rates[0] for rates in self.seen]


class Overflowing(transformers.TrainerCallback):
    """Makes the gradients of the given steps infinite."""

    def __init__(self, skipped):
        self.skipped = skipped

    def on_pre_optimizer_step(self, _args, state, _control, model, **_):
        if state.global_step in self.skipped:
            next(model.parameters()).grad.fill_(float("inf"))


class TransformersDriver(Driver):
    name = "transformers, optimizers="
    skip = "not counted"
    callback = False

    def run(self, schedule, num_updates, **options):
        with tempfile.TemporaryDirectory() as folder:
            return Run(folder, schedule, num_updates, callback=self.callback, **options).train()

    def rates(self, schedule, num_steps):
        return self.run(schedule, num_steps).first()

    def rates_accumulating(self, schedule, num_updates, accumulation):
        return self.run(schedule, num_updates, gradient_accumulation_steps=accumulation).first()

    def rates_groups(self, schedule, num_steps, ratios):
        return self.run(schedule, num_steps, ratios=ratios).seen

    def rates_skipping(self, schedule, num_steps, skipped):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(folder, schedule, num_steps, callback=self.callback, max_grad_norm=0.0)
            # The Trainer creates a scaler only on a GPU.
            run.trainer.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4)
            run.trainer.add_callback(Overflowing(skipped))
            return run.train().first()

    def resumed(self, schedule, later, num_steps, stop_at, on_resume):
        with tempfile.TemporaryDirectory() as folder:
            saving = {"save_strategy": "steps", "save_steps": stop_at, "callback": self.callback}
            before = Run(folder, schedule, stop_at, **saving).train()
            after = Run(folder, later, num_steps, on_resume=on_resume, **saving)
            after.train(f"{folder}/checkpoint-{stop_at}")
        return before.first() + after.first()


DRIVER = TransformersDriver()
