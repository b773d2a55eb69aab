import math

import pytest
import torch
from torch import nn

from paper.byte_text.epochs import EpochTask
from paper.training.task import Part

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
