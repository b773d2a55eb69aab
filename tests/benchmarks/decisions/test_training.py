import numpy as np
import pytest
import torch
from benchmarks.decisions.tasks import TASKS
from benchmarks.decisions.training import AVERAGES, NUM_VALIDATIONS, train_together

import eigencurve as ec
from benchmarks.decisions import training

from .toy import toy_task

T = 128
SCHEDULES = [
    ec.constant(T, 0.05), ec.constant(T // 2, 0.05), ec.wsd(T, 0.05, decay=0.5), ec.wsd(T, 0.05, decay=0.25),
    ec.cosine(T, 0.05), ec.constant(T, 0.05), ec.linear(T // 2, 0.1),
]  # fmt: skip
CURVES = [np.array(schedule.values()) for schedule in SCHEDULES]


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon"])
def test_shared_beginnings_change_no_run(optimizer):
    task = toy_task(optimizer, momentum=0.9 if optimizer == "sgd" else 0.0, max_norm=1.0)
    together = dict(train_together(task, 0, CURVES))
    assert sorted(together) == list(range(len(CURVES)))
    for place, curve in enumerate(CURVES):
        ((_, alone),) = train_together(task, 0, [curve])
        assert np.array_equal(together[place].train, alone.train)
        assert np.array_equal(together[place].valid, alone.valid)
        assert together[place].final_valid == alone.final_valid
        assert np.array_equal(together[place].averaged_valid, alone.averaged_valid)


def test_no_step_is_taken_twice(monkeypatch):
    steps = []
    take = training._step
    monkeypatch.setattr(training, "_step", lambda *args: (steps.append(1), take(*args)))
    list(train_together(toy_task(), 0, CURVES))
    shared = T + (T // 2 - 1) + (T // 4 - 1) + (T - 1) + T // 2  # the trunk, and what each branch adds
    assert len(steps) == pytest.approx(shared, abs=4)  # a decay's first rate may still be the trunk's


def test_a_plain_loop_gives_the_same_losses():
    task = toy_task("sgd", momentum=0.9, nesterov=True)
    ((_, outcome),) = train_together(task, 3, [CURVES[4]])
    model, generator = task.new_model(3), torch.Generator().manual_seed(1_000_003 + 3)
    optimizer = torch.optim.SGD(model.parameters(), 1.0, momentum=0.9, nesterov=True, weight_decay=0.01)
    losses = []
    for rate in CURVES[4]:
        optimizer.param_groups[0]["lr"] = float(rate)
        x, y = task.data.batch(4, generator)
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.array_equal(outcome.train, losses)


def test_averages_follow_their_formula():
    task = toy_task("sgd")
    ((_, outcome),) = train_together(task, 0, [CURVES[0]])
    run = training.start(task, 0)
    averages = [None] * len(AVERAGES)
    for step, rate in enumerate(CURVES[0]):
        training.advance(run, np.array([rate]))
        weights = torch.nn.utils.parameters_to_vector(run.model.parameters()).detach()
        for place, share in enumerate(AVERAGES):
            part = max(1 / (share * T), 1 / (step + 1))
            averages[place] = weights if step == 0 else averages[place] + part * (weights - averages[place])
    model = task.new_model(0)
    for place, average in enumerate(averages):
        torch.nn.utils.vector_to_parameters(average, model.parameters())
        assert training.valid_loss(task, model) == pytest.approx(outcome.averaged_valid[place], rel=1e-5)  # float32


def test_a_divergence_ends_the_run_but_not_the_others():
    together = dict(train_together(toy_task("sgd"), 0, [np.full(T, 1e3), CURVES[0]]))
    assert np.isnan(together[0].final_valid)
    assert np.isnan(together[0].train[-1])
    assert np.isfinite(together[1].final_valid)


def test_the_tasks_are_as_described():
    roles = [task.role for task in TASKS.values()]
    assert roles.count("shaping") == 4
    assert roles.count("reported") >= 4
    for task in TASKS.values():
        assert task.total_steps % (2 * NUM_VALIDATIONS) == 0
        assert np.allclose(np.diff(np.log2(task.rates)), 1)
        assert len(task.rates) == 7
