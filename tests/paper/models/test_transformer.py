import math

import numpy as np
import pytest
import torch
from tests.reference.language import transformer_forward

from eigencurve.hessian.operator import HessianOperator
from paper.models.making import drawn_from
from paper.models.transformer import NUM_HEADS, Transformer, next_byte_loss, transformer


def small(num_classes=13):
    """Weights large enough that attention is far from uniform."""
    with drawn_from(0):
        model = transformer(num_classes, divisor=10)
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    return model


def some_text(rows, columns, num_classes=13):
    return torch.randint(0, num_classes, (rows, columns), generator=torch.Generator().manual_seed(0))


def test_number_of_parameters():
    by_hand = 2 * 256 * 80 + 128 * 80 + 3 * (12 * 80**2 + 4 * 80) + 2 * 80
    assert sum(p.numel() for p in transformer().parameters()) == by_hand == 282_720


def test_tied_embeddings_are_one_parameter():
    model = Transformer(13, 8, 1, 2, 9, tied=True)
    assert model.decoder.weight is model.embedding.weight
    assert sum(p.numel() for p in model.parameters()) == 13 * 8 + 9 * 8 + 12 * 8**2 + 4 * 8 + 2 * 8


def test_it_is_the_equations():
    model, text = small(), some_text(1, 9)
    expected = transformer_forward(model.state_dict(), text[0].tolist(), NUM_HEADS)
    assert np.allclose(model(text)[0].detach().numpy(), expected, atol=1e-4)  # float32


def test_no_position_sees_the_future():
    model, text = small(), some_text(2, 12)
    changed = text.clone()
    changed[:, 7:] = (text[:, 7:] + 1) % 13
    first, second = model(text), model(changed)
    assert torch.equal(first[:, :7], second[:, :7])
    assert not torch.allclose(first[:, 7:], second[:, 7:])


def test_a_new_network_knows_nothing():
    with drawn_from(1):
        model = transformer()
    text = some_text(2, 129, 256)
    loss = next_byte_loss(model(text[:, :-1]), text[:, 1:])
    assert loss.item() == pytest.approx(math.log(256), rel=0.02)  # logits of standard deviation 0.02 · √80
    assert model.embedding.weight.std().item() == pytest.approx(0.02, rel=0.03)
    assert model.blocks[2].project.weight.std().item() == pytest.approx(0.02 / 6**0.5, rel=0.03)


def test_hessian_products_match_differences_of_gradients():
    model = small().double()
    text = some_text(3, 7)
    operator = HessianOperator(model, next_byte_loss, (text[:, :-1], text[:, 1:]))
    direction = torch.randn(operator.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(2))

    def gradient():
        loss = next_byte_loss(model(text[:, :-1]), text[:, 1:])
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])

    start = operator.parameter_vector()
    ends = []
    for sign in (1, -1):
        torch.nn.utils.vector_to_parameters(start + sign * 1e-5 * direction, model.parameters())
        ends.append(gradient())
    torch.nn.utils.vector_to_parameters(start, model.parameters())
    expected = (ends[0] - ends[1]) / 2e-5
    assert torch.allclose(operator(direction), expected, rtol=1e-5, atol=1e-6 * expected.abs().max().item())


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="transformer: 'divisor' must be <= 20"):
        transformer(divisor=21)
    with pytest.raises(ValueError, match="transformer: 'num_classes' must be >= 1, got 0"):
        transformer(0)
    with pytest.raises(ValueError, match="Transformer: 'text' must be at most 128 columns wide, got 129"):
        small()(some_text(1, 129))
