from eigencurve.figures.scaling import scaling_figure


def test_times_and_sizes_have_a_panel_each():
    figure = scaling_figure([10, 1000], {"product": [0.1, 2.0], "rest": [0.01, 0.1]}, {"peak": [0.5, 1.0]})
    times, sizes = figure.axes
    assert [line.get_label() for line in times.lines] == ["product", "rest"]
    assert times.lines[0].get_xydata().tolist() == [[10, 0.1], [1000, 2.0]]
    assert sizes.lines[0].get_ydata().tolist() == [0.5, 1.0]
    assert {axes.get_xscale() for axes in figure.axes} | {axes.get_yscale() for axes in figure.axes} == {"log"}
