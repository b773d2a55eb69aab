import random

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve.adapters.range_test import RangeTest, range_test
from eigencurve.adapters.torch import ScheduleLR


class Net(nn.Module):
    """Dropout, batch statistics and an unused parameter."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(16, 3)
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.head(self.body(x))


def data(num=96):
    source = torch.Generator().manual_seed(1)
    x = torch.randn(num, 6, generator=source)
    return torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long())


def loader(**options):
    return torch.utils.data.DataLoader(data(), batch_size=16, shuffle=True, **options)


OPTIMIZERS = {
    "sgd": lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True),
    "adamw": lambda groups: torch.optim.AdamW(groups, lr=1e-3, weight_decay=0.1),
    "adamw, rate in a tensor": lambda groups: torch.optim.AdamW(groups, lr=torch.tensor(1e-3), foreach=False),
    "adagrad": lambda groups: torch.optim.Adagrad(groups, lr=0.01),
}


def make(name, warm=3):
    torch.manual_seed(0)
    model = Net()
    groups = [{"params": model.body.parameters()}, {"params": [*model.head.parameters(), model.unused]}]
    optimizer = OPTIMIZERS[name](groups)
    for x, y in list(loader())[:warm]:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model, optimizer


def everything(model, optimizer):
    """All that a test could change, as plain values."""
    tensors = {f"model {k}": v.clone() for k, v in model.state_dict().items()}
    tensors |= {f"grad {k}": v.grad.clone() for k, v in model.named_parameters() if v.grad is not None}
    state = optimizer.state_dict()
    tensors |= {f"{i} {k}": torch.as_tensor(v).clone() for i, s in state["state"].items() for k, v in s.items()}
    groups = [{k: torch.as_tensor(v).tolist() if k == "lr" else v for k, v in g.items()} for g in state["param_groups"]]
    randoms = (torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist())
    flags = [module.training for module in model.modules()]
    return tensors, (groups, randoms, flags)


def unchanged(before, after):
    assert before[1] == after[1]
    assert before[0].keys() == after[0].keys()
    for name, value in before[0].items():
        assert torch.equal(value, after[0][name]), name


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("warm", [0, 3])
def test_everything_is_left_as_it_was_bit_for_bit(name, warm):
    model, optimizer = make(name, warm)
    model.body.eval()
    rate = optimizer.param_groups[0]["lr"]
    before = everything(model, optimizer)
    own = torch.Generator().manual_seed(5)
    drawn = own.get_state()
    test = range_test(model, F.cross_entropy, loader(generator=own), optimizer, max_lr=1e3, num_steps=40)
    unchanged(before, everything(model, optimizer))
    assert torch.equal(own.get_state(), drawn)
    assert optimizer.param_groups[0]["lr"] is rate or not isinstance(rate, torch.Tensor)
    assert test.suggestion is not None


def test_training_goes_on_as_if_nothing_had_happened():
    losses = []
    for tested in (False, True):
        model, optimizer = make("adamw")
        scheduler = ScheduleLR(optimizer, ec.cosine(6, 1e-3))
        if tested:
            range_test(model, F.cross_entropy, loader(), optimizer, max_lr=1e3, num_steps=30)
        torch.manual_seed(7)
        losses.append([])
        for x, y in loader():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses[-1].append(loss.item())
    assert losses[0] == losses[1]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_everything_is_restored_after_an_exception(error):
    model, optimizer = make("sgd")
    before, calls = everything(model, optimizer), []

    def failing(outputs, y):
        calls.append(1)
        if len(calls) == 5:
            raise error("stop")
        return F.cross_entropy(outputs, y)

    with pytest.raises(error, match="stop"):
        range_test(model, failing, loader(), optimizer)
    unchanged(before, everything(model, optimizer))


def test_groups_keep_their_ratios():
    model, optimizer = make("sgd")
    optimizer.param_groups[1]["lr"] = 0.02
    seen = []
    optimizer.register_step_pre_hook(lambda o, *_: seen.append([g["lr"] for g in o.param_groups]))
    test = range_test(model, F.cross_entropy, loader(), optimizer, max_lr=1e3, num_steps=20)
    np.testing.assert_allclose([rates[0] for rates in seen], test.rates[: len(seen)])
    np.testing.assert_allclose([rates[1] / rates[0] for rates in seen], 0.2)


def test_a_quadratic_diverges_at_two_over_its_largest_eigenvalue():
    """Gradient descent on a quadratic diverges at 2/L; the loss needs some steps to rise above the initial one."""
    L = 40.0

    class Quadratic(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2, dtype=torch.float64))

        def forward(self, curvature):
            return 0.5 * (curvature * self.weight**2).sum()

    model = Quadratic()
    batch = (torch.tensor([1.0, L], dtype=torch.float64), torch.zeros(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    test = range_test(model, lambda loss, _: loss, [batch], optimizer, min_lr=1e-5, max_lr=10.0, num_steps=400)
    assert test.diverged_at > 2 / L
    assert test.suggestion <= test.tenth < 2 / L
    assert model.weight.tolist() == [1.0, 1.0]


def test_a_range_that_ends_too_early_is_reported():
    model, optimizer = make("sgd")
    with pytest.warns(UserWarning, match=r"the loss did not rise up to max_lr=0.001. Pass max_lr=0.01"):
        range_test(model, F.cross_entropy, loader(), optimizer, max_lr=1e-3, num_steps=20)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"min_lr": 0.0}, "range_test: 'min_lr' must be > 0"),
        ({"max_lr": 1e-9}, "range_test: 'max_lr' must be > min_lr = 1e-06"),
        ({"num_steps": 1}, "range_test: 'num_steps' must be >= 2"),
        ({"stop_factor": 1.0}, "range_test: 'stop_factor' must be > 1"),
        ({"loader": []}, "range_test: 'loader' must be batches that can be read repeatedly"),
    ],
)
def test_refuses_bad_settings(settings, match):
    model, optimizer = make("sgd", warm=0)
    batches = settings.pop("loader", None)
    with pytest.raises(ValueError, match=match):
        range_test(model, F.cross_entropy, loader() if batches is None else batches, optimizer, **settings)
    with pytest.raises(TypeError, match=r"'optimizer' must be a torch.optim.Optimizer"):
        range_test(model, F.cross_entropy, loader(), None)


# ---- The result


RATES = np.geomspace(1e-5, 10, 121)


def curve(rates=RATES):
    """A loss that falls fastest at 1e-2 and rises from 1 on, with a little noise."""
    falls = 2.3 - 1.0 / (1 + (1e-2 / rates) ** 1.5)
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(rates))
    return falls + np.where(rates > 0.5, (rates / 0.5) ** 2 - 1, 0.0) + noise


def test_the_steepest_descent_and_the_divergence_are_found():
    test = RangeTest(RATES, curve())
    # A grid of 20 rates per decade, smoothed over a few of them.
    assert test.steepest == pytest.approx(1e-2, rel=0.5)
    assert 0.5 < test.diverged_at < 1.5
    assert test.tenth == test.diverged_at / 10
    assert test.suggestion == min(test.steepest, test.tenth)


def test_an_infinite_loss_is_a_divergence():
    losses = np.where(RATES > 0.3, np.nan, curve())
    test = RangeTest(RATES, losses)
    assert test.diverged_at == RATES[RATES > 0.3][0]
    assert len(test.smoothed) == (RATES <= 0.3).sum()
    assert RangeTest(RATES[:3], [np.inf] * 3).suggestion == pytest.approx(RATES[0] / 10)


def test_without_a_rise_there_is_no_divergence_and_without_a_fall_no_descent():
    calm = RATES < 0.1
    test = RangeTest(RATES[calm], curve()[calm])
    assert test.diverged_at is None
    assert test.suggestion == test.steepest
    assert RangeTest(RATES[calm], curve()[calm], stopped=True).diverged_at == RATES[calm][-1]
    rising = RangeTest([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert rising.steepest is None
    assert "steepest descent of the loss   not found" in repr(rising)
    flat = RangeTest(RATES, 2.3 + 0.1 * np.random.default_rng(1).standard_normal(len(RATES)))
    assert flat.diverged_at is None
    assert flat.noise == pytest.approx(0.1, rel=0.3)  # 121 numbers, less what the kernel follows


def test_it_is_readable_and_read_only():
    test = RangeTest(RATES, curve())
    assert f"{test.suggestion:.3g}" in repr(test)
    with pytest.raises(ValueError, match="read-only"):
        test.losses[0] = 0.0


@pytest.mark.parametrize(("rates", "losses"), [([1.0, 1.0], [1, 2]), ([0.0, 1.0], [1, 2]), ([1.0, 2.0], [1])])
def test_refuses_bad_curves(rates, losses):
    with pytest.raises(ValueError, match="increasing rates > 0 with one loss each"):
        RangeTest(rates, losses)
