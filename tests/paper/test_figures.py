import numpy as np
from tests.spectrum.test_noise import noise as example

import eigencurve as ec
from paper.figures import curves_figure, noise_figure, spectrum_figure


def test_a_spectrum_figure_has_a_bar_per_octave():
    law = ec.PowerLaw(1.5, 5e-4, 180.0)
    figure = spectrum_figure(law.spectrum(300))
    assert len(figure.axes[0].patches) == len(ec.spectrum.group(law))


def test_each_estimate_has_its_error_bars_and_each_schedule_its_curve():
    noise = example()
    schedules = {"start": ec.cosine(50, 0.1), "end": ec.linear(50, 0.2)}
    figure = noise_figure({"start": noise, "end": noise}, schedules, "A net")
    left, right = figure.axes
    assert len(left.containers) == 2
    seen = noise.octaves.error < noise.octaves.sigma2
    for bars in left.containers:
        np.testing.assert_allclose(bars.lines[0].get_ydata(), noise.octaves.sigma2[seen])
    assert [line.get_ydata()[0] for line in right.lines] == [1.0, 1.0]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["start", "end"]
    assert f"batches of {noise.batch_size}" in left.get_title()


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
