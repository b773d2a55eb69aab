import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.paper.training.training_job import EPOCHS, STEPS, Blobs, net, settings, shared
from tests.reference.training import literal_adamw, literal_sgd
from torch import nn

from eigencurve import constant, cosine, elastic_step, step_decay
from paper.training.launch import in_processes
from paper.training.loop import train
from paper.training.settings import TrainingSettings
from paper.training.task import Batch, Part, Total

ROOT = Path(__file__).parents[3]


class Slope:
    """The loss is w itself, so each step takes w down by the learning rate."""

    steps_per_epoch = 10

    def __init__(self):
        self.weights = []

    def batches(self, _epoch, first, _part):
        for _ in range(first, self.steps_per_epoch):
            yield Batch(None, 1, 1)

    def loss(self, model, _batch):
        self.weights.append(model.w.item())
        return model.w * 1.0

    def evaluate(self, model, _part):
        return {"w": Total(model.w.item(), 1)}

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        assert state == {}


class Weight(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros((), dtype=torch.float64))


@pytest.mark.parametrize("schedule", [cosine(30, 0.3), elastic_step(30, 1.0), step_decay(30, 0.1)])
def test_each_step_has_the_rate_of_the_schedule(schedule):
    task, model = Slope(), Weight()
    train(model, task, TrainingSettings(schedule, epochs=3))
    weights = torch.tensor([*task.weights, model.w.item()], dtype=torch.float64)
    torch.testing.assert_close(-weights.diff(), torch.tensor(schedule.values()), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("momentum", "max_norm", "ema_decay"), [(0.0, None, None), (0.9, 0.2, 0.8), (0.5, None, 0.0)])
def test_it_is_the_literal_algorithm(momentum, max_norm, ema_decay):
    chosen = settings(momentum=momentum, max_norm=max_norm, ema_decay=ema_decay)
    model, task = net(), Blobs()
    train(model, task, chosen, seed=3)
    other = net()
    with torch.random.fork_rng():
        torch.manual_seed(3)  # of the dropout
        history, average = literal_sgd(other, Blobs(), chosen, Part())
    for name, tensor in history[-1].items():
        torch.testing.assert_close(dict(model.named_parameters())[name].detach(), tensor, rtol=1e-5, atol=1e-6)
    evaluated = task.evaluated[-1]
    for name, tensor in average.items() if ema_decay is not None else other.state_dict().items():
        torch.testing.assert_close(evaluated[name], tensor, rtol=1e-5, atol=1e-6, msg=name)


def test_adamw_is_the_literal_algorithm():
    chosen = settings(
        optimizer="adamw", betas=(0.8, 0.95), momentum=0.0, weight_decay=0.3, max_norm=None, ema_decay=None
    )
    model, other = net(random=False), net(random=False)
    trained = train(model, Blobs(), chosen)
    expected = literal_adamw(other, Blobs(), chosen, Part())
    for found, literal in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(found, literal, rtol=1e-4, atol=1e-5)
    assert isinstance(trained.optimizer, torch.optim.AdamW)
    with pytest.raises(ValueError, match=r"'momentum' must be 0 for AdamW, got 0\.9"):
        settings(optimizer="adamw")
    with pytest.raises(ValueError, match="'optimizer' must be one of 'sgd', 'adamw', got 'adam'"):
        settings(optimizer="adam")


def test_bfloat16_computes_in_16_bits_and_keeps_float32_weights():
    seen = []

    class Seen(Blobs):
        def loss(self, model, batch):
            found = super().loss(model, batch)
            seen.append((model.training, torch.is_autocast_enabled("cpu")))
            return found

    models = {}
    for precision in ("auto", "float32", "bfloat16"):
        models[precision] = net(random=False)
        train(models[precision], Seen(), settings(precision=precision))
        assert set(seen) == {(True, precision == "bfloat16")}
        seen.clear()
    full, mixed = (models[name].fc.weight for name in ("float32", "bfloat16"))
    assert torch.equal(full, models["auto"].fc.weight)
    assert mixed.dtype is torch.float32
    torch.testing.assert_close(mixed, full, rtol=0.1, atol=0.02)  # bfloat16 has 8 bits, and errors add up
    assert not torch.equal(mixed, full)
    with pytest.raises(ValueError, match="'precision' must be one of 'auto', 'float32', 'bfloat16', got 'half'"):
        settings(precision="half")


