import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("transformers")

import torch
import transformers
from tests.adapters.drivers.transformers import LR, Run, arguments, sentences, tiny_gpt2
from tests.adapters.recording import recorded
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve.adapters.measuring import Measurement
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.adapters.transformers import (
    LabelCount,
    MeasureSchedule,
    RangeTestCallback,
    ScheduleCallback,
    model_loss,
    total_steps,
)
from eigencurve.hessian import HessianOperator, estimate_spectrum

ROOT = Path(__file__).parents[2]


def tiny_bert(kind=transformers.BertForMaskedLM, **options):
    settings = {"vocab_size": 11, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    torch.manual_seed(0)
    return kind(transformers.BertConfig(**settings, intermediate_size=4, max_position_embeddings=8, **options))


def masked(num_rows=6, seed=2):
    """Sentences with most labels ignored: a different number in each row, and all of them in the last."""
    source = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1, 11, (num_rows, 6), generator=source)
    labels = tokens.clone()
    labels[torch.rand(num_rows, 6, generator=source) < 0.6] = -100
    labels[0, 0] = tokens[0, 0]
    labels[-1] = -100
    return {"input_ids": tokens, "labels": labels}


def rows(batch):
    return [{name: value[i] for name, value in batch.items()} for i in range(len(batch["labels"]))]


@pytest.mark.parametrize("callback", [False, True], ids=["optimizers", "callback"])
def test_bert_trains_and_logs_the_rate_it_used(tmp_path, callback):
    model, schedule = tiny_bert(), ec.warmup(ec.cosine(5, LR), 2)
    settings = arguments(tmp_path, 7, logging_strategy="steps", logging_steps=1, lr_scheduler_type="cosine")
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    chosen = {"callbacks": [ScheduleCallback(schedule)]} if callback else {}
    scheduler = None if callback else ScheduleLR(optimizer, schedule)
    seen = recorded(optimizer)
    trainer = transformers.Trainer(
        model, settings, train_dataset=rows(masked()), optimizers=(optimizer, scheduler), **chosen
    )
    trainer.train()
    logged = [row["learning_rate"] for row in trainer.state.log_history if "learning_rate" in row]
    assert logged == [rates[0] for rates in seen] == schedule.values().tolist()


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"num_train_epochs": 3}, 15),
        ({"num_train_epochs": 2.5}, 13),
        ({"num_train_epochs": 3, "gradient_accumulation_steps": 2}, 9),
        ({"num_train_epochs": 3, "dataloader_drop_last": True}, 12),
        ({"max_steps": 4}, 4),
    ],
)
def test_total_steps_counts_as_the_trainer_does(tmp_path, options, steps):
    settings = arguments(
        tmp_path, **{"num_updates": -1, **options} if "max_steps" not in options else {"num_updates": 4}
    )
    assert total_steps(settings, num_examples=9) == steps
    callback = ScheduleCallback(lambda num_steps: ec.linear(num_steps, LR))
    optimizer = torch.optim.SGD((model := tiny_gpt2()).parameters(), lr=LR)
    seen = recorded(optimizer)
    transformers.Trainer(
        model, settings, train_dataset=sentences(9), optimizers=(optimizer, None), callbacks=[callback]
    ).train()
    assert [rates[0] for rates in seen] == ec.linear(steps, LR).values().tolist()


KILLED = """
import os, signal, sys
import transformers
from tests.adapters.drivers.transformers import Run
from tests.adapters.test_transformers import SCHEDULE, SAVING

class Kill(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        with open(folder + "/rates.txt", "a") as file:
            file.write(repr(run.seen[-1][0]) + chr(10))
        if state.global_step == 5:
            os.kill(os.getpid(), signal.SIGKILL)

for way in ("optimizers", "callback"):
    folder = sys.argv[1] + "/" + way
    os.mkdir(folder)
    child = os.fork()  # this process has one thread; a fork saves importing everything again
    if child == 0:
        run = Run(folder, SCHEDULE, 9, callback=way == "callback", **SAVING)
        run.trainer.add_callback(Kill())
        run.train()
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
"""
# These runs are short on purpose, and some are extended late.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*but the trainer takes:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*the rate jumps:UserWarning"),
]
SCHEDULE = ec.warmup(ec.eigencurve(ec.Spectrum([0.01, 0.1, 1.0], [6, 3, 1]), 7, LR), 2)
SAVING = {"save_strategy": "steps", "save_steps": 2}


