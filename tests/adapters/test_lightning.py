import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("lightning")

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import BaseFinetuning
from tests.adapters.drivers.lightning import Module, fit, trainer
from tests.adapters.recording import recorded
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve.adapters.lightning import (
    Cooldown,
    MeasureSchedule,
    RangeTestCallback,
    optimizer_config,
    scheduler_of,
    total_steps,
)
from eigencurve.adapters.measuring import Measurement
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.hessian import HessianOperator, estimate_spectrum

ROOT = Path(__file__).parents[2]
# These runs are short on purpose, and some are extended late.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*but the trainer takes:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*the rate jumps:UserWarning"),
]


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3))
        self.seen, self.losses = [], []

    def training_step(self, batch, _index):
        self.losses.append(loss(self, batch))
        return self.losses[-1]

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.3, weight_decay=1e-2)
        self.seen = recorded(optimizer)
        return optimizer

    def first(self):
        return [rates[0] for rates in self.seen]


def loss(module, batch):
    return F.cross_entropy(module.net(batch[0]), batch[1])


def data(num=24):
    source = torch.Generator().manual_seed(1)
    return torch.utils.data.TensorDataset(
        torch.randn(num, 4, generator=source), torch.randint(0, 3, (num,), generator=source)
    )


# Few products, for speed: these measurements have not settled.
def measurement(at_epoch=0, **settings):
    return Measurement(0.2, 1e-2, at_epoch=at_epoch, num_batches=12, num_products=8, settle=None, **settings)


UNSETTLED = pytest.mark.filterwarnings("ignore:Measurement. The spectrum has not settled:UserWarning")


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"max_epochs": 3, "num_updates": -1}, 12),
        ({"max_epochs": 3, "num_updates": -1, "accumulate_grad_batches": 3}, 6),
        ({"max_epochs": 3, "num_updates": 5}, 5),
        ({"max_epochs": 2, "num_updates": -1, "limit_train_batches": 3}, 6),
    ],
)
def test_total_steps_counts_as_the_trainer_does(options, steps):
    class Asking(Module):
        def configure_optimizers(self):
            self.schedule = ec.linear(total_steps(self.trainer), lr=0.25)
            return super().configure_optimizers()

    module = Asking(None)
    running = fit(module, **options)
    assert module.schedule.total_steps == running.global_step == steps
    assert module.first() == module.schedule.values().tolist()


def test_total_steps_refuses_a_run_without_end():
    with pytest.raises(ValueError, match=r"total_steps: 'trainer' must be one that ends .* Set max_steps"):
        total_steps(trainer(-1, max_epochs=-1))


def test_the_config_advances_at_every_step():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    config = optimizer_config(optimizer, ec.linear(4, 0.1))
    assert config["optimizer"] is optimizer
    assert (config["lr_scheduler"]["interval"], config["lr_scheduler"]["frequency"]) == ("step", 1)
    assert isinstance(config["lr_scheduler"]["scheduler"], ScheduleLR)


def test_hurt_3_another_horizon_at_resume_is_refused(tmp_path):
    before = fit(Module(ec.cosine(8, 0.25)), 3)
    before.save_checkpoint(tmp_path / "run.ckpt")
    with pytest.raises(ValueError, match=r"total_steps=16.*total_steps=8.*on_resume='extend'"):
        fit(Module(ec.cosine(16, 0.25)), 8, checkpoint=tmp_path / "run.ckpt")


def test_hurt_6_a_checkpoint_loads_with_weights_only(tmp_path):
    fit(Module(ec.eigencurve(ec.Spectrum([1.0, 4.0], [3, 1]), 8, 0.25)), 3).save_checkpoint(tmp_path / "run.ckpt")
    state = torch.load(tmp_path / "run.ckpt", weights_only=True)["lr_schedulers"][0]
    assert state["last_epoch"] == 3
    json.dumps(state)


