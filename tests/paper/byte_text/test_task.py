import numpy as np
import pytest
import torch
from tests.paper.byte_text.texts import small_text

import eigencurve as ec
from paper.byte_text.task import ByteTask
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
