import contextlib

import pytest
import torch

from paper.models.seeding import drawn_from


def numbers(seed):
    with drawn_from(seed):
        return torch.rand(5).tolist()


def test_numbers_come_from_the_seed_alone():
    torch.rand(3)
    assert numbers(1) == numbers(1) != numbers(2)


def test_the_state_outside_is_restored_also_after_an_error():
    before = torch.get_rng_state()
    with contextlib.suppress(KeyError), drawn_from(7):
        torch.rand(5)
        raise KeyError
    assert torch.equal(torch.get_rng_state(), before)


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="build: 'seed' must be >= 0, got -1"), drawn_from(-1):
        pass
