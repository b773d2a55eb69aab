"""Optimizers and starts from files: the same preconditioner as that of the live optimizer, and refusals in one line."""

import pickle
import re

import numpy as np
import pytest
import torch
from tests.hessian.optimizers import ADAM, OPTIMIZERS, take_steps
from torch import nn, optim
from torch.nn import functional as F

from eigencurve.hessian import HessianOperator
from eigencurve.hessian.state_files import load_preconditioner, load_start_state


def problem():
    source = torch.Generator().manual_seed(0)
    x, y = (torch.randn(16, n, generator=source, dtype=torch.float64) for n in (3, 2))
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    return model, (x, y)


def trained(kind=optim.AdamW, **settings):
    model, batch = problem()
    optimizer = kind(model.parameters(), **(settings or ADAM))
    return model, batch, take_steps(model, F.mse_loss, batch, optimizer, 3)


def loaded(path, model, batch, kind=None, parameters=None):
    operator = HessianOperator(model, F.mse_loss, batch, parameters=parameters, check=False)
    return operator.preconditioned_by(load_preconditioner(path, model, operator.named_parameters, kind))


def saved(tmp_path, content, name="state.pt"):
    torch.save(content, tmp_path / name)
    return tmp_path / name


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_metric_is_that_of_the_live_optimizer(name, tmp_path):
    kind, settings = OPTIMIZERS[name]
    model, batch, optimizer = trained(kind, **settings)
    expected = HessianOperator(model, F.mse_loss, batch, check=False).preconditioned_by(optimizer)
    found = loaded(saved(tmp_path, optimizer.state_dict()), model, batch)
    torch.testing.assert_close(found.diagonal, expected.diagonal)
    assert found.fingerprint() == expected.fingerprint()
    assert found.eigenvalue_shift == expected.eigenvalue_shift
    assert found.preconditioner in (expected.preconditioner, "AdamW" if "decoupled" in name else "")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: {"model": {}, "optimizer": state, "epoch": 3},
        lambda state: {"optimizer_state": state},
        lambda state: {"optimizer_state_dict": state},
        lambda state: {"state_dict": {}, "optimizer_states": [state]},
    ],
)
def test_the_state_is_found_in_a_checkpoint(wrap, tmp_path):
    model, batch, optimizer = trained()
    path = saved(tmp_path, wrap(optimizer.state_dict()))
    assert loaded(path, model, batch).preconditioner == "AdamW"


def test_parameters_are_matched_by_name_or_by_order(tmp_path):
    model, batch = problem()
    weights = [(n, p) for n, p in model.named_parameters() if n.endswith("weight")]
    biases = [(n, p) for n, p in model.named_parameters() if n.endswith("bias")]
    groups = [{"params": weights, "weight_decay": 0.1}, {"params": biases, "weight_decay": 0.0}]
    optimizer = take_steps(model, F.mse_loss, batch, optim.AdamW(groups, lr=0.01), 3)
    expected = HessianOperator(model, F.mse_loss, batch, check=False).preconditioned_by(optimizer)
    state = optimizer.state_dict()
    found = loaded(saved(tmp_path, state), model, batch)
    assert found.fingerprint() == expected.fingerprint()
    assert found.smallest_decay == pytest.approx(0.1)
    for group in state["param_groups"]:
        del group["param_names"]
    path = saved(tmp_path, state)
    message = r"a state of shape \(4,\) for the parameter 0\.bias.*named_parameters\(\)"
    with pytest.warns(UserWarning, match="2 groups without"), pytest.raises(ValueError, match=message):
        loaded(path, model, batch)


def test_a_part_of_the_parameters_takes_its_part_of_the_state(tmp_path):
    model, batch, optimizer = trained()
    found = loaded(saved(tmp_path, optimizer.state_dict()), model, batch, parameters="2.*")
    whole = HessianOperator(model, F.mse_loss, batch, check=False).preconditioned_by(optimizer)
    torch.testing.assert_close(found.diagonal, whole.diagonal[-found.dim :])


def test_old_states_need_the_kind_of_adam(tmp_path):
    model, batch, optimizer = trained(optim.AdamW, lr=0.01, weight_decay=0.1)
    state = optimizer.state_dict()
    for group in state["param_groups"]:
        del group["decoupled_weight_decay"]
    path = saved(tmp_path, state)
    with pytest.raises(ValueError, match="pass 'adam' or 'adamw' as 'optimizer'"):
        loaded(path, model, batch)
    assert loaded(path, model, batch, "adamw").eigenvalue_shift == pytest.approx(0.1)
    assert loaded(path, model, batch, "adam").eigenvalue_shift == 0.0
    with pytest.raises(ValueError, match="'optimizer' must be one of 'adam', 'adamw'"):
        loaded(path, model, batch, "lion")


