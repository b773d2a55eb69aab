import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.reference.forecast import logged, three_runs

import eigencurve as ec
from eigencurve.forecast import fit_runs


@pytest.fixture(scope="module")
def fitted():
    return fit_runs([logged(ec.constant(2000, 0.01)), logged(ec.linear(2000, 0.01))]).fitted


def test_the_mean_and_variance_are_those_of_the_mixture(fitted):
    forecast = fitted.forecast(ec.cosine(2000, 0.01), np.array([500, 2000]))
    rng, draws = np.random.default_rng(0), []
    for member, losses, slopes in zip(fitted.members, forecast.losses, forecast.slopes, strict=True):
        off = rng.multivariate_normal(np.zeros(len(slopes.T)), member.covariance, size=round(200_000 * member.weight))
        draws.append(losses + off @ slopes.T)
    drawn = np.concatenate(draws)
    assert_allclose(forecast.mean, drawn.mean(axis=0), atol=1e-3)
    assert_allclose(forecast.variance - forecast.slack**2, drawn.var(axis=0), rtol=0.03)


def test_common_errors_cancel_in_a_difference(fitted):
    one, other = fitted.forecast(ec.cosine(2000, 0.01)), fitted.forecast(ec.cosine(2000, 0.01, 0.0005))
    assert one.minus(one) == (0.0, 0.0)
    difference, variance = one.minus(other)
    assert difference == pytest.approx(float(one.mean[-1] - other.mean[-1]))
    assert variance < 0.1 * float(one.variance[-1] + other.variance[-1])


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        (ec.linear(2000, 0.01), ec.linear(8000, 0.01)),  # longer
        (ec.linear(2000, 0.01), ec.wsd(2000, 0.01, 100)),  # a faster decay
        (ec.linear(2000, 0.01), ec.linear(2000, 0.02)),  # another peak rate
    ],
)
def test_what_goes_beyond_the_logs_is_less_certain(fitted, inside, outside):
    assert fitted.forecast(outside).variance[-1] > 2 * fitted.forecast(inside).variance[-1]


def test_within_the_logs_nothing_is_added(fitted):
    assert not fitted.forecast(ec.linear(2000, 0.01)).slack.any()


def test_rates_beyond_the_curvature_of_the_fit_are_refused():
    with pytest.raises(ValueError, match=r"'schedule' must be within about 4 times the highest logged rate \(0.01\)"):
        fit_runs(three_runs()).predict(ec.constant(2000, 0.5))


def test_a_decay_that_was_never_logged_is_hardly_known():
    constant = fit_runs(logged(ec.constant(2000, 0.01))).fitted
    spread = constant.law.spread
    assert constant.forecast(ec.wsd(2000, 0.01, 200)).slack[-1] >= 0.1 * spread
    assert constant.forecast(ec.constant(2000, 0.01)).slack[-1] == 0
