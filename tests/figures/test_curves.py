import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.figures.curves import curves_panel


def test_curves_are_on_a_log_axis_where_they_span_a_factor_of_ten():
    for numbers, scale in (([10.0, 1.0], "log"), ([9.0, 1.0], "linear"), ([10.0, 0.0], "linear"), ([1e-9, 1.0], "log")):
        axes = curves_panel({"a": ([0, 1], numbers), "b": ([0, 1], [1.0, 1.0])}, "step", "loss").axes[0]
        assert axes.get_yscale() == scale
