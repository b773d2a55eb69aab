import pytest

import eigencurve as ec

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.figures.files import figure_bytes
from eigencurve.figures.rates import schedule_figure

HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", HEADS)
def test_the_same_figure_gives_the_same_bytes(suffix):
    first, second = (figure_bytes(schedule_figure(ec.cosine(9, 0.1)), suffix) for _ in range(2))
    assert first == second
    assert first.startswith(HEADS[suffix])


def test_another_ending_is_refused():
    with pytest.raises(ValueError, match=r"figure_bytes: 'suffix' must be one of '\.png', .* got '\.gif'"):
        figure_bytes(schedule_figure(ec.cosine(9, 0.1)), ".gif")
