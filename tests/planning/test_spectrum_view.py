import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid

import eigencurve as ec
from eigencurve.planning.spectrum_view import spectrum_view
from eigencurve.spectrum.source import SpectrumSource, law_source, zoo_source
from eigencurve.spectrum.zoo import zoo_spectrum

NAME, DECAY = "resnet20_cifar10", 5e-4
LAW = law_source(1.2, 1e4, 1e-3)


def test_the_octaves_are_the_librarys():
    view = spectrum_view(zoo_source(NAME, DECAY))
    raw, prepared = zoo_spectrum(NAME), ec.spectrum.prepare(zoo_spectrum(NAME), DECAY)
    groups = ec.spectrum.group(prepared)
    assert_allclose((view.positive + view.negative)[groups.index], groups.share, rtol=1e-9)
    assert_allclose(view.lower[groups.index], groups.lower)
    assert_allclose(view.positive.sum() + view.negative.sum(), 1.0)
    assert_allclose(view.negative.sum(), raw.weights[raw.eigenvalues < 0].sum())
    assert view.negative.sum() == pytest.approx(view.fraction_negative)
    assert (view.positive >= 0).all()
    described = raw.describe(DECAY)
    assert (view.mu, view.L, view.kappa) == (described.mu, described.L, described.kappa)
    assert (view.extra_term, view.num_nodes, view.dim) == (described.extra_term, len(raw), raw.dim)


def test_a_power_law_has_no_negative_part():
    view = spectrum_view(LAW)
    assert (view.negative == 0).all()
    assert_allclose(view.positive, ec.spectrum.group(ec.PowerLaw(1.2, 1e-3, 10.0)).share)


def test_the_density_is_a_share_per_octave():
    view = spectrum_view(LAW)
    assert_allclose(trapezoid(view.density, np.log2(view.curve)), 1.0, rtol=0.01)


def test_two_eigenvalues_and_equal_ones():
    assert spectrum_view(SpectrumSource("two", ec.Spectrum([1.0, 3.0], [1, 1]), 0.0)).lower.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="kappa > 1"):
        spectrum_view(SpectrumSource("equal", ec.Spectrum([1.0, 1.0], [1, 1]), 0.0))
