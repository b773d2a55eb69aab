import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spectrum.test_measurement import record

import eigencurve as ec
from eigencurve.planning.limits import RateLimit, optimizer_of, rate_limit
from eigencurve.planning.subject import Subject

L = 10.0
SPECTRUM = ec.Spectrum([0.01, 1.0, L - 0.001], [8, 3, 1])


def subject(metric=""):
    return Subject("mine", SPECTRUM, 0.001, record(preconditioner=metric))


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
    limit = rate_limit(subject(metric), **options)
    assert limit.formula == formula
    assert not grows(step(0.99 * limit.rate), 2)
    assert grows(step(1.01 * limit.rate), 2)


def test_the_limit_is_that_of_the_quadratic():
    for momentum, nesterov in ((0.0, False), (0.9, False), (0.9, True)):
        exact = ec.NoisyQuadratic(subject().spectrum, momentum=momentum, nesterov=nesterov).stable_rate
        assert rate_limit(subject(), "sgd", momentum, nesterov).rate == exact


@pytest.mark.parametrize(("metric", "name"), [("", "sgd"), ("AdamW", "adamw"), ("Adam", "adam"), ("RMSprop", "sgd")])
def test_the_optimizer_is_that_of_the_metric(metric, name):
    assert optimizer_of(subject(metric)) == name


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(ValueError, match="'optimizer' must be one of"):
        rate_limit(subject(), "lion")


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
