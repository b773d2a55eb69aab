import numpy as np
import pytest
import torch
from tests.reference.language import lstm_forward

from paper.models.lstm import lstm
from paper.models.making import drawn_from


def small(dropout=0.0, divisor=150, num_classes=13):
    with drawn_from(0):
        return lstm(num_classes, divisor, dropout, initial=0.5)


def test_number_of_parameters():
    with torch.device("meta"):
        shapes = {name: tuple(p.shape) for name, p in lstm().named_parameters()}
    assert shapes["embedding.weight"] == shapes["decoder.weight"] == (10_000, 1_500)
    assert shapes["lstm.weight_hh_l1"] == (6_000, 1_500)
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == 66_034_000
    # By hand: one bias vector a layer less than PyTorch's two makes the often quoted number.
    assert 66_034_000 - 2 * 6_000 == 15_000_000 + 2 * (6_000 * 3_000 + 6_000) + 15_010_000


def test_it_is_the_equations():
    model = small().eval()
    words = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    logits, _ = model(words, model.initial_state(1))
    expected = lstm_forward(model.state_dict(), words[0].tolist())
    assert np.allclose(logits[0].detach().numpy(), expected, atol=1e-5)  # float32


def test_a_carried_state_makes_windows_one_text():
    model = small(dropout=0.5).eval()
    words = torch.randint(0, 13, (3, 12), generator=torch.Generator().manual_seed(0))
    whole, last = model(words, model.initial_state(3))
    state, parts = model.initial_state(3), []
    for window in words.split(5, dim=1):
        logits, state = model(window, state)
        parts.append(logits)
    assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-6)
    assert torch.allclose(state.cell, last.cell, atol=1e-6)
    assert not state.detached().hidden.requires_grad


def test_dropout_is_on_what_goes_up_and_not_on_what_goes_on_in_time():
    model = small(dropout=0.5).train()
    words = torch.zeros(1, 20, dtype=torch.int64)
    state = model.initial_state(1)
    state.hidden.fill_(1.0)
    with torch.no_grad():
        model.lstm.weight_ih_l0.zero_()  # nothing from below: the first layer lives on its own past
        random = [model(words, state) for _ in range(2)]
        fixed = model.eval()(words, state)
    assert torch.equal(random[0][1].cell[0], fixed[1].cell[0])
    assert not torch.equal(random[0][1].cell[1], random[1][1].cell[1])  # between the layers
    assert not torch.equal(random[0][0], random[1][0])
    model.train()
    with torch.no_grad():
        model.lstm.weight_ih_l1.zero_()
        outputs = [model(words, state)[0] for _ in range(2)]
    assert not torch.equal(*outputs)  # before the linear layer


def test_weights_begin_uniform():
    with drawn_from(1):
        model = lstm(500, divisor=50)
    values = torch.cat([p.flatten() for p in model.parameters()])
    assert values.abs().max() <= 0.04
    assert values.std().item() == pytest.approx(0.08 / 12**0.5, rel=0.02)  # of tens of thousands of draws


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dropout": 1.0}, "lstm: 'dropout' must be at least 0 and below 1"),
        ({"divisor": 2000}, "lstm: 'divisor' must be <= 1500"),
        ({"initial": 0.0}, "lstm: 'initial' must be > 0"),
        ({"num_classes": 0}, "lstm: 'num_classes' must be >= 1"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        lstm(**{"num_classes": 5, "divisor": 500} | arguments)
