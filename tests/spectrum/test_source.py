import dataclasses
import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.planning.measured import SPECTRUM as MEASURED
from tests.planning.measured import measured_source
from tests.spectrum.test_noise import noise
from tests.spectrum.test_start import START

import eigencurve as ec
from eigencurve.planning.spectrum import quadratic_of
from eigencurve.spectrum.files import spectrum_bytes
from eigencurve.spectrum.source import (
    ASSUMED_LOSS,
    ASSUMED_NOISE,
    SpectrumSource,
    bytes_source,
    file_source,
    input_fields,
    input_lines,
    law_source,
    with_inputs,
    zoo_source,
)
from eigencurve.spectrum.zoo import ZOO, zoo_spectrum

SPECTRUM = ec.Spectrum([-0.1, 0.2, 3.0], [1, 6, 3], dim=10)
PLAIN = SpectrumSource("net", SPECTRUM, 5e-4)
NOISY = dataclasses.replace(PLAIN, noise=noise())
BEGUN = dataclasses.replace(PLAIN, start=START)
BOTH = dataclasses.replace(NOISY, start=START)


def test_a_spectrum_of_the_zoo_has_its_weight_decay_and_is_read_once():
    source = zoo_source("resnet20_cifar10")
    assert (source.weight_decay, source.origin) == (ZOO["resnet20_cifar10"].weight_decay, "zoo")
    assert source.raw == zoo_spectrum("resnet20_cifar10")
    other = zoo_source("resnet20_cifar10", 1e-3)
    assert other.raw is source.raw
    assert other.spectrum == ec.spectrum.prepare(source.raw, 1e-3)
    with pytest.raises(ValueError, match="zoo_spectrum: 'name' must be one of"):
        zoo_source("resnet21")


def test_a_file_needs_a_weight_decay_only_if_it_has_none_and_is_not_positive(tmp_path):
    record = measured_source().measurement
    assert bytes_source(spectrum_bytes(MEASURED, ".json", record), ".json", "a").decay_source == "measured"
    assert bytes_source(b"1 1\n2 1\n", ".txt", "a").weight_decay == 0.0
    assert bytes_source(b"-1 1\n2 1\n", ".txt", "a", 0.1).weight_decay == 0.1
    with pytest.raises(ValueError, match="'weight_decay' must be given for this spectrum"):
        bytes_source(b"-1 1\n2 1\n", ".txt", "a")
    with pytest.raises(ValueError, match="'weight_decay' must be >= 0"):
        bytes_source(b"1 1\n2 1\n", ".txt", "a", -0.1)
    path = tmp_path / "late.npz"
    ec.save_spectrum(MEASURED, path, record)
    source = file_source(path)
    assert (source.name, source.raw, source.weight_decay) == ("late", MEASURED, record.weight_decay)
    assert (source.origin, source.path) == ("file", str(path))
    with pytest.raises(ValueError, match="'path' must be a file name ending in"):
        file_source(tmp_path / "late.pkl")


def test_a_power_law_begins_at_the_weight_decay():
    law = law_source(1.5, 1e3, 1e-2)
    assert law.raw == law.prepared == ec.PowerLaw(1.5, 1e-2, 10.0)
    assert law.spectrum == law.raw.spectrum()
    assert (law.is_law, law.fraction_negative) == (True, 0.0)
    with pytest.raises(ValueError, match="power law: 'weight_decay' must be > 0"):
        law_source(1.5, 1e3, 0.0)


def test_error_bars_are_for_one_weight_decay():
    assert measured_source().octaves is not None
    assert measured_source(decay=1e-3).octaves is None
    assert measured_source().fraction_negative == pytest.approx(4 / 31)


@pytest.mark.parametrize(("metric", "name"), [("", "sgd"), ("AdamW", "adamw"), ("Adam", "adam"), ("RMSprop", "sgd")])
def test_the_optimizer_is_that_of_the_metric(metric, name):
    record = dataclasses.replace(measured_source().measurement, preconditioner=metric)
    assert dataclasses.replace(PLAIN, measurement=record).optimizer == name


