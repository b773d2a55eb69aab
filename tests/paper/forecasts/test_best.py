import pytest

from paper.forecasts.best import LINEAR, WSD


def test_the_best_schedule_is_not_behind_others(found):
    found = found.improvements[0]
    assert found.best.lower_bound <= found.best.model_loss
    rivals = [found.cosine, found.logged, *found.others]
    for rival in rivals:
        # The search minimises the loss of the likeliest member, the forecast averages over all.
        assert rival.gain > -1e-3
        assert rival.gain_low <= rival.gain <= rival.gain_high
        assert rival.gain == pytest.approx(rival.loss - found.best.loss)
    assert [rival.name for rival in found.others] == [LINEAR, WSD]
    rates = found.best.schedule.values()
    assert rates[round(600 * found.hold) - 1] >= 0.99 * rates.max() > rates[round(600 * found.hold)]
    assert {schedule.total_steps for schedule in found.shapes.values()} == {600}


def test_the_best_logged_run_has_the_length_of_the_fitted_ones(found):
    found = found.improvements[0]
    split = found.split
    same = [run for run in (*split.fitted.values(), *split.held.values()) if run.total_steps == 600]
    assert found.logged.measured == min(run.losses[-1] for run in same)
    assert found.cosine.measured == split.fitted["cosine"].losses[-1]
