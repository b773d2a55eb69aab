import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad

import eigencurve as ec
from eigencurve.spectrum.power_law import fitted_law

exponents = st.floats(-3, 5)


@given(alpha=exponents, kappa=st.floats(1.5, 1e8))
def test_the_distribution_function_is_the_integral_of_the_density(alpha, kappa):
    law = ec.PowerLaw(alpha, 0.01, 0.01 * kappa)
    inside = 0.01 * kappa ** np.array([0.2, 0.7])
    density = lambda u: math.exp((1 - alpha) * (u - (math.log(kappa) if alpha < 1 else 0)))  # noqa: E731
    whole = quad(density, 0, math.log(kappa), epsabs=0, epsrel=1e-11, limit=200)[0]
    parts = [quad(density, 0, math.log(x / 0.01), epsabs=0, epsrel=1e-11, limit=200)[0] for x in inside]
    assert_allclose(law.cumulative(inside), np.array(parts) / whole, rtol=1e-7, atol=1e-300)
    assert law.cumulative(law.mu) == 0
    assert law.cumulative(law.L) == 1
    assert law.kappa == pytest.approx(kappa)


@given(alpha=st.floats(0.2, 4), kappa=st.floats(10, 1e7))
def test_the_fit_finds_the_exponent_of_a_dense_sample(alpha, kappa):
    law = ec.fit_power_law(ec.PowerLaw(alpha, 1e-3, 1e-3 * kappa).spectrum(num=4000))
    assert law.alpha == pytest.approx(alpha, abs=2e-3)
    assert law.distance < 0.01


def test_the_error_counts_parameters_where_the_dimension_is_known():
    s = ec.PowerLaw(1.5, 1e-3, 10.0).spectrum(num=1000)
    large = ec.Spectrum(s.eigenvalues, s.weights, dim=10**6)
    assert ec.fit_power_law(s).alpha_error == pytest.approx(ec.fit_power_law(large).alpha_error * math.sqrt(1000))


def test_its_spectrum_spans_the_range_and_keeps_the_mass():
    law = ec.PowerLaw(1.4, 2e-4, 50.0)
    s = law.spectrum(num=300, dim=10**9)
    assert (s.mu, s.L, len(s), s.dim) == (2e-4, 50.0, 300, 10**9)
    assert_allclose(np.cumsum(s.weights)[149], law.cumulative(math.sqrt(s.eigenvalues[149] * s.eigenvalues[150])))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ((1.5, 0.0, 1.0), "'mu' must be > 0"),
        ((1.5, 1.0, 1.0), "'L' must be > mu = 1"),
        ((float("nan"), 1.0, 2.0), "'alpha' must be finite"),
        ((1.5, 1e-300, 1e300), "'L' must be small enough for L / mu to be finite, got 1e"),
    ],
)
def test_refuses_bad_settings(settings, match):
    with pytest.raises(ValueError, match="PowerLaw: " + match):
        ec.PowerLaw(*settings)


def test_refuses_to_fit_a_point():
    for s in (ec.Spectrum([2.0], [1]), ec.Spectrum([2.0, 2.0], [1, 1]), ec.Spectrum([1.0, 1e3], [1, 1e-12])):
        with pytest.raises(ValueError, match="fit_power_law: 'spectrum' must be spread between mu and L"):
            ec.fit_power_law(s)
    with pytest.raises(ValueError, match="'num' must be >= 2"):
        ec.PowerLaw(1.5, 1.0, 2.0).spectrum(num=1)


def test_a_published_spectrum_is_a_power_law_above_its_bulk(data_path):
    p = ec.spectrum.prepare(ec.load_spectrum(data_path("spectra/resnet-18_imagenet.txt")), weight_decay=1e-4)
    with pytest.warns(UserWarning, match="No power law fits the spectrum: the one with exponent 1.23"):
        law = ec.fit_power_law(p)
    # Recorded from this fit: the paper shows the law in a figure, without a number.
    assert law.alpha == pytest.approx(1.23, abs=0.01)
    assert 0 < law.distance < 0.25


def test_a_law_that_does_not_fit_has_a_doubt_with_a_remedy():
    two = ec.Spectrum([1.0, 1e3], [1, 1])
    with pytest.warns(UserWarning, match="fit_power_law: No power law fits the spectrum.*from the spectrum itself"):
        law = ec.fit_power_law(two)
    assert law == fitted_law(two)
    assert "% of the eigenvalues" in law.warning
    assert ec.PowerLaw(1.5, 1e-3, 1.0).warning == ""  # assumed, not fitted
    assert ec.fit_power_law(ec.PowerLaw(1.5, 1e-3, 1.0).spectrum()).warning == ""


@given(mu=st.floats(1e-8, 1.0), kappa=st.floats(1.01, 1e8), num=st.integers(2, 50))
def test_the_eigenvalues_of_its_spectrum_are_geometric_with_exact_ends(mu, kappa, num):
    law = ec.PowerLaw(1.3, mu, mu * kappa)
    eigenvalues = law.spectrum(num).eigenvalues
    assert (eigenvalues[0], eigenvalues[-1]) == (law.mu, law.L)
    assert_allclose(np.diff(np.log(eigenvalues)), math.log(law.kappa) / (num - 1), rtol=1e-6)


def test_a_flat_cumulative_share_that_falls_by_rounding_is_accepted(monkeypatch):
    shares = np.array([0.5, 1.0, 1.0 - 2**-53, 1.0])
    monkeypatch.setattr(ec.PowerLaw, "cumulative", lambda *_: shares)
    found = ec.PowerLaw(4.0, 1.0, 6e4).spectrum(5)
    assert_allclose(found.weights, [0.5, 0.5, 0, 0, 0], atol=1e-15)
    assert (found.weights >= 0).all()
