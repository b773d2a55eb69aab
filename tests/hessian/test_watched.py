"""What a kept graph depends on is compared before each product."""

import math
from types import SimpleNamespace

import pytest
import torch
from tests.hessian.models import problem
from torch import nn
from torch.nn import functional as F

from eigencurve.hessian.watched import LARGEST_CONTAINER, Change, Snapshot

SCALE = [1.0]
FACTOR = 2.0


class User(nn.Module):
    """A module of a user: a number, a tensor that is no buffer, and a global variable in its forward."""

    def __init__(self):
        super().__init__()
        self.inner, self.power, self.mask = nn.Linear(2, 2), 2.0, torch.ones(2)
        self.layers_in_a_list = [nn.Linear(2, 2)]

    def forward(self, x):
        return FACTOR * self.layers_in_a_list[0](self.inner(x) ** self.power) * self.mask


def snapshot(model, batch=(), objective=(), **settings):
    return Snapshot(model, batch, objective, **{"with_training": True, **settings})


def negative_zero(model):
    model[0].weight.data[0, 0] = -0.0


VALUES = {
    "data": lambda m: m[0].weight.data.mul_(1 + 1e-15),
    "two entries": lambda m: m[0].weight.data.copy_(m[0].weight.data.flip(0)),
    "negative zero": negative_zero,
    "a frozen parameter": lambda m: m[2].bias.data.add_(1),
    "a buffer": lambda m: m[1].running_mean.add_(1),
    "a place": lambda m: setattr(m[0].weight, "data", m[0].weight.data.clone()),
    "a last bit": lambda m: m[0].weight.data.view(torch.int64)[0, 1].bitwise_xor_(1),
}
SETTINGS = {
    "training": lambda m: m[1].eval(),
    "eps": lambda m: setattr(m[1], "eps", 0.1),
    "a layer": lambda m: m.__setitem__(3, nn.ReLU()),
    "a hook": lambda m: m[0].register_forward_hook(lambda *_: None),
    "a gradient hook": lambda m: m[0].weight.register_hook(lambda g: g),
    "requires_grad": lambda m: m[2].requires_grad_(True),
    "a parametrisation": lambda m: nn.utils.parametrizations.orthogonal(m[0]),
    "a new layer": lambda m: m.append(nn.Identity()),
}


KINDS = {Change.VALUES: VALUES, Change.SETTINGS: SETTINGS}


def network():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2), nn.Tanh()).double()
    model[0].weight.data[0, 0] = 0.0
    model[2].requires_grad_(False)
    return model


def require_noticed(before, change, *kinds):
    assert before.change() is Change.NOTHING
    change()
    assert before.change() in (kinds or (Change.VALUES, Change.SETTINGS))


@pytest.mark.parametrize(
    ("change", "kind"),
    [(change, kind) for kind, changes in KINDS.items() for change in changes.values()],
    ids=[*VALUES, *SETTINGS],
)
def test_every_change_is_noticed(change, kind):
    model = network()
    require_noticed(snapshot(model), lambda: change(model), kind)


def test_nan_is_equal_to_itself():
    model = network()
    model[0].weight.data.fill_(math.nan)
    model[1].momentum = math.nan
    assert snapshot(model).change() is Change.NOTHING


def test_the_fields_and_global_variables_of_users_modules_count(monkeypatch):
    for change in (
        lambda m: setattr(m, "power", 3.0),
        lambda m: m.mask.mul_(2),
        lambda m: m.layers_in_a_list[0].bias.data.add_(1),
        lambda _: monkeypatch.setitem(globals(), "FACTOR", 3.0),
    ):
        model = User()
        require_noticed(snapshot(model), lambda change=change, model=model: change(model))


def test_closures_defaults_and_global_variables_of_the_objective_count():
    scale, loss = [1.0], nn.CrossEntropyLoss(label_smoothing=0.1)
    weight = torch.ones(2)

    def closed(z, y, power=[1.0]):  # noqa: B006 -- a default that changes
        return SCALE[0] * scale[0] * power[0] * (weight * z).sum() * loss(z, y)

    for change in (
        lambda: scale.__setitem__(0, 2.0),
        lambda: SCALE.__setitem__(0, 3.0),
        lambda: closed.__defaults__[0].__setitem__(0, 2.0),
        lambda: weight.mul_(2),
        lambda: setattr(loss, "label_smoothing", 0.2),
    ):
        require_noticed(snapshot(nn.Identity(), objective=(closed,)), change)


def test_examples_count_in_every_structure():
    x, y = torch.ones(3, 2), torch.ones(3)
    batch = [{"x": x, "more": (y, [4])}]
    require_noticed(snapshot(nn.Identity(), batch), lambda: y.add_(1), Change.VALUES)
    require_noticed(snapshot(nn.Identity(), batch), lambda: batch.append({}), Change.SETTINGS)


def test_training_flags_and_values_count_only_if_asked():
    model = network()
    before = snapshot(model, with_training=False, with_values=False)
    model.eval()
    model[0].weight.data.add_(1)
    assert before.change() is Change.NOTHING


def test_large_containers_and_foreign_objects_count_by_identity():
    class Foreign:
        def __init__(self):
            self.number, self.inner = 1, {"a": 1}

    foreign, many = SimpleNamespace(inner=Foreign()), list(range(LARGEST_CONTAINER + 1))

    def loss():
        return foreign, many

    before = snapshot(nn.Identity(), objective=(loss,))
    many[0], foreign.inner.inner["a"] = 5, 2  # not seen; each estimate starts with a new graph
    assert before.change() is Change.NOTHING
    foreign.inner.number = 2
    assert before.change() is Change.SETTINGS


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.bfloat16, torch.complex64, torch.complex128])
def test_tensors_of_every_type_are_compared(dtype):
    model = nn.Module()
    model.register_buffer("values", torch.zeros(3, 4).to(dtype).T)
    require_noticed(snapshot(model), lambda: model.values.data[0, 0].fill_(1), Change.VALUES)


def test_a_forward_pass_changes_nothing():
    for kind in ("mlp", "conv", "lstm", "attention"):
        model, _, (x, y) = problem(kind)
        before = snapshot(model.eval(), (x, y), (F.cross_entropy,))
        F.cross_entropy(model(x), y).backward()
        assert before.change() is Change.NOTHING


def test_the_fields_of_a_trainer_count():
    class Inner:
        number, many = 1, None

    class Trainer:
        def __init__(self):
            self.factor, self.loss, self.inner = [1.0], nn.CrossEntropyLoss(), Inner()
            self.inner.many = [1.0]

        def objective(self, z, y):
            return self.factor[0] * self.loss(z, y)

    trainer = Trainer()
    for change in (
        lambda: trainer.factor.__setitem__(0, 2.0),
        lambda: setattr(trainer.loss, "weight", torch.ones(2)),
        lambda: setattr(trainer.inner, "number", 2),
    ):
        require_noticed(snapshot(nn.Identity(), objective=(trainer.objective,)), change)
