import numpy as np
import pytest

import eigencurve as ec

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.figures.schedules import schedule_figure

LAW = ec.PowerLaw(1.5, 5e-4, 180.0)


def test_a_figure_shows_the_rates_of_every_schedule(tmp_path):
    named = {"eigencurve": ec.eigencurve(LAW, 10**6, 0.1), "cosine": ec.cosine(10**6, 0.1)}
    figure = schedule_figure(named, title="a million steps")
    for axes, scale in zip(figure.axes, ("linear", "log"), strict=True):
        assert axes.get_yscale() == scale
        for line, f in zip(axes.lines, named.values(), strict=True):
            steps = line.get_xdata()
            assert {0, 999_999} <= set(steps.tolist())
            np.testing.assert_array_equal(line.get_ydata(), f(steps))
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == list(named)
    figure.savefig(tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes()[:4] == b"\x89PNG"


def test_one_schedule_needs_no_name():
    assert len(schedule_figure(ec.cosine(10, 0.1)).axes[0].lines) == 1
    with pytest.raises(ValueError, match="'schedules' must be at least one"):
        schedule_figure({})
