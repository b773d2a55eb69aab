import numpy as np
import pytest
import torch

import eigencurve as ec
from eigencurve.demo.training import BATCH_SIZE, NUM_TRAIN, batches, digits, network, train, train_together

STEPS = 25
SCHEDULES = [ec.cosine(STEPS, 0.1), ec.step_decay(STEPS, 0.3)]


@pytest.fixture(scope="module")
def data():
    return digits(0)


def test_digits_are_split_without_overlap(data):
    assert [len(x) for x, _ in (data.train, data.test)] == [NUM_TRAIN, 1797 - NUM_TRAIN]
    assert data.train[0].max() == 1
    assert not torch.equal(digits(1).train[1], data.train[1])


def test_batches_depend_on_the_seed_only(data):
    first, again, other = (batches(data.train, 3, seed) for seed in (4, 4, 5))
    assert len(first) == 3
    assert first[0][0].shape == (BATCH_SIZE, 1, 8, 8)
    assert torch.equal(first[2][1], again[2][1])
    assert not torch.equal(first[2][1], other[2][1])


def test_runs_together_equal_runs_one_by_one(data):
    """The reference is PyTorch's SGD with ScheduleLR in an ordinary loop."""
    seeds = (3, 8, 9)
    losses, accuracies = train_together(data, SCHEDULES, seeds)
    for i, schedule in enumerate(SCHEDULES):
        for k, seed in enumerate(seeds):
            model = network(seed)
            # float32 sums in another order, over 25 steps
            assert losses[i, k] == pytest.approx(train(model, data, schedule, seed), rel=1e-3)
            correct = (model(data.test[0]).argmax(1) == data.test[1]).double().mean().item()
            assert accuracies[i, k] == pytest.approx(correct, abs=0.01)


def test_a_run_does_not_depend_on_the_others(data):
    (together, _), (alone, _) = train_together(data, SCHEDULES, (3, 8)), train_together(data, SCHEDULES[1:], (8,))
    np.testing.assert_allclose(together[1, 1], alone[0, 0], rtol=1e-3)
