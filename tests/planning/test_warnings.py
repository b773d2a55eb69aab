import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spectrum.test_measurement import record

import eigencurve as ec
from eigencurve.planning.warnings import (
    USUAL_NEGATIVE,
    RateLimit,
    exponent_warning,
    metric_warning,
    negative_warning,
    rate_limit,
    spectrum_warnings,
)
from eigencurve.spectrum.power_law import fitted_law
from eigencurve.spectrum.source import SpectrumSource, file_source, law_source, zoo_source
from eigencurve.spectrum.zoo import ZOO

L = 10.0
SPECTRUM = ec.Spectrum([0.01, 1.0, L - 0.001], [8, 3, 1])


def source(metric=""):
    return SpectrumSource("mine", SPECTRUM, 0.001, record(preconditioner=metric))


def grows(step, size):
    """Whether the error of the steepest direction grows under a linear recursion."""
    state = np.full(size, 1.0)
    for _ in range(2000):
        state = step(state)
    return abs(state[0]) > 1


def heavy_ball(eta, m):
    return lambda s: np.array([s[0] - eta * (m * s[1] + L * s[0]), m * s[1] + L * s[0]])


def nesterov_step(eta, m):
    def step(s):
        v = m * s[1] + L * s[0]
        return np.array([s[0] - eta * (L * s[0] + m * v), v])

    return step


def adam(eta, beta1):
    def step(s):
        v = beta1 * s[1] + (1 - beta1) * L * s[0]
        return np.array([s[0] - eta * v, v])

    return step


@pytest.mark.parametrize(
    ("options", "metric", "formula", "step"),
    [
        ({}, "", "2/L", lambda eta: heavy_ball(eta, 0.0)),
        ({"momentum": 0.9}, "", "2(1+m)/L", lambda eta: heavy_ball(eta, 0.9)),
        ({"momentum": 0.9, "nesterov": True}, "", "2(1+m)/((1+2m)L)", lambda eta: nesterov_step(eta, 0.9)),
        ({"momentum": 0.8}, "AdamW", "(2+2β₁)/((1-β₁)L)", lambda eta: adam(eta, 0.8)),
        ({}, "Adam", "(2+2β₁)/((1-β₁)L)", lambda eta: adam(eta, 0.9)),
        ({"momentum": 0.9}, "RMSprop", "2(1+m)/L", lambda eta: heavy_ball(eta, 0.9)),
    ],
)
def test_the_limit_separates_stable_from_growing_rates(options, metric, formula, step):
    limit = rate_limit(source(metric), **options)
    assert limit.formula == formula
    assert not grows(step(0.99 * limit.rate), 2)
    assert grows(step(1.01 * limit.rate), 2)


def test_the_limit_is_that_of_the_quadratic():
    for momentum, nesterov in ((0.0, False), (0.9, False), (0.9, True)):
        exact = ec.NoisyQuadratic(source().spectrum, momentum=momentum, nesterov=nesterov).stable_rate
        assert rate_limit(source(), "sgd", momentum, nesterov).rate == exact


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(ValueError, match="'optimizer' must be one of"):
        rate_limit(source(), "lion")


@given(rate=st.floats(1e-6, 1e3))
def test_a_rate_is_either_allowed_or_pointed_out(rate):
    limit = RateLimit(0.0067, "2/L")
    assert ("times the stability limit 2/L = 0.0067" in limit.about(rate)) != limit.allows(rate)


def test_sentences():
    limit = RateLimit(0.0067, "2/L")
    assert str(limit) == limit.about(None) == limit.about(0.0067) == "largest stable rate 2/L = 0.0067"
    assert limit.about(0.01).startswith("0.01 is 1.5 times the stability limit")
    assert limit.about(0.007).startswith("0.007 is 1.04 times")
    assert limit.about(100).startswith("100 is 14,925 times")
    assert limit.sentence(0.005) == "Peak rate 0.005; largest stable rate 2/L = 0.0067."
    assert limit.sentence(0.1).startswith("Peak rate 0.1 is 15 times the stability limit")


TWO = ec.Spectrum([1.0, 1e3], [1, 1])


def test_no_warning_without_a_reason():
    assert spectrum_warnings(SpectrumSource("mine", TWO, 0.0, record()), 1000, "sgd") == ()
    assert spectrum_warnings(SpectrumSource("mine", TWO, 0.0)) == ()


def test_an_estimate_that_has_not_settled():
    (sentence,) = spectrum_warnings(SpectrumSource("mine", TWO, 0.0, record(reason="num_steps", schedule_change=0.41)))
    assert "still moved by 41 %" in sentence
    assert "measure it with more steps" in sentence


def test_most_of_the_curvature_is_negative():
    (sentence,) = spectrum_warnings(SpectrumSource("mine", ec.Spectrum([-2.0, 1.0], [1, 1]), 5e-4))
    assert "67 % of the curvature is negative" in sentence
    assert "Measure it later in training" in sentence
    assert negative_warning(SpectrumSource("mine", ec.Spectrum([-1.0, 1.0], [1, 1]), 5e-4)) == ""
    assert negative_warning(law_source(1.5, 1e4)) == ""


def test_the_largest_curvature_is_negative():
    (sentence,) = spectrum_warnings(SpectrumSource("mine", ec.Spectrum([-5.0, 1.0], [1, 9]), 5e-4))
    assert "-5, is negative, and the largest stable rate is computed from it" in sentence


@pytest.mark.parametrize("name", list(ZOO))
def test_the_spectra_of_the_zoo_have_a_usual_share_of_negative_curvature(name):
    source = zoo_source(name)
    assert 0.3 < source.raw.negative_share < USUAL_NEGATIVE
    assert negative_warning(source) == ""


def test_the_published_spectra_have_a_usual_share_of_negative_curvature(data_path):
    for path in data_path("spectra").glob("*.txt"):
        source = file_source(path, 5e-4)
        assert 0.2 < source.raw.negative_share < USUAL_NEGATIVE
        assert negative_warning(source) == ""


def test_a_run_far_shorter_than_the_condition_number():
    assert spectrum_warnings(law_source(1.5, 1e6), 1000) == ()
    (sentence,) = spectrum_warnings(law_source(1.5, 1e6), 50)
    assert "20,000 times shorter than the condition number" in sentence
    assert "Set a final rate" in sentence


def test_the_exponent_of_a_spectrum_that_no_law_fits():
    law = fitted_law(TWO)
    (sentence,) = spectrum_warnings(SpectrumSource("law", law, law.mu))
    assert sentence == exponent_warning(SpectrumSource("mine", TWO, 0.0)) == law.warning
    assert "Build the schedule from the spectrum itself" in sentence
    assert exponent_warning(law_source(1.5, 1e4)) == ""
    assert exponent_warning(SpectrumSource("points", ec.Spectrum([2.0, 2.0], [1, 1]), 0.0)) == ""


@pytest.mark.parametrize(
    ("metric", "optimizer", "expected"),
    [
        ("", "sgd", ""), ("AdamW", "adamw", ""), ("AdamW", "adam", ""),
        ("AdamW", "sgd", "measured in the metric of AdamW, not for SGD"),
        ("", "adamw", "plain Hessian, not in the metric of adamw: measure it with `--optimizer-state`"),
    ],
)  # fmt: skip
def test_the_metric_of_another_optimizer(metric, optimizer, expected):
    mine = SpectrumSource("mine", TWO, 0.0, record(preconditioner=metric))
    assert expected in metric_warning(mine, optimizer)
    assert len(spectrum_warnings(mine, optimizer=optimizer)) == bool(expected)
    assert metric_warning(law_source(1.5, 1e4), optimizer) == ""
