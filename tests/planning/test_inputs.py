import dataclasses
import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.spectrum.test_noise import noise
from tests.spectrum.test_start import START

import eigencurve as ec
from eigencurve.planning.inputs import ASSUMED_LOSS, ASSUMED_NOISE, inputs_of, quadratic_of
from eigencurve.planning.subject import Subject, law_subject

SPECTRUM = ec.Spectrum([-0.1, 0.2, 3.0], [1, 6, 3], dim=10)
PLAIN = Subject("net", SPECTRUM, 5e-4)
NOISY = dataclasses.replace(PLAIN, noise=noise())
BEGUN = dataclasses.replace(PLAIN, start=START)
BOTH = dataclasses.replace(NOISY, start=START)


def test_measured_noise_and_start_are_used_per_octave():
    inputs = inputs_of(BOTH)
    prepared = ec.spectrum.prepare(SPECTRUM, 5e-4)
    assert (inputs.noise_source, inputs.start_source) == ("measured", "measured")
    assert quadratic_of(BOTH, inputs, 0.9) == ec.NoisyQuadratic(prepared, noise(), START, 0.9)
    assert len(set(np.asarray(inputs.noise).tolist())) == 2
    assert inputs.lines[0] == "Noise: measured, σ² = 0.9 (B = 4, γ = 1.10)"
    assert inputs.lines[1] == "Start: measured, excess loss 5 (from the gradient)"
    unknown = dataclasses.replace(NOISY, noise=noise(exponent=math.nan))
    assert "γ unknown" in inputs_of(unknown).noise_text


def test_what_is_given_comes_first():
    inputs = inputs_of(BOTH, 3.0, 2.0)
    assert quadratic_of(BOTH, inputs) == ec.NoisyQuadratic(ec.spectrum.prepare(SPECTRUM, 5e-4), 3.0, 2.0)
    assert inputs.lines == ("Noise: given, σ² = 3", "Start: given, initial error 2 in every direction")


def test_one_default_if_nothing_was_measured():
    for subject in (PLAIN, law_subject(1.5, 1e3)):
        inputs = inputs_of(subject)
        assert (inputs.noise, inputs.start) == (ASSUMED_NOISE, 1.0)
        assert inputs.lines == (
            "Noise: assumed, σ² = 10,000; measure it with `eigencurve estimate --noise`",
            "Start: assumed, initial error 1 in every direction",
        )


def test_what_is_assumed_has_the_scale_of_what_is_measured():
    start = inputs_of(NOISY).start
    assert SPECTRUM.dim * start / 2 == pytest.approx(ASSUMED_LOSS)
    assert inputs_of(NOISY).start_text == "assumed, initial error 0.2 in every direction (an excess loss of 1)"
    assert inputs_of(NOISY, noise=7.0).start == start  # an override of the noise does not change the start
    prepared = ec.spectrum.prepare(SPECTRUM, 5e-4)
    assert inputs_of(BEGUN).noise == pytest.approx(
        ASSUMED_NOISE * prepared.weights @ START.errors(prepared.eigenvalues)
    )
    assert inputs_of(PLAIN, initial_error=2.0).noise == 2 * ASSUMED_NOISE


def test_noise_is_inversely_proportional_to_the_batch_size():
    assert_allclose(inputs_of(NOISY, batch_size=16).noise, np.asarray(inputs_of(NOISY).noise) / 4)
    assert inputs_of(NOISY, batch_size=16).noise_text == "measured, σ² = 0.225 (B = 16, γ = 1.10)"
    with pytest.raises(ValueError, match="'batch_size' must be left out if the file has no measured noise"):
        inputs_of(PLAIN, batch_size=16)
    with pytest.raises(ValueError, match="'batch_size' must be left out if the noise is given"):
        inputs_of(NOISY, noise=1.0, batch_size=16)
    with pytest.raises(ValueError, match="'batch_size' must be >= 1"):
        inputs_of(NOISY, batch_size=0)


@pytest.mark.parametrize("decay", [1e-6, 5e-4, 0.1])
def test_another_weight_decay_changes_neither_the_variance_nor_the_displacement(decay):
    """σ_j² λ_j is the variance of the noise, and error / λ_j the squared displacement."""
    before, other = BOTH.spectrum.eigenvalues, dataclasses.replace(BOTH, weight_decay=decay)
    after, inputs = other.spectrum.eigenvalues, inputs_of(other)
    assert_allclose(inputs.noise * after, noise().levels(before) * before, rtol=1e-9)
    assert_allclose(inputs.start / after, START.errors(before) / before, rtol=1e-9)
    if decay == 5e-4:
        assert_array_equal(inputs.noise, noise().levels(before))


@pytest.mark.parametrize("subject", [PLAIN, NOISY, BEGUN, BOTH])
def test_fields_are_plain_and_name_the_source(subject):
    inputs = inputs_of(subject)
    fields = inputs.fields()
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    assert fields["noise"]["source"] == inputs.noise_source
    assert fields["initial_error"]["source"] == inputs.start_source
    unknown = dataclasses.replace(NOISY, noise=noise(exponent=math.nan))
    assert inputs_of(unknown).fields()["noise"] == {
        "source": "measured", "sigma2": 0.9, "batch_size": 4, "exponent": None,
    }  # fmt: skip