def test_hurt_2_killed_and_resumed_from_its_checkpoint(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(KILLED)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, program, tmp_path]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    for way in ("optimizers", "callback"):
        before = [float(line) for line in (tmp_path / way / "rates.txt").read_text().split()]
        assert before == SCHEDULE.values().tolist()[:5]
        resumed = Run(tmp_path / way, SCHEDULE, 9, callback=way == "callback", **SAVING).train(checkpoint=True)
        assert resumed.first() == SCHEDULE.values().tolist()[4:]  # the last checkpoint is from step 4


@pytest.mark.parametrize("callback", [False, True], ids=["optimizers", "callback"])
def test_hurt_3_another_horizon_at_resume_is_refused(tmp_path, callback):
    saving = {"save_strategy": "steps", "save_steps": 3, "callback": callback}
    Run(tmp_path, ec.cosine(6, LR), 3, **saving).train()
    with pytest.raises(ValueError, match=r"total_steps=12.*total_steps=6.*on_resume='extend'"):
        Run(tmp_path, ec.cosine(12, LR), 12, **saving).train(checkpoint=True)


def test_a_callback_may_be_added_at_resume(tmp_path):
    saving = {"save_strategy": "steps", "save_steps": 3}
    without = Run(tmp_path, ec.constant(3, LR), 3, callback=True, **saving)
    without.trainer.remove_callback(ScheduleCallback)
    without.train()
    later = Run(tmp_path, ec.cosine(6, LR), 6, callback=True, **saving).train(checkpoint=True)
    assert later.first() == ec.cosine(6, LR).values().tolist()[3:]


def test_hurt_6_the_trainers_state_is_plain_json(tmp_path):
    Run(tmp_path, SCHEDULE, 2, callback=True, **SAVING).train()
    state = json.loads((tmp_path / "checkpoint-2" / "trainer_state.json").read_text())
    saved = state["stateful_callbacks"]["eigencurve"]["scheduler"]["schedule"]
    assert ec.schedule_from_dict(saved) == SCHEDULE


def test_bad_arguments():
    with pytest.raises(TypeError, match="ScheduleCallback: 'schedule' must be a Schedule, or a function"):
        ScheduleCallback(0.1)
    with pytest.raises(ValueError, match="model_loss: 'batch' must be one with labels"):
        model_loss(tiny_gpt2(), {"input_ids": torch.ones(1, 3, dtype=torch.long)})


# ---- Spectra of the models


def exact_loss(shift):
    """The loss of the models in full precision; their own passes through float32."""

    def loss(model, batch):
        logits, labels = model(input_ids=batch["input_ids"]).logits, batch["labels"]
        logits, labels = (logits[:, :-1], labels[:, 1:]) if shift else (logits, labels)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    return loss


def dense_hessian(model, batch, shift):
    """Dense Hessian of the mean loss over all labels that count, by autograd on a function of the weights."""
    names = [name for name, _ in model.named_parameters()]
    shapes = [parameter.shape for parameter in model.parameters()]
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])

    def loss(vector):
        parts = torch.split(vector, [shape.numel() for shape in shapes])
        weights = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
        logits = torch.func.functional_call(model, weights, kwargs={"input_ids": batch["input_ids"]}).logits
        total, number = 0.0, 0
        for row, line in enumerate(batch["labels"].tolist()):
            for place, label in enumerate(line):
                if label != -100 and not (shift and place == 0):
                    total = total - logits[row, place - 1 if shift else place].log_softmax(-1)[label]
                    number += 1
        return total / number

    return torch.autograd.functional.hessian(loss, flat)


MODELS = {"gpt2": (tiny_gpt2, True), "bert": (tiny_bert, False)}


