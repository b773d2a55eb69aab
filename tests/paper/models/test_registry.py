import pytest
import torch

from paper.models.registry import MODELS, build


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_gradients_of_every_network(name):
    size = 64 if name.startswith("imagenet") else 32
    model = build(name, num_classes=7, divisor=16)
    reads_text = name == "transformer"
    logits = model(torch.randint(0, 7, (4, size)) if reads_text else torch.randn(4, 3, size, size))
    assert logits.shape == ((4, size, 7) if reads_text else (4, 7))
    logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_weights_come_from_the_seed_alone(name):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    one, again, other = (build(name, 10, divisor=16, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    for key, value in one.state_dict().items():
        assert torch.equal(value, again.state_dict()[key])
    assert any(not torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_divisors_that_leave_no_channel_are_refused(name):
    with pytest.raises(ValueError, match=rf"{name}: 'divisor' must be <= \d+, the smallest width, got 100"):
        build(name, 10, divisor=100)
    with pytest.raises(ValueError, match=rf"{name}: 'divisor' must be >= 1, got 0"):
        build(name, 10, divisor=0)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"build: 'name' must be one of 'resnet18', .* got 'resnet19'"):
        build("resnet19", 10)