def test_the_averaged_weights_are_evaluated_and_the_models_own_stay():
    task, model = Blobs(), net()
    train(model, task, settings(ema_decay=0.99))
    own = model.state_dict()
    assert not torch.equal(task.evaluated[-1]["fc.weight"], own["fc.weight"])
    assert not torch.equal(task.evaluated[-1]["norm.running_mean"], own["norm.running_mean"])
    assert int(task.evaluated[-1]["norm.num_batches_tracked"]) == EPOCHS * STEPS


def run_job(out, checkpoint, kill_at):
    words = [sys.executable, "-m", "tests.paper.training.training_job", str(out), str(checkpoint), str(kill_at)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_a_run_killed_inside_an_epoch_ends_bit_for_bit_as_one_that_was_not(tmp_path):
    assert run_job(tmp_path / "whole.pt", tmp_path / "a.pt", -1).returncode == 0
    assert run_job(tmp_path / "never.pt", tmp_path / "b.pt", 2 * STEPS - 2).returncode == -9
    assert not (tmp_path / "never.pt").exists()
    assert torch.load(tmp_path / "b.pt", weights_only=True)["step"] == 2 * STEPS - 2
    again = run_job(tmp_path / "again.pt", tmp_path / "b.pt", -1)
    assert again.returncode == 0, again.stderr
    whole, resumed = (torch.load(tmp_path / name, weights_only=True) for name in ("whole.pt", "again.pt"))
    for part in ("state", "history"):
        assert whole[part].keys() == resumed[part].keys()
        for name, tensor in whole[part].items():
            assert torch.equal(tensor, resumed[part][name]), name


def test_two_processes_are_one_with_the_joint_batch_and_go_on_from_their_checkpoint(tmp_path):
    alone, *_ = shared(tmp_path, "one")
    whole, resumed, stopped_at = in_processes(2, shared, tmp_path, "two")
    (one, _), *both = (torch.load(tmp_path / f"{name}.pt", weights_only=True) for name in ("one", "two0", "two1"))
    for name, tensor in one.items():
        torch.testing.assert_close(both[0][0][name], tensor, rtol=1e-5, atol=1e-6)
        assert all(torch.equal(both[0][0][name], state[name]) for states in both for state in states)
    for name in ("train_loss", "weight", "lr"):
        assert whole.history[name] == [(e, pytest.approx(v, rel=1e-5)) for e, v in alone.history[name]]
    assert whole.history["rank"][-1][1] == 0.5  # the mean over both: each evaluated its own part
    assert STEPS <= stopped_at < EPOCHS * STEPS
    assert resumed == whole
    with pytest.raises(ValueError, match="number of processes"):
        train(net(random=False), Blobs(), settings(max_norm=0.5), checkpoint=tmp_path / "two.run")


class Exploding(Blobs):
    def loss(self, model, batch):
        return super().loss(model, batch) * (math.inf if len(self.evaluated) == 1 else 1.0)


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path):
    file = tmp_path / "run.pt"
    found = train(net(), Exploding(), settings(), checkpoint=file)
    assert found.diverged
    assert found.num_steps == STEPS + 1
    assert len(found.history["train_loss"]) == 1
    assert train(net(), Exploding(), settings(), checkpoint=file) == found  # and stays ended


