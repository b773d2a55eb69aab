import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.spectrum.test_measurement import shares

import eigencurve as ec
from eigencurve.spectrum.describe import describe_spectrum
from eigencurve.spectrum.power_law import fitted_law


def test_description_says_it_all():
    s = ec.Spectrum([-0.5, 0.0, 1.0, 100.0], [1, 5, 3, 1], dim=1234)
    d = s.describe(weight_decay=0.01)
    p = ec.spectrum.prepare(s, 0.01)
    assert (d.dim, d.num_nodes, d.kappa) == (1234, 4, p.kappa)
    assert d.fraction_negative == pytest.approx(0.1)
    assert d.extra_term == ec.extra_term(p)
    assert d.exponent == fitted_law(p).alpha
    assert_array_equal(d.octaves.share, ec.spectrum.group(p).share)
    text = str(d)
    for part in ("1,234", "10.00%", f"{d.extra_term:.2f}", "condition kappa", "power-law exponent", "share per octave"):
        assert part in text
    assert len(text.splitlines()) == 8 + 1 + len(d.octaves)


def test_description_of_equal_eigenvalues_has_no_exponent():
    d = ec.Spectrum([2.0], [1]).describe()
    assert d.exponent is None
    assert "none" in str(d)
    assert ec.Spectrum([1.0, 1.0 + 1e-9], [1, 1e-12]).describe().kappa > 1


def test_bars_have_the_length_of_the_root_of_their_share():
    lines = str(ec.Spectrum([1.0, 2.0, 4.0, 8.0], [16, 4, 1, 1e-9]).describe()).splitlines()[-4:]
    assert [line.count("#") for line in lines] == [40, 20, 10, 1]


def test_the_error_of_the_exponent_is_that_of_the_known_number_of_eigenvalues():
    eigenvalues = np.geomspace(1.0, 1e4, 50)
    known = ec.Spectrum(eigenvalues, np.ones(50), dim=5000).describe().exponent_error
    unknown = ec.Spectrum(eigenvalues, np.ones(50)).describe().exponent_error
    assert unknown == pytest.approx(10 * known)


def test_errors_are_those_of_the_measured_octaves():
    s = ec.Spectrum([1.0, 2.0, 8.0], [1, 1, 1])
    assert describe_spectrum(s, 0.0).errors is None
    assert " +- " not in str(describe_spectrum(s, 0.0)).partition("share per octave")[2]
    measured = shares([0, 3], [1.0, 8.0], [0.5, 0.5], [0.01, 0.02])
    assert_array_equal(describe_spectrum(s, 0.0, measured).errors, [0.01, 0.0, 0.02])
