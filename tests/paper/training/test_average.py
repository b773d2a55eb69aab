import contextlib

import torch
from torch import nn

from paper.training.average import WeightAverage


def linear(weight):
    model = nn.Linear(1, 1, bias=False).double()
    set_weight(model, weight)
    return model


def set_weight(model, weight):
    with torch.no_grad():
        model.weight.fill_(weight)


def test_it_is_the_formula():
    model, decay, weights = linear(2.0), 0.9, (5.0, -3.0, 7.0)
    average = WeightAverage(model, decay)
    for weight in weights:
        set_weight(model, weight)
        average.update(model)
    expected = decay**3 * 2.0 + (1 - decay) * (decay**2 * 5.0 + decay * -3.0 + 7.0)
    torch.testing.assert_close(average.state["weight"].item(), expected, rtol=1e-14, atol=0.0)
    assert model.weight.item() == 7.0


def test_statistics_of_batch_norm_are_averaged_and_its_counter_is_copied():
    norm = nn.BatchNorm1d(1, momentum=1.0)
    average = WeightAverage(norm, decay=0.75)
    norm(torch.tensor([[3.0], [5.0]]))
    average.update(norm)
    assert average.state["running_mean"].item() == 0.75 * 0.0 + 0.25 * 4.0
    assert average.state["running_var"].item() == 0.75 * 1.0 + 0.25 * 2.0
    assert average.state["num_batches_tracked"].item() == 1


def test_the_average_is_in_the_model_inside_the_block_only():
    model = linear(2.0)
    average = WeightAverage(model, decay=0.5)
    set_weight(model, 4.0)
    average.update(model)
    with contextlib.suppress(KeyboardInterrupt), average.applied(model):
        assert model.weight.item() == 3.0
        raise KeyboardInterrupt
    assert model.weight.item() == 4.0


def test_a_restored_average_continues():
    model = linear(2.0)
    first, second = (WeightAverage(model, decay=0.5) for _ in range(2))
    set_weight(model, 4.0)
    first.update(model)
    second.restore(first.state)
    for average in (first, second):
        average.update(model)
    assert first.state["weight"].item() == second.state["weight"].item() == 3.5
    assert first.state["weight"] is not second.state["weight"]