@pytest.mark.parametrize("name", MODELS)
def test_ignored_labels_are_weighted_correctly_for_any_batches(name):
    make, shift = MODELS[name]
    model, batch = make(attn_implementation="eager").double(), masked()
    assert LabelCount(model)(batch) == (batch["labels"][:, 1:] if shift else batch["labels"]).ne(-100).sum()
    H = dense_hessian(model.eval(), batch, shift)
    ragged = [{key: value[a:b] for key, value in batch.items()} for a, b in [(0, 1), (1, 4), (4, 6)]]
    vector = torch.randn(len(H), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for source, microbatch in [(batch, None), (batch, 1), (batch, 4), (ragged, None), (ragged, 2)]:
        operator = HessianOperator.from_objective(
            model, exact_loss(shift), source, microbatch=microbatch, count=LabelCount(model)
        )
        torch.testing.assert_close(operator(vector), H @ vector, rtol=1e-9, atol=1e-11)
        own = HessianOperator.from_objective(
            model, model_loss, source, microbatch=microbatch, count=LabelCount(model), check=False
        )  # the model's own loss passes through float32
        torch.testing.assert_close(own(vector), H @ vector, rtol=1e-3, atol=1e-5)
    with pytest.warns(
        UserWarning, match="the matrix depends on how it is split. If the loss is a mean over something else"
    ):
        rows_only = HessianOperator.from_objective(model, exact_loss(shift), batch, microbatch=4)
    assert (rows_only(vector) - H @ vector).abs().max() > 1e-3  # weighting by rows gives another matrix


@pytest.mark.parametrize("name", MODELS)
def test_attention_without_double_backward_falls_back(name):
    make, _ = MODELS[name]
    vectors = []
    for kind in ("eager", "sdpa"):
        model = make(attn_implementation=kind).double()
        assert model.config._attn_implementation == kind
        operator = HessianOperator.from_objective(model, model_loss, masked(), count=LabelCount(model))
        vectors.append(operator(torch.ones(operator.dim, dtype=torch.float64)))
    torch.testing.assert_close(*vectors, rtol=1e-3, atol=1e-5)


def test_labels_that_are_not_ignored_tokens_count_as_rows():
    model = tiny_bert(transformers.BertForSequenceClassification, num_labels=1)
    batch = {"input_ids": torch.ones(3, 4, dtype=torch.long), "labels": torch.tensor([0.5, 1.0, 2.0])}
    assert LabelCount(model)(batch) == 3
    assert LabelCount(model)({"input_ids": batch["input_ids"]}) == 3
    model = tiny_bert(transformers.BertForSequenceClassification, num_labels=2)
    assert LabelCount(model)({**batch, "labels": torch.tensor([0, 1, -100])}) == 2


# Few products, for speed: these measurements have not settled.
def measurement(at_epoch=0):
    return Measurement(LR, 1e-2, at_epoch=at_epoch, num_products=8, settle=None)


UNSETTLED = pytest.mark.filterwarnings("ignore:Measurement. The spectrum has not settled:UserWarning")


@UNSETTLED
@pytest.mark.parametrize(("at_epoch", "epoch"), [(0, 0), (1, 1), (None, 1)])  # None: after a tenth of three epochs
def test_the_callback_measures_installs_and_resumes(tmp_path, at_epoch, epoch):
    settings = measurement(at_epoch=at_epoch)

    def run(folder, callback, num_updates=12, checkpoint=None):
        model = tiny_gpt2(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=LR)
        seen = recorded(optimizer)
        settings = arguments(folder, num_updates, save_strategy="steps", save_steps=5)
        transformers.Trainer(
            model, settings, train_dataset=sentences(), optimizers=(optimizer, None), callbacks=[callback]
        ).train(resume_from_checkpoint=checkpoint)
        return [rates[0] for rates in seen]

    whole = MeasureSchedule(settings)
    rates = run(tmp_path, whole)
    assert rates == whole.scheduler.schedule.values().tolist()
    assert rates[: 4 * epoch + 1] == [LR] * (4 * epoch + 1)
    assert rates[-1] < LR
    assert whole.plan.estimate.num_products == 8
    again = MeasureSchedule(settings)
    assert run(tmp_path, again, checkpoint=f"{tmp_path}/checkpoint-5") == rates[5:]
    assert again.plan.estimate is None  # read from the checkpoint, not measured again
    with pytest.raises(ValueError, match="on_resume='extend'"):
        run(tmp_path, MeasureSchedule(settings), 16, f"{tmp_path}/checkpoint-5")
    longer = MeasureSchedule(settings, on_resume="extend")
    extended = run(tmp_path, longer, 16, f"{tmp_path}/checkpoint-5")
    assert extended == longer.scheduler.schedule.values().tolist()[5:]
    assert longer.scheduler.schedule.total_steps == 16


@UNSETTLED
def test_the_callback_measures_the_models_own_hessian(tmp_path):
    model, data = tiny_gpt2(), rows(masked(8))
    reference = estimate_spectrum(
        HessianOperator.from_objective(tiny_gpt2(), model_loss, masked(8), count=LabelCount(model)),
        8, settle=None, weight_decay=1e-2, total_steps=3,
    )  # fmt: skip
    callback = MeasureSchedule(measurement())
    with pytest.warns(UserWarning, match=r"for SGD, but the optimizer is AdamW. Use torch.optim.SGD, or"):
        transformers.Trainer(model, arguments(tmp_path, 3), train_dataset=data, callbacks=[callback]).train()
    torch.testing.assert_close(
        callback.plan.estimate.alphas[0].tolist(), reference.alphas[0].tolist(), rtol=1e-3, atol=1e-5
    )  # float32 sums in another order


# ---- Cooldowns, lengths and groups


def test_a_cooldown_planned_before_training_starts_at_the_checkpoint(tmp_path):
    hold = ec.constant(1000, LR)
    Run(tmp_path, hold, 4, callback=True, **SAVING).train()
    branch = Run(tmp_path, hold, 9, callback=True, on_resume="adopt", **SAVING)
    branch.callback.cooldown(num_steps=5, shape="cosine")
    branch.train(f"{tmp_path}/checkpoint-4")
    assert branch.first() == ec.cosine(5, LR).values().tolist()
    again = Run(tmp_path, hold, 9, callback=True, on_resume="adopt", **SAVING).train(f"{tmp_path}/checkpoint-6")
    assert again.first() == ec.cosine(5, LR).values().tolist()[2:]


def test_a_cooldown_during_training_is_in_the_next_checkpoint(tmp_path):
    class Decide(transformers.TrainerCallback):
        def on_step_end(self, _args, state, _control, **_):
            if state.global_step == 3:
                run.callback.cooldown(from_step=4, num_steps=4)

    run = Run(tmp_path, ec.constant(1000, LR), 8, callback=True, **SAVING)
    run.trainer.add_callback(Decide())
    run.train()
    wanted = [LR] * 4 + ec.linear(4, LR).values().tolist()
    assert run.first() == wanted
    state = json.loads((tmp_path / "checkpoint-6" / "trainer_state.json").read_text())
    saved = state["stateful_callbacks"]["eigencurve"]["scheduler"]["schedule"]
    assert ec.schedule_from_dict(saved).values().tolist() == wanted


@pytest.mark.parametrize(("length", "text"), [(3, "the last 3 steps keep"), (9, "training ends before")])
def test_a_schedule_of_another_length_is_reported(tmp_path, length, text):
    with pytest.warns(
        UserWarning, match=f"ScheduleCallback: the schedule has {length} steps, but the trainer takes 6: {text}"
    ):
        Run(tmp_path, ec.linear(length, LR), 6, callback=True).train()


def test_a_measurement_that_never_happens_is_reported(tmp_path):
    callback = MeasureSchedule(measurement(at_epoch=3))
    run = Run(tmp_path, ec.constant(8, LR), 8, callback=True)
    run.trainer.remove_callback(ScheduleCallback)
    run.trainer.add_callback(callback)
    with pytest.warns(UserWarning, match=r"at_epoch=3 is beyond the run, which has 2 epochs .* Set at_epoch <= 1"):
        run.train()


def test_each_group_has_its_own_schedule_also_after_a_checkpoint(tmp_path):
    f, g = ec.linear(8, 0.2), ec.cosine(8, 0.01)
    options = {"ratios": (1.0, 1.0, 2.0), "callback": True, "save_strategy": "steps", "save_steps": 3}
    before = Run(tmp_path, [f, g, None], 3, **options).train()
    after = Run(tmp_path, [f, g, None], 8, **options).train(f"{tmp_path}/checkpoint-3")
    assert before.seen + after.seen == [[f(t), g(t), 2 * LR] for t in range(8)]


def test_a_range_test_changes_nothing_and_may_end_the_training(tmp_path):
    weights = []
    callback = RangeTestCallback(max_lr=1e3, num_steps=30)
    for callbacks in ([], [callback]):
        run = Run(tmp_path, SCHEDULE, SCHEDULE.total_steps, callback=True)
        for each in callbacks:
            run.trainer.add_callback(each)
        run.train()
        weights.append(torch.cat([parameter.detach().flatten() for parameter in run.model.parameters()]))
    assert torch.equal(*weights)
    assert callback.result.suggestion is not None
    run = Run(tmp_path, SCHEDULE, SCHEDULE.total_steps, callback=True)
    run.trainer.add_callback(RangeTestCallback(stop=True, max_lr=1e3, num_steps=30))
    run.train()
    assert run.trainer.state.global_step <= 1


def test_a_parameter_group_that_is_added_is_in_the_checkpoints():
    optimizer, f = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.5), ec.linear(10, 0.5)
    callback, scheduler = ScheduleCallback(f), SimpleNamespace(_last_lr=None)
    state = SimpleNamespace(max_steps=10, global_step=0, stateful_callbacks={})
    callback.on_train_begin(None, state, None, optimizer=optimizer)
    for step in range(4):
        state.global_step = step
        if step == 2:
            optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))], "lr": f(1) / 4})
        callback.on_pre_optimizer_step(None, state, None, lr_scheduler=scheduler)
    assert scheduler._last_lr == [f(3), f(3) / 4]
    again = ScheduleCallback(f)
    fresh = torch.optim.SGD([{"params": [nn.Parameter(torch.ones(2))]}, {"params": [nn.Parameter(torch.ones(1))]}], 0.5)
    again.on_train_begin(None, state, None, optimizer=fresh)
    assert [group["lr"] for group in fresh.param_groups] == [f(3), f(3) / 4]
