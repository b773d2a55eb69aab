import pytest

from paper.models.widths import divided


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
