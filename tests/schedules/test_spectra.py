import numpy as np
import pytest

import eigencurve as ec
from eigencurve.schedules.spectra import compare_spectra, log_distance
from eigencurve.spectrum.source import bytes_source


def test_a_comparison_of_spectra_is_that_of_their_groups():
    files = {
        "small.txt": b"-0.002 0.5\n0.001 20\n0.01 12\n0.2 6\n3.0 1.5\n",
        "positive.txt": b"0.001 20\n0.05 12\n0.7 6\n",
    }
    subjects = {name: bytes_source(content, ".txt", name, 1e-3) for name, content in files.items()}
    compared = compare_spectra(subjects, 100)
    for name, subject in subjects.items():
        assert compared.shares[name].sum() == pytest.approx(1)
        inside = [
            subject.spectrum.weights[
                (subject.spectrum.eigenvalues >= low) & (subject.spectrum.eigenvalues < 2 * low)
            ].sum()
            for low in compared.lower
        ]
        np.testing.assert_allclose(compared.shares[name], inside)
        assert compared.extra_terms[name] == ec.extra_term(subject.spectrum)
    curves = [ec.eigencurve(subject.spectrum, 100, 1.0).values() for subject in subjects.values()]
    assert compared.distances["small.txt", "positive.txt"] == pytest.approx(np.abs(np.log(curves[0] / curves[1])).max())
    with pytest.raises(ValueError, match="at least two spectra"):
        compare_spectra({"one": subjects["small.txt"]}, 100)


def test_schedules_of_different_lengths_have_no_distance():
    with pytest.raises(ValueError, match="log_distance: 'second' must be of 5 steps"):
        log_distance(ec.cosine(5, 0.1), ec.cosine(6, 0.1))