def test_checkpoints_are_plain_and_of_one_run_only(tmp_path):
    file = tmp_path / "run.pt"
    train(net(), Blobs(), settings(), run="one", checkpoint=file)
    state = torch.load(file, weights_only=True)
    assert json.loads(state["history"])["train_loss"][-1][0] == EPOCHS
    content = file.read_bytes()
    others = {"run": {"run": "two"}, "seed": {"seed": 1}}
    for changes in others.values():
        with pytest.raises(ValueError, match=r"'checkpoint' must be of this run.*run.pt is unchanged"):
            train(net(), Blobs(), settings(), **{"run": "one", **changes}, checkpoint=file)
    with pytest.raises(ValueError, match="of this run"):
        train(net(), Blobs(), settings(momentum=0.5), run="one", checkpoint=file)
    assert file.read_bytes() == content


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused_and_kept(tmp_path, keep):
    file = tmp_path / "run.pt"
    train(net(), Blobs(), settings(), checkpoint=file)
    content = file.read_bytes()
    file.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(ValueError, match=r"must be a complete checkpoint.*run.pt is unchanged"):
        train(net(), Blobs(), settings(), checkpoint=file)
    assert file.read_bytes() == content[: int(keep * len(content))]


def test_a_file_of_another_kind_is_refused(tmp_path):
    file = tmp_path / "run.pt"
    torch.save({"model": {}}, file)
    with pytest.raises(ValueError, match="another kind"):
        train(net(), Blobs(), settings(), checkpoint=file)


def test_the_random_state_outside_stays():
    before = torch.get_rng_state()
    train(net_without_seeding(), Blobs(), settings())
    assert torch.equal(torch.get_rng_state(), before)


def net_without_seeding():
    with torch.random.fork_rng():
        return net()


def test_evaluations_are_as_often_as_asked_and_at_the_end():
    found = train(net(), Blobs(), settings(evaluate_every=2))
    assert [epoch for epoch, _ in found.history["weight"]] == [2.0, 3.0]
    assert [epoch for epoch, _ in found.history["train_loss"]] == [1.0, 2.0, 3.0]
    assert found.last["lr"] == settings().schedule(EPOCHS * STEPS - 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "'epochs' must be >= 1"),
        ({"ema_decay": 1.0}, "'ema_decay' must be at least 0 and below 1"),
        ({"max_norm": 0.0}, "'max_norm' must be > 0"),
        ({"momentum": -0.1}, "'momentum' must be >= 0"),
        ({"evaluate_every": 0}, "'evaluate_every' must be >= 1"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        settings(**changes)


def test_a_schedule_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"a schedule of 15 steps, got 14\. 3 epochs of 5 steps are 15"):
        train(net(), Blobs(), settings(schedule=constant(14, 0.1)))
    with pytest.raises(TypeError, match="'schedule' must be a Schedule"):
        settings(schedule=0.1)


def test_snapshots_are_the_states_after_those_epochs(tmp_path):
    files = {epoch: tmp_path / f"{epoch}.pt" for epoch in (0, 1, EPOCHS)}
    model, task, before = net(), Blobs(), net().state_dict()
    train(model, task, settings(), checkpoint=tmp_path / "run.pt", snapshots=files)
    states = {epoch: torch.load(file, weights_only=True) for epoch, file in files.items()}
    assert {epoch: state["step"] for epoch, state in states.items()} == {0: 0, 1: STEPS, EPOCHS: EPOCHS * STEPS}
    for epoch, expected in ((0, before), (1, task.evaluated[0]), (EPOCHS, model.state_dict())):
        for name, tensor in expected.items():
            assert torch.equal(states[epoch]["model"][name], tensor), (epoch, name)


def test_a_snapshot_that_a_kill_prevented_is_made_on_resume(tmp_path):
    files = {EPOCHS: tmp_path / "end.pt"}
    train(net(), Blobs(), settings(), checkpoint=tmp_path / "run.pt")
    train(net(), Blobs(), settings(), checkpoint=tmp_path / "run.pt", snapshots=files)
    assert files[EPOCHS].read_bytes() == (tmp_path / "run.pt").read_bytes()


def test_snapshots_need_a_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="train: 'checkpoint' must be a path if there are snapshots"):
        train(net(), Blobs(), settings(), snapshots={0: tmp_path / "0.pt"})