def test_measured_noise_and_start_are_used_per_octave():
    prepared = ec.spectrum.prepare(SPECTRUM, 5e-4)
    assert (BOTH.noise_source, BOTH.start_source) == ("measured", "measured")
    assert quadratic_of(BOTH, 0.9) == ec.NoisyQuadratic(prepared, noise(), START, 0.9)
    assert len(set(np.asarray(BOTH.noise_levels).tolist())) == 2
    assert input_lines(BOTH) == (
        "Noise: measured, σ² = 0.9 (B = 4, γ = 1.10)",
        "Start: measured, excess loss 5 (from the gradient)",
    )
    assert "γ unknown" in dataclasses.replace(NOISY, noise=noise(exponent=math.nan)).noise_text


def test_given_inputs_come_first():
    given = with_inputs(BOTH, 3.0, 2.0)
    assert quadratic_of(given) == ec.NoisyQuadratic(ec.spectrum.prepare(SPECTRUM, 5e-4), 3.0, 2.0)
    assert (given.noise_source, given.start_source) == ("given", "given")
    assert with_inputs(given) == given
    assert with_inputs(PLAIN, noise(), START).noise_source == "measured"
    for name in ("noise", "initial_error"):
        with pytest.raises(ValueError, match=f"'{name}' must be >= 0"):
            with_inputs(PLAIN, **{name: -1.0})


@pytest.mark.parametrize("source", [PLAIN, law_source(1.5, 1e3)])
def test_one_default_if_nothing_was_measured(source):
    assert (source.noise_levels, source.initial_errors) == (ASSUMED_NOISE, 1.0)
    assert (source.noise_source, source.start_source) == ("assumed", "assumed")
    assert "`eigencurve estimate --noise`" in input_lines(source)[0]


def test_assumed_values_have_the_scale_of_the_measured_ones():
    start = NOISY.initial_errors
    assert SPECTRUM.dim * start / 2 == pytest.approx(ASSUMED_LOSS)
    assert NOISY.start_text == "initial error 0.2 in every direction (an excess loss of 1)"
    assert with_inputs(NOISY, noise=7.0).initial_errors == start  # an override of the noise does not change the start
    prepared = ec.spectrum.prepare(SPECTRUM, 5e-4)
    expected = ASSUMED_NOISE * prepared.weights @ START.errors(prepared.eigenvalues)
    assert BEGUN.noise_levels == pytest.approx(expected)
    assert with_inputs(PLAIN, initial_error=2.0).noise_levels == 2 * ASSUMED_NOISE


def test_noise_is_inversely_proportional_to_the_batch_size():
    small = with_inputs(NOISY, batch_size=16)
    assert_allclose(small.noise_levels, np.asarray(NOISY.noise_levels) / 4)
    assert small.noise_text == "σ² = 0.225 (B = 16, γ = 1.10)"
    for source, options, message in (
        (PLAIN, {"batch_size": 16}, "'batch_size' must be left out if the spectrum has no measured noise"),
        (NOISY, {"noise": 1.0, "batch_size": 16}, "'batch_size' must be left out if the noise is given"),
        (NOISY, {"batch_size": 0}, "'batch_size' must be >= 1"),
    ):
        with pytest.raises(ValueError, match=message):
            with_inputs(source, **options)


@pytest.mark.parametrize("decay", [1e-6, 5e-4, 0.1])
def test_another_weight_decay_changes_neither_the_variance_nor_the_displacement(decay):
    """σ_j² λ_j is the variance of the noise, and error / λ_j the squared displacement."""
    before, other = BOTH.spectrum.eigenvalues, dataclasses.replace(BOTH, weight_decay=decay)
    after = other.spectrum.eigenvalues
    assert_allclose(other.noise_levels * after, noise().levels(before) * before, rtol=1e-9)
    assert_allclose(other.initial_errors / after, START.errors(before) / before, rtol=1e-9)
    if decay == 5e-4:
        assert_array_equal(other.noise_levels, noise().levels(before))


@pytest.mark.parametrize("source", [PLAIN, NOISY, BEGUN, BOTH, with_inputs(BOTH, 3.0, 2.0)])
def test_the_fields_are_plain_and_name_the_source(source):
    fields = input_fields(source)
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    assert fields["noise"]["source"] == source.noise_source
    assert fields["initial_error"]["source"] == source.start_source
    unknown = dataclasses.replace(NOISY, noise=noise(exponent=math.nan))
    assert input_fields(unknown)["noise"]["exponent"] is None
