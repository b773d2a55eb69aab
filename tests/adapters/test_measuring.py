"""The schedule of a measured run, apart from any trainer."""

import json
import math

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import eigencurve as ec
from eigencurve.adapters.measuring import MeasuredPlan, Measurement, draw_batches
from eigencurve.hessian import HessianOperator, estimate_spectrum

SPECTRUM = ec.Spectrum([0.01, 0.1, 1.0], [6, 3, 1])
MEASUREMENT = Measurement(lr=0.2, weight_decay=1e-2, at_epoch=1, warmup_steps=3, num_products=5, settle=None)


def data(num=24):
    source = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(num, 4, generator=source), torch.randint(0, 3, (num,), generator=source))


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def test_the_rate_rises_waits_and_then_follows_the_curve():
    before, after = MEASUREMENT.before(20), MEASUREMENT.after(SPECTRUM, step=8, total_steps=20)
    assert before.total_steps == after.total_steps == 20
    assert [after(t) for t in range(8)] == [before(t) for t in range(8)]
    assert before(3) == before(19) == 0.2
    curve = ec.eigencurve(ec.spectrum.prepare(SPECTRUM, 1e-2), 12, 0.2)
    assert [after(t) for t in range(8, 20)] == curve.values().tolist()


def test_a_measurement_during_the_warmup_starts_the_curve_after_it():
    schedule = MEASUREMENT.after(SPECTRUM, step=1, total_steps=20)
    assert schedule == ec.warmup(ec.eigencurve(ec.spectrum.prepare(SPECTRUM, 1e-2), 17, 0.2), 3)


@pytest.mark.filterwarnings("ignore:Measurement. The spectrum has not settled:UserWarning")
def test_a_plan_measures_once_and_restores_from_plain_numbers():
    torch.manual_seed(0)
    model, loader = nn.Linear(4, 3), DataLoader(data(), batch_size=8)
    plan, again = MeasuredPlan(loss, MEASUREMENT), MeasuredPlan(loss, MEASUREMENT)
    assert [plan.due(epoch, 3) for epoch in (0, 1, 2)] == [False, True, True]
    assert plan.state_dict() == {}
    assert plan.schedule(20) == MEASUREMENT.before(20)
    plan.measure(model, loader, step=8, total_steps=20)
    assert not plan.due(2, 3)
    again.load_state_dict(json.loads(json.dumps(plan.state_dict())))
    assert again.schedule(20) == plan.schedule(20) == MEASUREMENT.after(plan.estimate.spectrum, 8, 20)
    assert again.estimate is None
    again.load_state_dict({})
    assert not again.due(2, 3)


def test_the_measurement_is_that_of_the_drawn_batches():
    torch.manual_seed(0)
    model, loader = nn.Linear(4, 3), DataLoader(data(), batch_size=8, shuffle=True)
    measured = MEASUREMENT.measure(model, loss, loader, total_steps=20)
    operator = HessianOperator.from_objective(model, loss, draw_batches(loader, 4, 0, model))
    wanted = estimate_spectrum(operator, 5, settle=None, weight_decay=1e-2, total_steps=20)
    assert measured.spectrum == wanted.spectrum


def test_drawn_batches_are_examples_of_the_set_and_disturb_no_random_state():
    loader, model = DataLoader(data(), batch_size=5, shuffle=True), nn.Linear(4, 3)
    before = torch.get_rng_state()
    first, second = (draw_batches(loader, 3, 7, model) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert [len(x) for x, _ in first] == [5, 5, 5]
    rows = torch.cat([x for x, _ in first])
    assert torch.equal(rows, torch.cat([x for x, _ in second]))
    assert all((row == data().tensors[0]).all(dim=1).any() for row in rows)
    assert len(rows.unique(dim=0)) == 15
    with pytest.raises(ValueError, match="Pass 'batches' to measure on"):
        draw_batches([1, 2], 3, 7, model)


@pytest.mark.parametrize(("num_epochs", "epoch"), [(1, 0), (2, 1), (9, 1), (10, 1), (11, 2), (100, 10), (0, 0)])
def test_the_default_epoch_is_the_first_after_a_tenth(num_epochs, epoch):
    plan = MeasuredPlan(loss, Measurement(lr=0.2, weight_decay=1e-2))
    assert plan.due(epoch, num_epochs)
    assert epoch == 0 or not plan.due(epoch - 1, num_epochs)
    assert MEASUREMENT.epoch(num_epochs) == 1


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"lr": 0.0}, "Measurement: 'lr' must be > 0"),
        ({"weight_decay": 0.0}, "Measurement: 'weight_decay' must be > 0"),
        ({"at_epoch": -1}, "Measurement: 'at_epoch' must be >= 0"),
        ({"num_batches": 0}, "Measurement: 'num_batches' must be >= 1"),
        ({"num_products": 0}, "'num_products' must be >= 1"),
        ({"settle": -1.0}, "'settle' must be > 0"),
    ],
)
def test_bad_measurements_are_refused_when_they_are_made(bad, match):
    with pytest.raises(ValueError, match=match):
        Measurement(**{"lr": 0.1, "weight_decay": 1e-2, **bad})


def test_runs_without_room_for_the_curve_are_refused():
    with pytest.raises(ValueError, match="'warmup_steps' must be fewer than the 3 steps of the run"):
        MEASUREMENT.before(3)
    with pytest.raises(ValueError, match="'at_epoch' must be before the last step"):
        MEASUREMENT.after(SPECTRUM, step=20, total_steps=20)


def test_an_estimate_that_has_not_settled_is_a_warning():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 30), nn.Tanh(), nn.Linear(30, 3))
    plan = MeasuredPlan(loss, Measurement(lr=0.2, weight_decay=1e-2, num_products=5))
    with pytest.warns(UserWarning, match=r"Measurement: The spectrum has not settled .* Pass a larger 'num_products'"):
        plan.measure(model, DataLoader(data(), batch_size=8), step=0, total_steps=20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": 2.5}, "'step' must be an integer, got 2.5"), ({"step": -1}, "'step' must be >= 0"),
        ({"eigenvalues": [math.nan, 1.0]}, "finite"), ({"weights": None}, "weights"),
    ],
)  # fmt: skip
def test_a_damaged_state_is_refused_and_changes_nothing(change, message):
    plan = MeasuredPlan(loss, MEASUREMENT)
    plan.load_state_dict({"step": 3, "eigenvalues": [1.0, 2.0], "weights": [1.0, 1.0], "dim": 8})
    before = plan.state_dict()
    with pytest.raises((ValueError, TypeError), match=message):
        plan.load_state_dict({**before, **change})
    with pytest.raises(ValueError, match=r"the state of a MeasuredPlan, got .one without \['step'\]"):
        plan.load_state_dict({name: value for name, value in before.items() if name != "step"})
    assert plan.state_dict() == before