@UNSETTLED
@pytest.mark.parametrize(("at_epoch", "warmup"), [(0, 0), (0, 3), (1, 0), (2, ec.schedules.fraction(0.125))])
def test_the_callback_measures_and_installs(at_epoch, warmup):
    settings = measurement(at_epoch=at_epoch, warmup_steps=warmup)
    module, callback = Classifier(), MeasureSchedule(loss, settings)
    weights = {}

    class Spy(pl.Callback):
        def on_train_epoch_start(self, trainer, pl_module):
            if trainer.current_epoch == at_epoch:
                weights.update({name: value.clone() for name, value in pl_module.state_dict().items()})

    fit(module, -1, data(), callbacks=[Spy(), callback], max_epochs=4)
    # All 24 examples in batches of 2: the measurement is that of the whole set, in any order.
    twin = Classifier()
    twin.load_state_dict(weights)
    operator = HessianOperator(twin.net, F.cross_entropy, data().tensors)
    reference = estimate_spectrum(operator, 8, settle=None, weight_decay=1e-2, total_steps=48)
    rise, wait = (0, 3, 6)[0 if warmup == 0 else 1 if warmup == 3 else 2], at_epoch * 12
    left = 48 - max(rise, wait)
    curve = ec.eigencurve(ec.spectrum.prepare(reference.spectrum, 1e-2), left, 0.2)
    seen = module.first()
    assert seen[: max(rise, wait)] == [0.2 * (t + 1) / (rise + 1) if t < rise else 0.2 for t in range(48 - left)]
    torch.testing.assert_close(seen[-left:], curve.values().tolist(), rtol=1e-3, atol=0)  # float32 sums in other orders
    assert seen == callback.scheduler.schedule.values().tolist()
    assert callback.plan.estimate.num_products == 8


@UNSETTLED
@pytest.mark.parametrize(
    ("options", "steps", "wait"),
    [
        ({"max_epochs": 4}, -1, 12),
        ({"max_epochs": 1}, -1, 0),
        ({"max_epochs": 11}, -1, 24),
        ({"max_epochs": 3, "accumulate_grad_batches": 5}, -1, 3),  # 12 batches are 3 steps
        ({}, 14, 12),  # two epochs, the second one incomplete
        ({"max_epochs": 30}, 14, 12),  # the number of steps ends the run first
    ],
)
def test_by_default_the_callback_measures_after_a_tenth_of_the_run(options, steps, wait):
    callback = MeasureSchedule(loss, measurement(at_epoch=None))
    fit(Classifier(), steps, data(), callbacks=[callback], **options)
    assert callback.plan.state_dict()["step"] == wait


@UNSETTLED
def test_measuring_leaves_the_training_as_it_was():
    """The losses are bit for bit those of a run with the same rates and no measurement."""
    measured, callback = Classifier(), MeasureSchedule(loss, measurement(at_epoch=1))
    torch.manual_seed(3)
    loader = torch.utils.data.DataLoader(data(), batch_size=2, shuffle=True)
    quiet_fit(measured, loader, [callback])

    class Same(Classifier):
        def configure_optimizers(self):
            return optimizer_config(super().configure_optimizers(), callback.scheduler.schedule)

    plain = Same()
    torch.manual_seed(3)
    quiet_fit(plain, torch.utils.data.DataLoader(data(), batch_size=2, shuffle=True), [])
    assert measured.first() == plain.first()
    assert torch.equal(torch.stack(measured.losses), torch.stack(plain.losses))


def quiet_fit(module, loader, callbacks):
    fit(module, -1, loader=loader, callbacks=callbacks, max_epochs=3)


@UNSETTLED
@pytest.mark.parametrize(("at_epoch", "stop_at"), [(0, 5), (1, 12), (1, 17)])
def test_the_callback_resumes_without_measuring_again(tmp_path, at_epoch, stop_at):
    settings = measurement(at_epoch=at_epoch)
    whole, callback = Classifier(), MeasureSchedule(loss, settings)
    fit(whole, -1, data(), callbacks=[callback], max_epochs=3)

    class Stop(pl.Callback):
        """Saves at ``stop_at``; at the end of an epoch only in its hook, or Lightning repeats the epoch."""

        def on_train_batch_end(self, trainer, *_):
            if trainer.global_step % 12:
                self.on_train_epoch_end(trainer)

        def on_train_epoch_end(self, trainer, *_):
            if trainer.global_step == stop_at and not trainer.should_stop:
                trainer.save_checkpoint(tmp_path / "run.ckpt")
                trainer.should_stop = True

    first, second = Classifier(), Classifier()
    fit(first, -1, data(), callbacks=[MeasureSchedule(loss, settings), Stop()], max_epochs=3)
    again = MeasureSchedule(loss, settings)
    fit(second, -1, data(), checkpoint=tmp_path / "run.ckpt", callbacks=[again], max_epochs=3)
    assert first.first()[:stop_at] + second.first() == whole.first()
    assert (again.plan.estimate is None) == (stop_at > 12 * at_epoch)
    longer = {"checkpoint": tmp_path / "run.ckpt", "max_epochs": 4}
    with pytest.raises(ValueError, match="on_resume='extend'"):
        fit(Classifier(), -1, data(), callbacks=[MeasureSchedule(loss, settings)], **longer)
    extended = Classifier()
    callback = MeasureSchedule(loss, settings, on_resume="extend")
    fit(extended, -1, data(), callbacks=[callback], **longer)
    assert callback.scheduler.schedule.total_steps == 48
    assert extended.first() == callback.scheduler.schedule.values().tolist()[stop_at:]


