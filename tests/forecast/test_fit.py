import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.forecast.published import gpt_runs, llama_runs
from tests.reference.forecast import logged, three_runs, true_losses, two_peaks

import eigencurve as ec
from eigencurve.forecast import LoggedRun, fit_runs

TARGETS = {
    "linear": ec.linear(2000, 0.01),
    "wsd": ec.wsd(2000, 0.01, 400),
    "elastic": ec.elastic_step(2000, 0.01),
    "cosine to 10 %": ec.cosine(2000, 0.01, 0.001),
}


@pytest.fixture(scope="module")
def forecast():
    return fit_runs(three_runs())


def truth(schedule):
    return true_losses(schedule.values(), np.array([schedule.total_steps]))[0]


@pytest.mark.parametrize("name", TARGETS)
def test_it_predicts_the_model_that_wrote_the_logs(forecast, name):
    end = forecast.predict(TARGETS[name], [2000])
    assert end.loss[0] == pytest.approx(truth(TARGETS[name]), abs=0.01)
    assert end.low[0] <= truth(TARGETS[name]) <= end.high[0]


def test_noisy_logs_need_no_smoothing():
    noisy = fit_runs([*three_runs(deviation=0.05)])
    for schedule in TARGETS.values():
        assert noisy.predict(schedule, [2000]).loss[0] == pytest.approx(truth(schedule), abs=0.02)


def test_a_spike_of_the_loss_hardly_counts():
    plain, spiked = three_runs(deviation=0.01), []
    for run in plain:
        losses = run.losses.copy()
        losses[60] += 3.0
        spiked.append(LoggedRun(run.steps, losses, run.schedule, name=run.name))
    ends = [fit_runs(runs).predict(TARGETS["wsd"], [2000]).loss[0] for runs in (plain, spiked)]
    assert ends[0] == pytest.approx(ends[1], abs=0.01)


def test_the_unit_of_the_loss_does_not_matter(forecast):
    bits = [LoggedRun(r.steps, r.losses / np.log(2), r.schedule) for r in three_runs()]
    scaled = fit_runs(bits).predict(TARGETS["wsd"], [2000]).loss[0] * np.log(2)
    assert scaled == pytest.approx(forecast.predict(TARGETS["wsd"], [2000]).loss[0], abs=2e-3)


def test_the_unit_of_the_rate_does_not_matter(forecast):
    runs = [LoggedRun(r.steps, r.losses, 7 * r.rates) for r in three_runs()]
    end = fit_runs(runs).predict(ec.wsd(2000, 0.07, 400), [2000]).loss[0]
    assert end == pytest.approx(forecast.predict(TARGETS["wsd"], [2000]).loss[0], abs=1e-6)


def test_weights_of_the_exponents_sum_to_one(forecast):
    assert sum(member.weight for member in forecast.fitted.members) == pytest.approx(1.0)


def test_a_single_run_is_enough_to_ask(forecast):
    one = fit_runs(three_runs()[1])
    end, three = one.predict(TARGETS["wsd"], [2000]), forecast.predict(TARGETS["wsd"], [2000])
    assert end.high[0] - end.low[0] > three.high[0] - three.low[0]


def test_runs_at_two_peaks_tell_how_the_peak_matters():
    low = [logged(f, peak=0.01) for f in (ec.constant(2000, 0.005), ec.linear(2000, 0.005))]
    both = fit_runs([*three_runs(), *low])
    schedule = ec.wsd(2000, 0.005, 400)
    ends = [forecast.predict(schedule, [2000]) for forecast in (both, fit_runs(three_runs()))]
    widths = [end.high[0] - end.low[0] for end in ends]
    assert widths[0] < 0.5 * widths[1]
    assert ends[0].loss[0] == pytest.approx(truth(schedule), abs=0.02)


@pytest.mark.parametrize("peak", [0.005, 0.01])
def test_a_logged_peak_rate_is_forecast_from_its_own_runs(peak):
    runs = two_peaks()
    both = fit_runs([run for group in runs.values() for run in group])
    alone, schedule = fit_runs(runs[peak]), ec.wsd(2000, peak, 400)
    assert both.predict(schedule, [2000]).loss[0] == alone.predict(schedule, [2000]).loss[0]
    assert both.fit_for(0.007) is both.fitted  # between the logged rates, all runs count


