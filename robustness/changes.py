"""An operator, an estimate and a scheduler, each used again after a change: the answer is a new one's, or a refusal."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import pickle
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from robustness.counts import Counts
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import prune

import eigencurve as ec
from eigencurve.adapters.torch import ScheduleLR
from eigencurve.hessian import GaussNewtonOperator, HessianOperator, estimate_spectrum

# Relative difference between two products that counts as wrong; those of finite differences have an error of 1e-7.
TOLERANCE = 1e-5
LONGEST_MESSAGE = 600
GLOBAL = [1.0]
STEPS = 50


class Scaled(nn.Module):
    """A layer with a number, a tensor that is no buffer, a list, and a frozen parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.mask, self.powers = 1.0, torch.ones(6), [1.0]
        self.register_buffer("shift", torch.zeros(6))
        self.frozen = nn.Parameter(torch.ones(6), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Scale, shift and mask, in other words what a change of any of them changes."""
        return self.scale * self.powers[0] * GLOBAL[0] * self.mask * self.frozen * (x + self.shift)


class Place:
    """A model with its loss and examples, always the same at first."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        GLOBAL[0] = 1.0
        first, second = nn.Linear(4, 6), nn.Linear(6, 6)
        self.model = nn.Sequential(
            first, nn.BatchNorm1d(6), nn.Tanh(), Scaled(), second, nn.Dropout(0.0), nn.Tanh(), nn.Linear(6, 6)
        ).double()
        self.x, self.y = torch.randn(24, 4, dtype=torch.float64), torch.arange(24) % 3
        self.pairs = [(self.x, self.y)]
        self.cross_entropy, self.factor = nn.CrossEntropyLoss(label_smoothing=0.1), [1.0]
        self.loss = lambda z, y: self.factor[0] * self.cross_entropy(z, y)
        self.optimizer = torch.optim.AdamW([p for p in self.model.parameters() if p.requires_grad], 0.05, fused=True)
        self.model(self.x)
        self.model.eval()

    def train(self, optimizer: torch.optim.Optimizer, num_steps: int = 3) -> None:
        """Some steps of an optimizer, in train mode."""
        self.model.train()
        for _ in range(num_steps):
            optimizer.zero_grad()
            F.cross_entropy(self.model(self.x), self.y).backward()
            optimizer.step()
        self.model.eval()


Change = Callable[[Place], Any]


def _set(path: str, value: Any) -> Change:
    """The change that sets a field of the model, such as ``"1.eps"``."""
    module, _, name = path.rpartition(".")
    return lambda p: setattr(p.model.get_submodule(module), name, value)


def _item(name: str, key: Any, value: Any) -> Change:
    return lambda p: getattr(p, name).__setitem__(key, value)


def _flip(p: Place) -> None:
    p.model[0].weight.data[0, 0] *= -1


def _half(p: Place) -> None:
    p.model[0].weight.data.copy_(p.model[0].weight.data.flip(0))


def _other_weights(p: Place) -> None:
    p.model.load_state_dict({k: v * 1.5 if v.is_floating_point() else v for k, v in p.model.state_dict().items()})


def _assigned_weights(p: Place) -> None:
    p.model.load_state_dict({k: v.clone() for k, v in p.model.state_dict().items()}, assign=True)


def _pruned(p: Place) -> None:
    prune.l1_unstructured(p.model[0], "weight", 0.5)


def _under_no_grad(p: Place) -> None:
    with torch.no_grad():
        p.model[0].bias += 0.5


def _vector_to_parameters(p: Place) -> None:
    weights = nn.utils.parameters_to_vector(p.model.parameters())
    nn.utils.vector_to_parameters(weights * 1.2, p.model.parameters())


def operator_changes() -> dict[str, Change]:
    """Changes of a model, its examples or its loss by name."""
    train = {
        "fused AdamW": lambda p: p.train(p.optimizer),
        "fused SGD": lambda p: p.train(torch.optim.SGD(p.model.parameters(), 0.1, fused=True)),
        "SGD": lambda p: p.train(torch.optim.SGD(p.model.parameters(), 0.1)),
        "foreach Adam": lambda p: p.train(torch.optim.Adam(p.model.parameters(), 0.01, foreach=True)),
        "a forward pass in train mode": lambda p: (p.model.train(), p.model(2 * p.x), p.model.eval()),
    }
    values = {
        "a write to data": lambda p: p.model[0].weight.data.mul_(1.3),
        "one sign": _flip,
        "rows in another order": _half,
        "a write without gradient": _under_no_grad,
        "data replaced": lambda p: setattr(p.model[0].weight, "data", p.model[0].weight.data * 2),
        "a write through NumPy": lambda p: p.model[0].weight.detach().numpy().__imul__(1.2),
        "all parameters from a vector": _vector_to_parameters,
        "load_state_dict": _other_weights,
        "load_state_dict, assigned": _assigned_weights,
        "the running variance": lambda p: p.model[1].running_var.mul_(3),
        "a buffer": lambda p: p.model[3].shift.add_(0.3),
        "a buffer replaced": lambda p: setattr(p.model[3], "shift", torch.full((6,), 0.2).double()),
        "a buffer's data": lambda p: p.model[3].shift.data.add_(0.3),
        "a frozen parameter": lambda p: p.model[3].frozen.data.mul_(2),
        "a tensor that is no buffer": lambda p: p.model[3].mask.mul_(2),
        "gradients": lambda p: F.cross_entropy(p.model(p.x), p.y).backward(),
    }
    settings = {
        "train()": lambda p: p.model.train(),
        "one layer in train mode": lambda p: p.model[1].train(),
        "the probability of a dropout": lambda p: (setattr(p.model[5], "p", 0.5), p.model[5].train()),
        "eps of batch norm": _set("1.eps", 0.5),
        "a number of a layer": _set("3.scale", 2.0),
        "a list of a layer": lambda p: p.model[3].powers.__setitem__(0, 2.0),
        "a global variable": lambda _: GLOBAL.__setitem__(0, 2.0),
        "another activation": lambda p: p.model.__setitem__(2, nn.Softplus()),
        "a replaced layer": lambda p: p.model.__setitem__(0, nn.Linear(4, 6).double()),
        "a new layer": lambda p: p.model.append(nn.Linear(6, 6).double()),
        "a removed layer": lambda p: p.model.__delitem__(7),
        "a replaced parameter": lambda p: setattr(p.model[0], "weight", nn.Parameter(p.model[0].weight.detach() * 2)),
        "tied weights": lambda p: setattr(p.model[7], "weight", p.model[4].weight),
        "a frozen layer": lambda p: p.model[0].requires_grad_(False),
        "a thawed parameter": lambda p: p.model[3].frozen.requires_grad_(True),
        "float()": lambda p: (p.model.float(), setattr(p.x, "data", p.x.data.float())),
        "a forward hook": lambda p: p.model[2].register_forward_hook(lambda _m, _i, out: 2 * out),
        "a forward pre-hook": lambda p: p.model[2].register_forward_pre_hook(lambda _m, args: (2 * args[0],)),
        "a gradient hook": lambda p: p.model[0].weight.register_hook(lambda g: 2 * g),
        "a backward hook": lambda p: p.model[2].register_full_backward_hook(lambda _m, g, _o: (2 * g[0],)),
        "a parametrisation": lambda p: nn.utils.parametrizations.orthogonal(p.model[4]),
        "weight norm": lambda p: nn.utils.parametrizations.weight_norm(p.model[4]),
        "pruning": _pruned,
        "a replaced forward": lambda p: setattr(p.model[2], "forward", torch.sin),
    }
    problem = {
        "examples": lambda p: p.x.mul_(2),
        "examples through data": lambda p: p.x.data.add_(1),
        "labels": lambda p: p.y.copy_(p.y.flip(0).roll(1)),
        "another batch": lambda p: p.pairs.__setitem__(0, (p.x.flip(1), p.y)),
        "one more batch": lambda p: p.pairs.append((2 * p.x, p.y)),
        "fewer examples": lambda p: p.pairs.__setitem__(0, (p.x[:12], p.y[:12])),
        "the scale of the loss": _item("factor", 0, 3.0),
        "label smoothing": lambda p: setattr(p.cross_entropy, "label_smoothing", 0.4),
        "class weights": lambda p: setattr(p.cross_entropy, "weight", torch.tensor([1.0, 4, 1, 1, 1, 1]).double()),
    }
    return {**train, **values, **settings, **problem}


def operators() -> dict[str, Callable[[Place], Any]]:
    """Operators that keep a graph, that keep none, and in the metric of an optimizer."""

    def made(kind: Any, p: Place, **options: Any) -> Any:
        return kind(p.model, p.loss, p.pairs, mode="keep", **options)

    def in_metric(p: Place) -> Any:
        if not p.optimizer.state:
            p.train(p.optimizer)
        return made(HessianOperator, p).preconditioned_by(p.optimizer)

    return {
        "HessianOperator": partial(made, HessianOperator),
        "GaussNewtonOperator": partial(made, GaussNewtonOperator),
        "microbatches": partial(made, HessianOperator, microbatch=9),
        "finite differences": partial(made, HessianOperator, product="finite_difference"),
        "preconditioned": in_metric,
    }


def _product(operator: Any) -> Tensor:
    vector = torch.randn(operator.dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return operator(vector.to(operator.dtype))


def _spectrum(operator: Any) -> Tensor:
    estimate = estimate_spectrum(operator, 8, settle=None, progress=False)
    return torch.tensor(np.concatenate([*estimate.alphas, *estimate.betas]))


def _compare(counts: Counts, name: str, kept: Callable[[], Tensor], new: Callable[[], Tensor]) -> None:
    """Count one case: a kept object may refuse in one clear line, or must answer like a new one."""
    counts.cases += 1
    try:
        found = kept()
    except (ValueError, TypeError) as error:
        if is_clear(str(error)):
            counts.survived += 1
        else:
            counts.faults[f"{name}: {str(error)[:120]!r}"] += 1
        return
    except Exception as error:
        counts.faults[f"{name}: {type(error).__name__}: {str(error)[:120]}"] += 1
        return
    try:
        expected = new()
    except (ValueError, TypeError) as error:
        counts.wrong_values += 1
        counts.notes.append(f"{name}: an answer, but a new one refuses: {str(error)[:120]}")
        return
    far = found.shape != expected.shape or not (found - expected).norm() <= TOLERANCE * expected.norm()
    counts.wrong_values += far
    counts.survived += not far
    if far:
        counts.notes.append(f"{name}: wrong")


def is_clear(message: str) -> bool:
    """Whether a message is one line that names an argument and what it must be."""
    return "\n" not in message and "' must be " in message and len(message) < LONGEST_MESSAGE


def attack_operators(small: bool) -> Counts:
    """Change what each operator depends on, between two products and between two estimates."""
    counts = Counts("changed: operators")
    for use in (_product,) if small else (_product, _spectrum):
        for kind, make in list(operators().items())[:: 3 if small else 1]:
            for name, change in operator_changes().items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    here, there = Place(), Place()
                    operator = make(here)
                    use(operator)
                    if kind == "preconditioned":
                        make(there)
                    change(here), change(there)
                    _compare(counts, f"{kind}, {name}", partial(use, operator), lambda: use(make(there)))  # noqa: B023
    return counts


def attack_estimates(folder: Path) -> Counts:
    """Change something between a checkpoint and its continuation; a refusal is the only right answer."""
    counts = Counts("changed: checkpoints")
    unchanged = ("gradients", "load_state_dict, assigned")
    for number, (name, change) in enumerate(operator_changes().items()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            place, path = Place(), folder / f"{number}.npz"
            make = operators()["HessianOperator"]
            run = partial(estimate_spectrum, settle=None, checkpoint=path, progress=False)
            run(make(place), 8)
            change(place)
            _require_refusal(counts, name, lambda: run(make(place), 16), name in unchanged)  # noqa: B023
    return counts


def _require_refusal(counts: Counts, name: str, call: Callable[[], Any], may_continue: bool) -> None:
    counts.cases += 1
    try:
        call()
    except (ValueError, TypeError) as error:
        counts.survived += is_clear(str(error))
        if not is_clear(str(error)):
            counts.faults[f"{name}: {str(error)[:120]!r}"] += 1
    except Exception as error:
        counts.faults[f"{name}: {type(error).__name__}: {str(error)[:120]}"] += 1
    else:
        counts.survived += may_continue
        counts.wrong_values += not may_continue
        if not may_continue:
            counts.notes.append(f"{name}: continued")


class Training:
    """Two groups of parameters and a scheduler after three steps."""

    def __init__(self) -> None:
        weights = [nn.Parameter(torch.zeros(2)) for _ in range(2)]
        groups = [{"params": [weights[0]]}, {"params": [weights[1]], "lr": 0.02}]
        self.optimizer = torch.optim.AdamW(groups, lr=0.1)
        self.scheduler = ScheduleLR(self.optimizer, ec.cosine(STEPS, 0.1))
        self.steps = 0
        self.step(3)

    def step(self, count: int) -> None:
        """Steps of the optimizer and the scheduler."""
        for _ in range(count):
            self.optimizer.step()
            self.scheduler.step()
            self.steps += 1

    def rates(self) -> Tensor:
        """The rates after two more steps."""
        self.step(2)
        return torch.tensor([float(group["lr"]) for group in self.optimizer.param_groups], dtype=torch.float64)

    def expected(self) -> Tensor:
        """What they must be."""
        rate = ec.cosine(STEPS, 0.1)(self.steps)
        added = [1.0] * (len(self.optimizer.param_groups) - 2)  # with the default rate, which is that of the first
        return rate * torch.tensor([1.0, 0.2, *added], dtype=torch.float64)


def _copied(t: Training, make: Callable[[Any], Any]) -> None:
    t.optimizer, t.scheduler = make((t.optimizer, t.scheduler))


def _saved(t: Training) -> Any:
    buffer = io.BytesIO()
    torch.save({"optimizer": t.optimizer.state_dict(), "scheduler": t.scheduler.state_dict()}, buffer)
    return torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)


def _resumed(t: Training, in_order: tuple[str, ...]) -> None:
    """A new optimizer and scheduler, with the states of the old ones loaded."""
    states, new = _saved(t), Training()
    for name in in_order:
        getattr(new, name).load_state_dict(states[name])
    t.optimizer, t.scheduler = new.optimizer, new.scheduler


def _set_rate(t: Training, value: float, key: str = "lr") -> None:
    for group in t.optimizer.param_groups:
        group[key] = value


def _other_state(t: Training, schedule: ec.Schedule) -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    t.scheduler.load_state_dict(ScheduleLR(optimizer, schedule).state_dict())


def scheduler_changes() -> dict[str, Callable[[Training], Any]]:
    """Changes of an optimizer or a scheduler by name."""
    return {
        "a rate by hand": partial(_set_rate, value=7.0),
        "a rate of zero by hand": partial(_set_rate, value=0.0),
        "a tensor for all rates": lambda t: _set_rate(t, torch.tensor(0.3)),
        "rates as tensors": lambda t: [group.update(lr=torch.tensor(0.3)) for group in t.optimizer.param_groups],
        "an initial rate by hand": partial(_set_rate, value=7.0, key="initial_lr"),
        "weight decay by hand": partial(_set_rate, value=0.5, key="weight_decay"),
        "a new group": lambda t: t.optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]}),
        "a removed group": lambda t: t.optimizer.param_groups.pop(),
        "deepcopy": partial(_copied, make=copy.deepcopy),
        "pickle": partial(_copied, make=lambda pair: pickle.loads(pickle.dumps(pair))),
        "its own state": lambda t: t.scheduler.load_state_dict(t.scheduler.state_dict()),
        "the optimizer's own state": lambda t: t.optimizer.load_state_dict(t.optimizer.state_dict()),
        "a resume, optimizer first": partial(_resumed, in_order=("optimizer", "scheduler")),
        "a resume, scheduler first": partial(_resumed, in_order=("scheduler", "optimizer")),
        "the state of another schedule": lambda t: _other_state(t, ec.linear(STEPS, 0.1)),
        "the state of a longer schedule": lambda t: _other_state(t, ec.cosine(2 * STEPS, 0.1)),
        "the state of another number of groups": lambda t: _other_state(t, ec.cosine(STEPS, 0.1)),
        "the state of another scheduler": lambda t: t.scheduler.load_state_dict(
            torch.optim.lr_scheduler.StepLR(t.optimizer, 5).state_dict()
        ),
        "an empty state": lambda t: t.scheduler.load_state_dict({}),
        "a state with a rate of NaN": lambda t: t.scheduler.load_state_dict(
            {**t.scheduler.state_dict(), "ratios": [1.0, math.nan]}
        ),
        "a state of a negative step": lambda t: t.scheduler.load_state_dict(
            {**t.scheduler.state_dict(), "last_epoch": -7}
        ),
        "zero_grad": lambda t: t.optimizer.zero_grad(),
    }


def attack_schedulers() -> Counts:
    """Change an optimizer or a scheduler during a run; the rates stay those of the schedule, or there is a refusal."""
    counts = Counts("changed: schedulers")
    for name, change in scheduler_changes().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            training = Training()

            def used(training: Training = training, change: Callable[[Training], Any] = change) -> Tensor:
                change(training)
                return training.rates()

            _compare(counts, name, used, training.expected)
    return counts


def attack(folder: Path, small: bool) -> list[Counts]:
    """All changes."""
    with contextlib.ExitStack() as stack:
        stack.callback(GLOBAL.__setitem__, 0, 1.0)
        return [attack_operators(small), attack_estimates(folder), attack_schedulers()]
