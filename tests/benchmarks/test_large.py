from benchmarks import large


def test_an_estimate_is_measured_in_this_process():
    result = large.measure_size((64, 8, 1, 2))
    assert result.dim == 64 * 8 + 64 * 8 + 12 * 8**2 + 4 * 8 + 2 * 8
    assert result.vector_bytes == 8 * 4 * result.dim
    assert result.product_seconds > 0 < result.other_seconds
    assert 0 < result.before_bytes <= result.peak_bytes
    assert result.largest > 0


def test_the_page_has_the_table_and_the_figure(monkeypatch):
    size = large.SizeResult(124_356_864, 3.21, 0.5, 3_979_419_648, 1_500_000_000, 6_000_000_000, 12.0)
    monkeypatch.setattr(large, "in_new_process", lambda *_: size)
    page = large.make()
    assert "A product took 3.2 s, the rest of a step 0.5 s." in page.body
    assert "| 124,356,864 | 3.21 | 0.5 | 3,979 | 1,500 | 6,000 |" in page.body
    assert set(page.figures) == {"large.png"}


def test_times_and_sizes_have_a_panel_each():
    figure = large.scaling_figure([10, 1000], {"product": [0.1, 2.0], "rest": [0.01, 0.1]}, {"peak": [0.5, 1.0]})
    times, sizes = figure.axes
    assert [line.get_label() for line in times.lines] == ["product", "rest"]
    assert times.lines[0].get_xydata().tolist() == [[10, 0.1], [1000, 2.0]]
    assert sizes.lines[0].get_ydata().tolist() == [0.5, 1.0]
    assert {axes.get_xscale() for axes in figure.axes} | {axes.get_yscale() for axes in figure.axes} == {"log"}
