"""Program of two real processes under torchrun; each writes the rates of its optimizer to a file."""

import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("accelerate")
pytest.importorskip("lightning")
pytest.importorskip("transformers")

import accelerate
import torch
from tests.adapters.drivers.accelerate import Grouped
from tests.adapters.drivers.lightning import fit
from tests.adapters.drivers.transformers import Run
from tests.adapters.recording import recorded
from tests.adapters.test_lightning import Classifier, data
from tests.adapters.test_lightning import loss as lightning_loss

import eigencurve as ec
from eigencurve.adapters import transformers as transformers_adapter
from eigencurve.adapters.accelerate import prepare_schedule
from eigencurve.adapters.lightning import MeasureSchedule, total_steps
from eigencurve.adapters.measuring import Measurement
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.adapters.wall_clock import WallClockLR

LR = 0.25
SCHEDULE = ec.warmup(ec.cosine(6, LR), 2)


def accelerated(accumulation, ours, split_batches=False):
    """Rates of three epochs over eight rows in batches of one, in two processes."""
    accelerate.state.AcceleratorState._reset_state()
    accelerate.state.GradientState._reset_state()
    loading = accelerate.DataLoaderConfiguration(split_batches=split_batches)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=accumulation, dataloader_config=loading)
    assert accelerator.num_processes == 2
    model = Grouped(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    seen = recorded(optimizer)
    loader = torch.utils.data.DataLoader(torch.full((8, 1), 0.1), batch_size=2 if split_batches else 1)
    scheduler = ScheduleLR(optimizer, SCHEDULE)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    scheduler = prepare_schedule(accelerator, optimizer, SCHEDULE) if ours else accelerator.prepare(scheduler)
    for _ in range(3):
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch.mean()))
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
    return [rates[0] for rates in seen]


def timed():
    """Rates of a time budget: the second process has a slower clock."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=LR)
    now = [0.0]
    scheduler = WallClockLR(optimizer, ec.linear(100, LR), seconds=10.0, clock=lambda: now[0])
    seen = []
    for _ in range(5):
        optimizer.step()
        now[0] += 1.0 if os.environ["RANK"] == "0" else 0.3
        scheduler.step()
        seen.append(scheduler.get_last_lr()[0])
    return seen


def lightning():
    """Rates after a measurement over both processes, its alphas, and the total steps."""
    measurement = Measurement(lr=LR, weight_decay=1e-2, at_epoch=0, num_batches=99, num_products=8, settle=None)
    module, callback = Classifier(), MeasureSchedule(lightning_loss, measurement)
    running = fit(module, -1, data(), max_epochs=2, devices=2, strategy="ddp", callbacks=[callback])
    return module.first(), callback.plan.estimate.alphas[0].tolist(), total_steps(running)


def transformers_measured(folder):
    """Rates and alphas under the Trainer, with a GPT-2 measured on the rows of both processes."""
    measurement = Measurement(lr=LR, weight_decay=1e-2, at_epoch=0, num_batches=99, num_products=6, settle=None)
    callback = transformers_adapter.MeasureSchedule(measurement)
    run = Run(folder, SCHEDULE, 6, callback=True)
    run.trainer.remove_callback(transformers_adapter.ScheduleCallback)
    run.trainer.add_callback(callback)
    run.train()
    assert run.first() == callback.scheduler.schedule.values().tolist()
    return run.first(), callback.plan.estimate.alphas[0].tolist()


def main(folder):
    rank = os.environ["RANK"]
    found = {
        "accelerate": accelerated(1, ours=True),
        "accelerate, accumulating": accelerated(2, ours=True),
        "accelerate, split batches": accelerated(1, ours=True, split_batches=True),
        "accelerate, prepared by itself": accelerated(1, ours=False),
    }
    for way in ("optimizers", "callback"):
        run = Run(f"{folder}/{way}", SCHEDULE, 8, callback=way == "callback", gradient_accumulation_steps=2)
        assert run.trainer.args.world_size == 2
        found[f"transformers, {way}"] = run.train().first()
    found["timed"] = timed()
    found["transformers, measured"], found["transformers, alphas"] = transformers_measured(f"{folder}/measured")
    found["lightning"], found["alphas"], found["lightning steps"] = lightning()
    Path(folder, f"{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
    # The frameworks leave a process group behind; its threads may abort the process while Python exits.
    os._exit(0)
