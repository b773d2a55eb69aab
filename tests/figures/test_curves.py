import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.figures.curves import curves_figure, curves_panel


def test_curves_are_on_a_log_axis_where_they_span_a_factor_of_ten():
    for numbers, scale in (([10.0, 1.0], "log"), ([9.0, 1.0], "linear"), ([10.0, 0.0], "linear"), ([1e-9, 1.0], "log")):
        axes = curves_panel({"a": ([0, 1], numbers), "b": ([0, 1], [1.0, 1.0])}, "step", "loss").axes[0]
        assert axes.get_yscale() == scale


def test_every_panel_has_its_title_and_one_legend_serves_all():
    curves = {"a": ([0, 1], [1.0, 2.0]), "b": ([0, 1], [2.0, 1.0])}
    figure = curves_figure({"one": curves, "two": curves, "three": curves}, "step", "loss")
    assert [axes.get_title() for axes in figure.axes] == ["one", "two", "three"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_panels_with_different_curves_share_no_style():
    curve = ([0, 1], [1.0, 2.0])
    figure = curves_figure({"one": {"a": curve, "b": curve}, "two": {"c": curve, "b": curve}}, "step", "loss")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "c"]
    styles = {(line.get_label(), line.get_color(), line.get_linestyle()) for axes in figure.axes for line in axes.lines}
    assert len(styles) == 3  # b looks the same in both
    assert len({style[1:] for style in styles}) == 3
