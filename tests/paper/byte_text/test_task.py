import math

import numpy as np
import pytest
import torch
from tests.paper.byte_text.texts import small_text
from torch import nn

import eigencurve as ec
from paper.byte_text.task import ByteTask, EpochTask
from paper.models.registry import build
from paper.models.transformer import next_byte_loss
from paper.training.loop import train
from paper.training.settings import TrainingSettings
from paper.training.task import Part


@pytest.fixture
def text(tmp_path):
    return small_text(tmp_path)


def task_for(text, seed=0, num_valid=5):
    return ByteTask(text, batch_size=3, context=16, steps_per_epoch=4, num_valid=num_valid, seed=seed)


def model_for(seed=1):
    return build("transformer", 256, divisor=20, seed=seed)


def test_batches_are_windows_of_the_text(text):
    train_bytes = bytes(text.train.tolist())
    for batch in task_for(text).batches(2, 0, Part()):
        inputs, following = batch.content
        assert inputs.shape == following.shape == (3, 16)
        for row in torch.cat([inputs[:, :1], following], 1):
            assert bytes(row.tolist()) in train_bytes
    first, again, other = (next(task_for(text, seed).batches(2, 0, Part())).content[0] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_an_epoch_can_begin_in_the_middle_and_be_shared(text):
    whole = list(task_for(text).batches(1, 0, Part()))
    late = list(task_for(text).batches(1, 3, Part()))
    assert torch.equal(late[0].content[0], whole[3].content[0])
    parts = [next(task_for(text).batches(1, 0, Part(rank, 2))) for rank in (0, 1)]
    assert [part.size for part in parts] == [2, 1]
    assert torch.equal(torch.cat([p.content[0] for p in parts]), whole[0].content[0][[0, 2, 1]])


def test_validation_and_test_windows_share_no_byte_and_leave_none_out(text):
    task, model = task_for(text), model_for().eval()
    rows = torch.cat([task.valid[0], task.rest[0]])
    assert len(task.valid[0]) == 5
    windows = text.test[: len(rows) * 16].view(-1, 16)
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, windows.tolist()))
    with torch.no_grad():
        found = task.evaluate(model, Part())["valid_loss"]
        losses = [next_byte_loss(model(x[None]), y[None]).item() for x, y in zip(*task.rest, strict=True)]
        direct = next_byte_loss(model(task.valid[0]), task.valid[1]).item()
    assert found.sum / found.count == pytest.approx(direct, rel=1e-5)
    assert task.test_loss(model) == pytest.approx(np.mean(losses), rel=1e-5)
    with torch.no_grad():
        parts = [task.evaluate(model, Part(rank, 2))["valid_loss"] for rank in (0, 1)]
    assert sum(p.sum for p in parts) == pytest.approx(found.sum, rel=1e-5)


def test_the_loss_of_every_step_survives_a_kill(text, tmp_path):
    how = TrainingSettings(ec.cosine(12, lr=0.01), epochs=3, optimizer="adamw", weight_decay=0.1, max_norm=1.0)

    class Killed(ByteTask):
        def loss(self, model, batch):
            if len(self.losses) == 6:
                raise KeyboardInterrupt
            return super().loss(model, batch)

    whole, model = task_for(text), model_for()
    expected = train(model, whole, how)
    killed = Killed(text, 3, 16, 4, 5, 0)
    with pytest.raises(KeyboardInterrupt):
        train(model_for(), killed, how, checkpoint=tmp_path / "c.pt", save_seconds=0.0)
    resumed, again = task_for(text), model_for()
    found = train(again, resumed, how, checkpoint=tmp_path / "c.pt")
    assert found == expected
    assert len(resumed.losses) == 12
    assert torch.equal(resumed.losses, whole.losses)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), again.parameters(), strict=True))


TEXT = torch.arange(100) % 7


class Uniform(nn.Module):
    """Logits of zero for 7 bytes, except that the byte after i is i + 1 if ``knows``."""

    def __init__(self, knows):
        super().__init__()
        self.knows = knows

    def forward(self, text):
        return 100.0 * self.knows * nn.functional.one_hot((text + 1) % 7, 7).float()


def task(**changes):
    return EpochTask(**{"train": TEXT, "test": TEXT, "context": 5, "batch_size": 4, "seed": 1, "num_test": 9} | changes)


def test_an_epoch_shows_every_whole_window_once():
    one = task(batch_size=3)
    batches = list(one.batches(0, 0, Part()))
    assert len(batches) == one.steps_per_epoch == 6
    begins = sorted(row for batch in batches for row in batch.content[0][:, 0].tolist())
    firsts = next(iter(task(batch_size=18).batches(0, 0, Part()))).content[0][:, 0]
    assert begins == sorted(firsts.tolist())
    assert all(((batch.content[0] + 1) % 7 == batch.content[1]).all() for batch in batches)


def test_epochs_differ_and_a_resumed_epoch_continues():
    one = task()
    first, again, other = (list(one.batches(epoch, begin, Part())) for epoch, begin in ((0, 0), (0, 2), (1, 0)))
    assert torch.equal(first[2].content[0], again[0].content[0])
    assert not torch.equal(first[0].content[0], other[0].content[0])


def test_processes_share_a_batch():
    whole = next(iter(task().batches(0, 0, Part()))).content[0]
    parts = [next(iter(task().batches(0, 0, Part(rank, 2)))) for rank in (0, 1)]
    assert torch.equal(torch.stack([part.content[0] for part in parts], 1).flatten(0, 1), whole)
    assert [(part.size, part.joint_size) for part in parts] == [(2, 4), (2, 4)]


@pytest.mark.parametrize(("knows", "loss", "accuracy"), [(True, 0.0, 1.0), (False, math.log(7), None)])
def test_loss_and_accuracy_are_per_byte(knows, loss, accuracy):
    one, model = task(), Uniform(knows)
    batch = next(iter(one.batches(0, 0, Part())))
    assert one.loss(model, batch).item() == pytest.approx(loss, abs=1e-6)
    found = one.evaluate(model, Part())
    assert found["test_loss"].sum / found["test_loss"].count == pytest.approx(loss, abs=1e-6)
    assert found["accuracy"].count == 9 * 5
    assert accuracy is None or found["accuracy"].sum == 45


def test_a_short_text_is_refused():
    with pytest.raises(ValueError, match="EpochTask: 'train' must be at least 26 bytes, for one batch of windows"):
        task(train=TEXT[:20])
