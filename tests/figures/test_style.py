from itertools import pairwise

from eigencurve.figures.style import COLOURS, style


def test_curves_differ_in_colour_and_in_dashes():
    looks = [tuple(map(str, style(i).values())) for i in range(49)]
    assert len(set(looks)) == 49
    for first, second in pairwise(looks):
        assert first[0] != second[0]
        assert first[1] != second[1]
    assert len(COLOURS) == 7