def test_the_callback_refuses_what_it_cannot_do():
    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self):
            yield from data()

    with pytest.raises(ValueError, match="Pass 'batches' to measure on"):
        fit(
            Classifier(),
            4,
            loader=torch.utils.data.DataLoader(Endless(), 2),
            callbacks=[MeasureSchedule(loss, measurement())],
        )
    with pytest.raises(ValueError, match=r"one optimizer and no scheduler.*Return only the optimizer"):
        fit(Module(ec.cosine(8, 0.25)), 3, callbacks=[MeasureSchedule(loss, measurement())])
    with pytest.raises(TypeError, match="'measurement' must be a Measurement"):
        MeasureSchedule(loss, ec.cosine(8, 0.25))
    with pytest.raises(TypeError, match="'objective' must be callable"):
        MeasureSchedule(None, measurement())


@UNSETTLED
def test_given_batches_are_measured_on():
    settings = measurement(batches=[data(6)[:]])
    callback = MeasureSchedule(loss, settings)
    fit(Classifier(), 2, data(), callbacks=[callback])
    reference = estimate_spectrum(HessianOperator(Classifier().net, F.cross_entropy, data(6)[:]), 8, settle=None)
    assert pytest.approx(reference.spectrum.L, rel=1e-4) == callback.plan.estimate.spectrum.L


OTHER_NAME = """
import sys, warnings
sys.modules["lightning"] = None  # as if only the other package were installed
warnings.simplefilter("ignore")
import pytorch_lightning as pl, torch
import eigencurve as ec
from eigencurve.adapters.lightning import Measurement, MeasureSchedule, optimizer_config, total_steps

class Module(pl.LightningModule):
    def __init__(self, measured):
        super().__init__()
        self.net, self.measured, self.rates = torch.nn.Linear(2, 2), measured, []
    def training_step(self, batch, index):
        self.rates.append(self.optimizers().param_groups[0]["lr"])
        return self.net(batch).square().mean()
    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        return optimizer if self.measured else optimizer_config(optimizer, ec.linear(total_steps(self.trainer), 0.1))

quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
loader = torch.utils.data.DataLoader(torch.randn(8, 2), batch_size=2)
plain, measured = Module(False), Module(True)
pl.Trainer(max_epochs=2, accelerator="cpu", **quiet).fit(plain, loader)
assert plain.rates == ec.linear(8, 0.1).values().tolist(), plain.rates
measurement = Measurement(0.1, 1e-2, num_products=3)
callback = MeasureSchedule(lambda module, batch: module.net(batch).square().mean(), measurement)
assert isinstance(callback, pl.Callback)
pl.Trainer(max_epochs=2, accelerator="cpu", callbacks=[callback], **quiet).fit(measured, loader)
assert measured.rates == callback.scheduler.schedule.values().tolist(), measured.rates
assert callback.plan.estimate.num_products > 0
"""


def test_the_pytorch_lightning_package_works_too(tmp_path):
    pytest.importorskip("pytorch_lightning")
    program = tmp_path / "program.py"
    program.write_text(OTHER_NAME)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]


# ---- Cooldowns, lengths and groups


class Held(Module):
    """Constant rate until further notice, and resumable at any time."""

    def __init__(self, **options):
        super().__init__(ec.constant(1000, 0.25), on_resume="adopt", **options)


def test_a_branch_decays_from_a_checkpoint_and_resumes_itself(tmp_path):
    fit(Held(), 5).save_checkpoint(tmp_path / "trunk.ckpt")
    wanted = ec.cooldown(ec.constant(1000, 0.25), 5, 6, shape="1-sqrt").values()[5:].tolist()
    whole = Held()
    fit(whole, 11, checkpoint=tmp_path / "trunk.ckpt", callbacks=[Cooldown(6, shape="1-sqrt")])
    assert whole.first() == wanted
    first, second = Held(), Held()
    running = fit(first, 8, checkpoint=tmp_path / "trunk.ckpt", callbacks=[Cooldown(6, shape="1-sqrt")])
    running.save_checkpoint(tmp_path / "branch.ckpt")
    fit(second, 11, checkpoint=tmp_path / "branch.ckpt", callbacks=[Cooldown(6, shape="1-sqrt")])
    assert first.first() + second.first() == wanted


