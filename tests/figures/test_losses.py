import pytest

from eigencurve.planning.spectrum import compare_schedules
from eigencurve.spectrum.source import law_source

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.figures.losses import losses_figure


def test_losses_are_drawn_as_bias_and_variance():
    compared = compare_schedules(law_source(1.5, 1e3), 50)
    axes = losses_figure(compared).axes[0]
    ends = {}
    for bar in axes.patches:
        ends[bar.get_y()] = max(ends.get(bar.get_y(), 0.0), bar.get_x() + bar.get_width())
    assert sorted(ends.values()) == pytest.approx(sorted(row.loss for row in compared.rows))
    assert axes.lines[-1].get_xdata()[0] == compared.lower_bound
