import numpy as np
import pytest

from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum
from paper.engine.request import Request
from paper.theory.paper_figures import (
    BETAS,
    NamedSpectrum,
    available_spectra,
    cosine_picture,
    cosine_power_picture,
    illustration,
    make,
    power_law_picture,
    spectra_picture,
)

NAMES = ["illustration", "spectra", "power_law", "eigencurve_and_cosine", "cosine_power"]


def test_without_data_the_shipped_spectrum_is_drawn_and_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    made = make(Request())
    page = made.write(tmp_path / "out", "Made by `the command`.")[0].read_text()
    assert "spectra that eigencurve ships" in page
    assert "ResNet-20" in page
    assert "Made by `the command`" in page
    assert list(made.values["figures"]) == NAMES
    for name in NAMES:
        assert f"](figures/{name}.png)" in page
        assert (tmp_path / "out" / "figures" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_published_spectra_are_taken_where_all_are_there(data_path):
    folder = data_path("spectra/resnet-18_imagenet.txt").parent.parent
    made = make(Request(data=folder))
    assert "authors published" in made.values["source"]
    captions = made.values["figures"]
    # The paper's "extremely similar learning rate curve" at 100 epochs, with its own β and no other.
    assert "0.18, 0.07, 0.17 with β = 1.000005" in captions["eigencurve_and_cosine"]
    assert "0.63, 0.50, 0.34 with β = 2" in captions["eigencurve_and_cosine"]


def test_a_folder_with_some_of_them_is_not_mixed_with_the_zoo(tmp_path):
    (tmp_path / "spectra").mkdir()
    (tmp_path / "spectra" / "googlenet_cifar10.txt").write_text("1.0 1.0\n")
    source, found = available_spectra(tmp_path)
    assert "ships" in source
    assert "ResNet-20" in {item.title for item in found}
    assert len(found) > 1


def example():
    return NamedSpectrum("an example", Spectrum(np.linspace(-0.5, 40, 200), np.linspace(2, 0.01, 200)), 1e-3)


def heights(axes):
    return sum(patch.get_height() for patch in axes.patches)


def test_bars_have_all_of_the_spectrum_before_and_after_preprocessing():
    upper, lower = spectra_picture([example()]).figure.axes
    assert heights(upper) == pytest.approx(1)
    assert heights(lower) == pytest.approx(1)
    assert (upper.get_xscale(), lower.get_xscale()) == ("linear", "log")
    assert {upper.get_yscale(), lower.get_yscale()} == {"log"}
    assert upper.patches[0].get_x() == pytest.approx(-0.5)
    assert lower.patches[0].get_x() > 0


def test_a_power_law_is_a_line_with_its_exponent():
    law = PowerLaw(1.4, 1e-3, 10.0)
    measured, fitted = power_law_picture(NamedSpectrum("a law", law.spectrum(3000), 0.0)).figure.axes[0].lines
    x, y = np.log(measured.get_xdata()), np.log(measured.get_ydata())
    assert np.polyfit(x, y, 1)[0] == pytest.approx(-1.4, abs=0.02)
    assert np.allclose(y, np.log(fitted.get_ydata()), atol=0.05)  # a hundred nodes in a bin


def test_the_illustration_has_a_piece_for_every_group():
    axes = illustration().figure.axes[0]
    assert len(axes.patches) == 4
    widths = np.array([patch.get_width() for patch in axes.patches])
    assert widths / widths.sum() == pytest.approx(
        np.sqrt([0.5, 0.25, 0.15, 0.1]) / np.sqrt([0.5, 0.25, 0.15, 0.1]).sum()
    )


def test_every_panel_has_cosine_and_the_curves_of_every_beta():
    panels = cosine_picture(example()).figure.axes
    assert [axes.get_title() for axes in panels] == ["50 epochs", "100 epochs", "200 epochs"]
    for axes in panels:
        assert len(axes.lines) == 1 + len(BETAS)
        for line in axes.lines:
            assert line.get_ydata()[0] == pytest.approx(0.1)
            assert line.get_ydata()[-1] < 1e-3


def test_cosine_powers_are_powers_of_cosine():
    upper, lower = cosine_power_picture().figure.axes
    root, plain, square = (line.get_ydata() for line in upper.lines)
    assert np.allclose(root**2, plain)
    assert np.allclose(plain**2, square)
    assert (upper.get_yscale(), lower.get_yscale()) == ("linear", "log")