def test_a_diagonal_by_name_or_flat(tmp_path):
    model, batch, _ = trained()
    flat = np.linspace(1.0, 2.0, sum(p.numel() for p in model.parameters()))
    np.savez(tmp_path / "flat.npz", P=flat)
    parts = np.split(flat, np.cumsum([p.numel() for p in model.parameters()])[:-1])
    names = {n: part.reshape(p.shape) for (n, p), part in zip(model.named_parameters(), parts, strict=True)}
    np.savez(tmp_path / "named.npz", **names)
    for name in ("flat.npz", "named.npz"):
        found = loaded(tmp_path / name, model, batch)
        np.testing.assert_array_equal(found.diagonal.numpy(), flat)
        assert found.preconditioner == "a diagonal matrix"
    np.savez(tmp_path / "bad.npz", P=np.array([object()], dtype=object))
    with pytest.raises(ValueError, match=r"an \.npz archive of plain arrays"):
        loaded(tmp_path / "bad.npz", model, batch)
    np.savez(tmp_path / "short.npz", P=flat[:3])
    with pytest.raises(ValueError, match="'diagonal' must be a tensor of 26 numbers"):
        loaded(tmp_path / "short.npz", model, batch)


class Evil:
    def __reduce__(self):
        return eval, ("1/0",)


def test_other_files_are_refused_in_one_line(tmp_path):
    model, batch, optimizer = trained()
    (tmp_path / "code.pt").write_bytes(pickle.dumps(Evil()))
    (tmp_path / "text.pt").write_text("no state")
    (tmp_path / "empty.pt").write_bytes(b"")
    torch.save({"optimizer": optimizer}, tmp_path / "object.pt")
    for name in ("code.pt", "text.pt", "empty.pt", "object.pt"):
        with pytest.raises(ValueError, match=r"a file that torch\.save wrote") as caught:
            loaded(tmp_path / name, model, batch)
        assert len(str(caught.value).splitlines()) == 1
    for content in ({}, {"optimizer": 3}, [1, 2], {"param_groups": [], "state": {}}, {"optimizer_states": [1, 2]}):
        with pytest.raises(ValueError, match="the state of one optimizer"):
            loaded(saved(tmp_path, content), model, batch)
    with pytest.raises(FileNotFoundError):
        loaded(tmp_path / "none.pt", model, batch)


@pytest.mark.parametrize("kind", [optim.SGD, optim.NAdam, optim.RAdam, optim.Adamax])
def test_other_optimizers_are_refused(kind, tmp_path):
    model, batch, optimizer = trained(kind, lr=0.01)
    with pytest.raises(ValueError, match="a state of AdamW, Adam, RMSprop, Adagrad"):
        loaded(saved(tmp_path, optimizer.state_dict()), model, batch)


def test_a_state_that_does_not_fit_is_refused(tmp_path):
    model, batch, optimizer = trained()
    other = nn.Linear(3, 4).double()
    small = take_steps(other, F.mse_loss, (batch[0], torch.zeros(16, 4).double()), optim.Adam(other.parameters()), 1)
    with pytest.raises(ValueError, match="a state of the model's 4 parameters, got 2"):
        loaded(saved(tmp_path, small.state_dict()), model, batch)
    state = optimizer.state_dict()
    state["state"][0] = {"step": torch.tensor(1.0), "state1": torch.zeros(4, 3)}
    with pytest.raises(ValueError, match="with 'exp_avg_sq' for every parameter"):
        loaded(saved(tmp_path, state), model, batch)
    fresh = optim.Adam(model.parameters())
    with pytest.raises(ValueError, match=r"a state for the parameter 0\.weight"):
        loaded(saved(tmp_path, fresh.state_dict()), model, batch)


@pytest.mark.parametrize("key", [None, "model", "model_state_dict", "state_dict"])
def test_the_start_of_a_run(key, tmp_path):
    model, _ = problem()
    start = {name: value + 1 for name, value in model.state_dict().items()}
    path = saved(tmp_path, start if key is None else {key: start, "epoch": 1})
    found = load_start_state(path, dict(model.named_parameters()))
    assert all(torch.equal(found[name], start[name]) for name in start)


def test_a_start_that_does_not_fit_is_refused(tmp_path):
    model, _ = problem()
    parameters = dict(model.named_parameters())
    for content, message in (
        (model.state_dict(), "got 'the state of the model itself'"),
        ({}, re.escape("a state with 0.weight of shape (4, 3), got 'an empty dict'")),
        ({"0.weight": torch.zeros(2)}, re.escape("got 'shape (2,)'")),
        (3, "a state with 0.weight"),
    ):
        with pytest.raises(ValueError, match=message):
            load_start_state(saved(tmp_path, content), parameters)
