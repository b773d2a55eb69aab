import pytest
from tests.planning.measured import measured_source

from eigencurve.spectrum.groups import group
from eigencurve.spectrum.source import law_source

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.figures.spectra import octave_figure


def test_octaves_are_drawn_with_their_error_bars_and_law():
    axes = octave_figure(measured_source()).axes[0]
    labels = axes.get_legend_handles_labels()[1]
    assert {"share of the octave", "standard error", "Lanczos nodes"} <= set(labels)
    assert len(axes.patches) == len(group(measured_source().prepared))
    assert len(octave_figure(measured_source()).axes) == 2
    negative = octave_figure(measured_source()).axes[1]
    assert sum(bar.get_height() for bar in negative.patches) == pytest.approx(measured_source().fraction_negative)
    assert len(octave_figure(law_source(1.5, 100)).axes) == 1
