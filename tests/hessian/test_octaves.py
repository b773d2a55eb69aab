import numpy as np
import pytest

import eigencurve as ec
from eigencurve.hessian.octaves import octave_shares


def test_a_single_probe_has_the_variance_of_the_beta_distribution():
    spectrum = ec.Spectrum([1.0, 3.0], [1, 3])
    octaves = octave_shares(spectrum, [spectrum], [], weight_decay=1e-9, dim=100)
    np.testing.assert_allclose(octaves.error, np.sqrt(2 * 0.25 * 0.75 / 102))


def test_probes_that_scatter_more_than_theory_widen_the_error():
    mean, first, second = (ec.Spectrum([1.0, 3.0], [1 - share, share]) for share in (0.5, 0.3, 0.7))
    octaves = octave_shares(mean, [first, second], [], weight_decay=1e-9, dim=10**6)
    np.testing.assert_allclose(octaves.share, [0.5, 0.5])
    np.testing.assert_allclose(octaves.error, np.std([0.3, 0.7], ddof=1) / np.sqrt(2))


def test_the_change_over_the_last_steps_is_added():
    spectrum, before = ec.Spectrum([1.0, 3.0], [1, 3]), ec.Spectrum([1.0, 3.0], [2, 2])
    alone = octave_shares(spectrum, [spectrum], [], weight_decay=1e-9, dim=100)
    both = octave_shares(spectrum, [spectrum], [before], weight_decay=1e-9, dim=100)
    np.testing.assert_allclose(both.error**2, alone.error**2 + 0.25**2)


def test_shares_sum_to_one_and_leave_empty_octaves_out():
    spectrum = ec.Spectrum([-1.0, 0.0, 5.0, 40.0], [1, 5, 3, 1])
    octaves = octave_shares(spectrum, [spectrum], [], weight_decay=1e-3, dim=100)
    assert octaves.share.sum() == pytest.approx(1)
    assert octaves.index.tolist() == [0, 9, 12, 15]
    np.testing.assert_allclose(octaves.lower, 1e-3 * 2.0**octaves.index)