def test_a_running_scheduler_can_be_cooled_down():
    class Decide(pl.Callback):
        def on_train_batch_end(self, trainer, *_):
            if trainer.global_step == 4:
                scheduler_of(trainer).cooldown(num_steps=4)

    module = Held()
    fit(module, 8, callbacks=[Decide()])
    assert module.first() == [0.25] * 4 + ec.linear(4, 0.25).values().tolist()
    with pytest.raises(ValueError, match="scheduler_of: 'trainer' must be one that fits with one ScheduleLR"):
        scheduler_of(trainer(3))


@pytest.mark.parametrize(
    ("length", "text"),
    [(4, "has 4 steps, but the trainer takes 8: the last 4 steps keep"), (12, "has 12 steps, .* training ends before")],
)
def test_a_schedule_of_another_length_is_reported(length, text):
    class Checked(Module):
        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.25)
            return optimizer_config(optimizer, self.schedule, trainer=self.trainer)

    with pytest.warns(UserWarning, match=rf"optimizer_config: the schedule {text}.* total_steps\(self.trainer\)"):
        fit(Checked(ec.linear(length, 0.25)), -1, max_epochs=2)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*but the trainer takes")
        fit(Checked(ec.linear(8, 0.25)), -1, max_epochs=2)


@pytest.mark.parametrize("options", [{"num_updates": -1, "max_epochs": 2}, {"num_updates": 20, "max_epochs": -1}])
def test_a_measurement_that_never_happens_is_reported(options):
    callback = MeasureSchedule(loss, measurement(at_epoch=2))
    with pytest.warns(
        UserWarning, match=r"at_epoch=2 is beyond the run, which has [12] epochs .* Set at_epoch <= [01]"
    ):
        fit(Classifier(), batches=data(), callbacks=[callback], **options)


def test_each_group_has_its_own_schedule_also_after_a_checkpoint(tmp_path):
    class Grouped(Module):
        def configure_optimizers(self):
            names = ("body", "head", "frozen")
            groups = [{"params": [w], "name": n, "lr": 0.5} for w, n in zip(self.weights, names, strict=True)]
            optimizer = torch.optim.AdamW(groups, lr=0.25, weight_decay=0.1)
            self.seen = recorded(optimizer)
            return optimizer_config(optimizer, self.schedule, scale_weight_decay=True)

    f, g = ec.linear(8, 0.2), ec.cosine(8, 0.01)
    schedules, ratios = {"body": f, "head": g, "frozen": None}, (1.0, 1.0, 1.0)
    before, after = Grouped(schedules, ratios), Grouped(schedules, ratios)
    fit(before, 3).save_checkpoint(tmp_path / "run.ckpt")
    running = fit(after, 8, checkpoint=tmp_path / "run.ckpt")
    assert before.seen + after.seen == [[f(t), g(t), 0.5] for t in range(8)]
    decays = [group["weight_decay"] for group in running.optimizers[0].param_groups]
    assert decays == pytest.approx([0.1 * f(7) / 0.2, 0.1 * g(7) / 0.01, 0.1])


def test_a_range_test_changes_nothing_and_may_end_the_fit():
    plain, tested, callback = Classifier(), Classifier(), RangeTestCallback(loss, max_lr=1e3, num_steps=30)
    for module, callbacks in ((plain, []), (tested, [callback])):
        torch.manual_seed(3)
        quiet_fit(module, torch.utils.data.DataLoader(data(), batch_size=2, shuffle=True), callbacks)
    steps = len(plain.losses)
    assert torch.equal(torch.stack(plain.losses), torch.stack(tested.losses[-steps:]))
    assert plain.first() == tested.first()[-steps:]
    assert callback.result.suggestion is not None
    ended = fit(Classifier(), -1, data(), callbacks=[RangeTestCallback(loss, stop=True, max_lr=1e3)], max_epochs=3)
    assert ended.global_step <= 12


def test_layers_that_a_finetuning_callback_unfreezes_follow_the_schedule():
    """Lightning adds their group with a rate relative to the current one of the first group."""
    body, head, f = nn.Linear(2, 2).requires_grad_(False), nn.Linear(2, 1), ec.linear(10, 0.5)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.5)
    scheduler = ScheduleLR(optimizer, f)
    scheduler.step(4)
    BaseFinetuning.unfreeze_and_add_param_group(body, optimizer, initial_denom_lr=10.0)
    for step in range(5, 8):
        scheduler.step()
        assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([f(step), f(step) / 10])
