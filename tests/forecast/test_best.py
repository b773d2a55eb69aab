import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.reference.forecast import three_runs, true_losses

import eigencurve as ec
from eigencurve.forecast import fit_runs
from eigencurve.forecast.best import fitted_quadratic
from eigencurve.forecast.model import FLOOR, effective_schedule

T = 2000


@pytest.fixture(scope="module")
def forecast():
    return fit_runs(three_runs())


@pytest.fixture(scope="module")
def best(forecast):
    return forecast.best_schedule(T)


@pytest.mark.parametrize("lr", [0.01, 0.006])
def test_the_quadratic_has_the_forecast_loss(forecast, lr):
    schedule = ec.cosine(T, lr)
    fitted, member = forecast.fitted, forecast.fitted.likeliest
    quadratic = fitted_quadratic(fitted, member, peak=lr)
    loss = quadratic.expected_loss(effective_schedule(schedule, fitted.reference, member.gamma))
    place = fitted.members.index(member)
    assert_allclose(member.parameters[FLOOR] + loss, fitted.forecast(schedule).losses[place, -1], rtol=1e-10)


def test_it_beats_every_usual_schedule(forecast, best):
    usual = {
        "cosine": ec.cosine(T, 0.01), "linear": ec.linear(T, 0.01), "wsd": ec.wsd(T, 0.01, T // 5),
        "step": ec.step_decay(T, 0.01), "elastic": ec.elastic_step(T, 0.01),
    }  # fmt: skip
    assert all(best.loss <= row.loss + 1e-4 for row in forecast.compare(usual).rows)


def test_it_is_better_in_the_model_that_wrote_the_logs(best):
    steps = np.array([T])
    assert true_losses(best.schedule.values(), steps)[0] <= true_losses(ec.cosine(T, 0.01).values(), steps)[0]


def test_the_certificate_is_below_every_schedule(forecast, best):
    assert best.lower_bound <= best.model_loss
    assert best.gap == best.model_loss - best.lower_bound
    place = forecast.fitted.members.index(forecast.fitted.likeliest)
    for schedule in (ec.cosine(T, 0.01), ec.wsd(T, 0.01, 300), ec.constant(T, 0.01)):
        assert best.lower_bound <= forecast.fitted.forecast(schedule).losses[place, -1]


def test_the_reported_loss_is_that_of_the_schedule(forecast, best):
    end = forecast.predict(best.schedule, [T])
    assert (best.loss, best.low, best.high) == (end.loss[0], end.low[0], end.high[0])
    place = forecast.fitted.members.index(forecast.fitted.likeliest)
    # The search works with blocks of steps, and rates between the knots are rounded to straight lines.
    assert forecast.fitted.forecast(best.schedule).losses[place, -1] == pytest.approx(best.model_loss, abs=1e-3)


def test_it_respects_the_limit_and_the_warmup(forecast):
    best = forecast.best_schedule(T, max_lr=0.008, warmup_steps=100)
    rates = best.schedule.values()
    assert len(rates) == T
    assert rates.max() <= 0.008
    assert_allclose(np.diff(rates[:100]), rates[0])


def test_it_decays_to_nearly_nothing(best):
    assert best.schedule(T - 1) < 0.05 * best.schedule.values().max()


def test_it_is_serialisable(best):
    again = ec.schedule_from_dict(best.schedule.to_dict())
    assert_allclose(again.values(), best.schedule.values())
    assert "of the optimum" in repr(best)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"total_steps": 1}, "'total_steps' must be >= 2"),
        ({"total_steps": 100, "max_lr": 0.0}, "'max_lr' must be > 0"),
        ({"total_steps": 100, "warmup_steps": 100}, "'warmup_steps' must be < total_steps = 100"),
    ],
)
def test_bad_limits(forecast, options, message):
    with pytest.raises(ValueError, match=message):
        forecast.best_schedule(**options)
