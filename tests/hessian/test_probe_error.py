import math
from itertools import combinations

import numpy as np
import pytest
import torch
from tests.hessian.matrices import MatrixOperator, hessian_like

from eigencurve.hessian import estimate_spectrum
from eigencurve.hessian.probe_error import distance_between, probe_error
from eigencurve.hessian.settling import Settling, log_curve
from eigencurve.spectrum.quadrature import Sharpened
from eigencurve.spectrum.spectrum import Spectrum


@pytest.mark.parametrize(("dim", "num_steps"), [(4000, 60), (4000, 120), (1000, 40)])
def test_one_probe_predicts_how_far_others_are(dim, num_steps):
    """The prediction comes from a single probe; it is within a factor of three of the median distance of pairs."""
    operator = MatrixOperator(hessian_like(dim), torch.float64)
    found = [estimate_spectrum(operator, num_steps, settle=None, seed=seed, progress=False) for seed in range(5)]
    curves = [log_curve(estimate.spectrum, 5e-4, 39_100) for estimate in found]
    actual = np.median([np.abs(first - second).max() for first, second in combinations(curves, 2)])
    for estimate in found:
        assert actual / 3 < estimate.error_between_probes < 3 * actual


def test_more_probes_have_a_smaller_error():
    operator = MatrixOperator(hessian_like(1000), torch.float64)
    one, four = (
        estimate_spectrum(operator, 40, settle=None, num_probes=num, progress=False).error_between_probes
        for num in (1, 4)
    )
    assert 0.3 < four / one < 0.75  # half, up to the noise of 15 pairs


def test_a_spectrum_that_is_counted_completely_has_none():
    spectrum = Spectrum([1.0, 2.0, 4.0], np.ones(3))
    assert probe_error([Sharpened(spectrum, spectrum.eigenvalues)], 1e-3, 100, 3) == 0


def test_it_is_the_same_in_every_call():
    spectrum = Spectrum([1e-3, 1.0, 40.0], [0.9, 0.05, 0.05])
    probes = [Sharpened(spectrum, np.array([40.0]))]
    assert probe_error(probes, 1e-3, 1000, 200) == probe_error(probes, 1e-3, 1000, 200) > 0


def test_several_probes_also_measure_how_far_they_are_from_each_other():
    operator = MatrixOperator(hessian_like(1000), torch.float64)
    found = estimate_spectrum(operator, 40, settle=None, num_probes=3, progress=False)
    singles = [
        Settling(5e-4, 39_100, torch.float64, 1000).curve(*run) for run in zip(found.alphas, found.betas, strict=True)
    ]
    wanted = max(np.abs(first - second).max() for first, second in combinations(singles, 2))
    assert found.distance_between_probes == pytest.approx(wanted, rel=1e-12)
    assert (
        found.error_between_probes < found.distance_between_probes
    )  # the mean of three probes is closer to that of another three
    assert f"across probes {found.error_between_probes:.2%}" in repr(found)
    assert repr(found).startswith("SpectrumEstimate(120 products, 3 probes, num_steps, ")


def test_one_probe_measures_nothing_between_probes():
    found = estimate_spectrum(MatrixOperator(hessian_like(1000), torch.float64), 40, settle=None, progress=False)
    assert math.isnan(found.distance_between_probes)
    assert math.isnan(distance_between([], 5e-4, 100))