def test_a_peak_rate_whose_runs_decay_alike_is_forecast_from_all_runs():
    runs = two_peaks()
    some = fit_runs([*runs[0.005], logged(ec.linear(2000, 0.01)), logged(ec.cosine(2000, 0.01))])
    assert some.fit_for(0.01) is some.fitted
    assert some.fit_for(0.005) is not some.fitted


@pytest.mark.parametrize("peak", [0.001, 0.0005])
def test_runs_at_another_peak_do_not_spoil_the_published_llama_runs(data_path, peak):
    names = ("stable", "lin0.2", "cos0")
    runs, others = llama_runs(data_path, peak), llama_runs(data_path, 0.0015 - peak)
    both = fit_runs([*(runs[name] for name in names), *(others[name] for name in names)])
    held_out = [run for name, run in runs.items() if name not in names]
    errors, _ = _errors(both, held_out)
    assert np.mean([abs(error[-1]) for error in errors]) < 0.004


@pytest.mark.parametrize("runs", [[], 3, ["run.csv"]])
def test_it_needs_logged_runs(runs):
    with pytest.raises(TypeError, match=r"fit_runs: 'runs' must be one or more of LoggedRun"):
        fit_runs(runs)


def test_it_refuses_losses_of_different_kinds():
    runs = three_runs()
    other = LoggedRun(runs[1].steps, runs[1].losses, runs[1].schedule, metric="val_loss")
    train = LoggedRun(runs[0].steps, runs[0].losses, runs[0].schedule, metric="train_loss")
    with pytest.raises(ValueError, match="runs with the same loss"):
        fit_runs([train, other])


def test_it_refuses_a_run_that_is_too_short():
    short = logged(ec.constant(16, 0.01), every=2)
    with pytest.raises(ValueError, match="ends within the first 1 %"):
        fit_runs([*three_runs(), short])


@pytest.mark.parametrize("gammas", [[], [1.0]])
def test_exponents_are_in_range(gammas):
    with pytest.raises(ValueError, match="'gammas' must be one or more numbers in"):
        fit_runs(three_runs(), gammas=gammas)


@pytest.mark.parametrize(("model", "limit"), [("25M", 0.0035), ("100M", 0.0026)])
def test_the_published_gpt_runs(data_path, model, limit):
    fitted, held_out = gpt_runs(data_path, model)
    errors, covered = _errors(fit_runs(fitted), held_out)
    assert np.mean([np.abs(error).mean() for error in errors]) < limit
    assert 0.7 <= np.mean(covered) <= 0.97


@pytest.mark.parametrize("peak", [0.001, 0.0005])
def test_the_published_llama_runs(data_path, peak):
    runs = llama_runs(data_path, peak)
    forecast = fit_runs([runs.pop(name) for name in ("stable", "lin0.2", "cos0")])
    errors, covered = _errors(forecast, list(runs.values()))
    assert np.mean([abs(error[-1]) for error in errors]) < 0.005
    assert 0.7 <= np.mean(covered) <= 0.9
    others, covered = _errors(forecast, list(llama_runs(data_path, 0.0015 - peak).values()))
    assert np.mean([abs(error[-1]) for error in others]) < 0.02
    assert np.mean(covered) >= 0.8


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("peak", [0.001, 0.0005])
def test_a_log_that_begins_late_is_fitted_without_warnings(data_path, peak):
    """The search tries steps at which the loss overflows, and rejects them."""
    run = llama_runs(data_path, peak)["lin0.2"]
    assert run.steps[0] > 0.7 * run.total_steps
    found = fit_runs(run).predict(run.schedule, run.steps)
    assert np.abs(found.loss - run.losses).mean() < 0.003


def _errors(forecast, runs):
    predictions = [forecast.predict(run.schedule, run.steps) for run in runs]
    errors = [found.loss - run.losses for found, run in zip(predictions, runs, strict=True)]
    inside = [
        np.mean((found.low <= run.losses) & (run.losses <= found.high))
        for found, run in zip(predictions, runs, strict=True)
    ]
    assert_allclose([len(error) for error in errors], [len(run) for run in runs])
    return errors, inside
