import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eigencurve as ec
from eigencurve.spectrum.groups import octave_index
from eigencurve.spectrum.octaves import nearest_octave, octave_counts


def test_counts_and_sums_are_those_of_the_prepared_spectrum():
    spectrum = ec.Spectrum([-0.5, 0.0, 0.1, 4.0], [1, 5, 3, 1], dim=20)
    grid = octave_counts(spectrum, 0.5, 20)
    np.testing.assert_allclose(grid.lower, [0.5, 1.0, 4.0])
    np.testing.assert_allclose(grid.num_eigenvalues, [16, 2, 2])
    np.testing.assert_allclose(grid.eigenvalue_sum, [10 * 0.5 + 6 * 0.6, 2 * 1.0, 2 * 4.5])


def test_masses_are_summed_by_absolute_value():
    grid = octave_counts(ec.Spectrum([0.5, 3.5], [1, 1]), 0.5, 2)
    np.testing.assert_allclose(grid.total(np.array([-0.5, 0.6, 3.5, -100.0]), np.array([1.0, 2.0, 4.0, 8.0])), [3, 12])


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30))
def test_every_eigenvalue_is_in_the_octave_of_its_group(values):
    spectrum = ec.Spectrum(values, np.ones(len(values)))
    groups = ec.spectrum.group(spectrum)
    place = nearest_octave(spectrum.eigenvalues, groups.lower)
    np.testing.assert_array_equal(groups.index[place], octave_index(spectrum.eigenvalues, spectrum.mu))


@pytest.mark.parametrize(("height", "place"), [(1e-9, 0), (1.99, 0), (3.9, 0), (4.1, 1), (8.0, 1), (1e9, 1)])
def test_gaps_and_ends_belong_to_the_nearest_octave(height, place):
    assert nearest_octave(np.array([height]), np.array([1.0, 8.0]))[0] == place


def test_quantities_and_columns_are_attributes_also_of_copies():
    counts = octave_counts(ec.Spectrum([0.5, 3.5], [1, 1]), 0.5, 2)
    for table in (counts, copy.deepcopy(counts), pickle.loads(pickle.dumps(counts))):
        np.testing.assert_array_equal(table.num_eigenvalues, table.value)
        np.testing.assert_array_equal(table.eigenvalue_sum, counts.columns["eigenvalue_sum"])
        with pytest.raises(AttributeError, match="no 'sigma2'"):
            _ = table.sigma2
