import contextlib

import pytest
import torch

from paper.models.making import divided, drawn_from


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


def test_widths_are_divided_and_rounded_down():
    assert divided("net", (64, 96, 100), 1) == (64, 96, 100)
    assert divided("net", (64, 96, 100), 16) == (4, 6, 6)
    assert divided("net", (64, 96, 100), 64) == (1, 1, 1)


@pytest.mark.parametrize(
    ("divisor", "error", "message"),
    [
        (65, ValueError, "net: 'divisor' must be <= 64, the smallest width, got 65"),
        (0, ValueError, "net: 'divisor' must be >= 1, got 0"),
        (2.0, TypeError, r"net: 'divisor' must be an integer, got 2\.0"),
    ],
)
def test_a_divisor_must_leave_every_width_at_least_one(divisor, error, message):
    with pytest.raises(error, match=message):
        divided("net", (96, 64), divisor)
