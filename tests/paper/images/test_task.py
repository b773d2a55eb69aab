import numpy as np
import pytest
import torch
from tests.paper.images.examples import images
from torch import nn
from torch.nn import functional as F

from paper.data.images import crop_and_flip, normalise
from paper.images.task import CifarImages, ImageTask, best_layout
from paper.models.registry import build
from paper.training.task import Part


def make_task():
    return ImageTask(CifarImages(images(21)), CifarImages(images(9, seed=1)), batch_size=8, seed=5)


def test_an_epoch_has_every_image_once_cropped_and_mirrored_by_its_index():
    task, train = make_task(), images(21)
    order = np.random.default_rng((5, 3)).permutation(21)
    batches = list(task.batches(3, 0, Part()))
    assert [batch.size for batch in batches] == [8, 8, 5]
    assert task.steps_per_epoch == 3
    assert sorted(order.tolist()) == list(range(21))
    expected = normalise(crop_and_flip(train.images[order], torch.from_numpy(order), 5, 3))
    assert torch.equal(torch.cat([batch.content[0] for batch in batches]), expected)
    assert torch.equal(torch.cat([batch.content[1] for batch in batches]), train.labels[order])


def test_it_goes_on_inside_an_epoch_and_epochs_differ():
    task = make_task()
    whole, rest = list(task.batches(1, 0, Part())), list(task.batches(1, 2, Part()))
    assert len(rest) == 1
    assert torch.equal(rest[0].content[0], whole[2].content[0])
    assert not torch.equal(next(task.batches(0, 0, Part())).content[1], whole[0].content[1])


def test_processes_share_every_batch():
    task = make_task()
    for whole, *parts in zip(*(task.batches(0, 0, part) for part in (Part(), Part(0, 2), Part(1, 2))), strict=True):
        assert [part.joint_size for part in parts] == [whole.size] * 2
        assert parts[0].size + parts[1].size == whole.size
        assert torch.equal(parts[1].content[0], whole.content[0][1::2])


def test_what_is_measured():
    task, test = make_task(), images(9, seed=1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))
    with torch.no_grad():
        found = task.evaluate(model, Part())
        logits = model(normalise(test.images))
        parts = [task.evaluate(model, Part(rank, 2)) for rank in (0, 1)]
    right = [int(row.argmax()) == label for row, label in zip(logits, test.labels.tolist(), strict=True)]
    five = [label in row.argsort(descending=True)[:5] for row, label in zip(logits, test.labels, strict=True)]
    assert found["accuracy"] == (sum(right), 9)
    assert found["top5"] == (sum(five), 9)
    assert found["test_loss"].sum / 9 == pytest.approx(F.cross_entropy(logits, test.labels).item(), rel=1e-5)
    for name, total in found.items():
        assert sum(part[name].sum for part in parts) == pytest.approx(total.sum)
        assert sum(part[name].count for part in parts) == 9


def test_layouts_that_crash_are_not_chosen():
    assert best_layout(build("resnet18", 10, 8)) == torch.channels_last
    assert best_layout(build("resnet18", 10, 16)) == torch.contiguous_format  # strided 1 x 1 from 4 channels
    assert best_layout(nn.Linear(2, 2)) == torch.contiguous_format
