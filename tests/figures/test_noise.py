import numpy as np
import pytest
from tests.spectrum.test_noise import noise as example

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve import cosine, linear
from eigencurve.figures.noise import noise_figure


def test_each_estimate_has_its_error_bars_and_each_schedule_its_curve():
    noise = example()
    figure = noise_figure({"start": noise, "end": noise}, {"start": cosine(50, 0.1), "end": linear(50, 0.2)}, "A net")
    left, right = figure.axes
    assert len(left.containers) == 2
    seen = noise.octaves.error < noise.octaves.sigma2
    for bars in left.containers:
        np.testing.assert_allclose(bars.lines[0].get_ydata(), noise.octaves.sigma2[seen])
    assert [line.get_ydata()[0] for line in right.lines] == [1.0, 1.0]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["start", "end"]
    assert f"batches of {noise.batch_size}" in left.get_title()
