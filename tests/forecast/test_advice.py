import pytest
from tests.reference.forecast import logged, three_runs, two_peaks

import eigencurve as ec
from eigencurve.forecast import fit_runs

DECAY = ec.wsd(2000, 0.01, 400)


@pytest.fixture(scope="module")
def constant_only():
    return fit_runs(logged(ec.constant(2000, 0.01)))


def test_a_constant_rate_says_nothing_about_decay(constant_only):
    assert any("no information about decay" in warning for warning in constant_only.warnings)
    wide = constant_only.predict(DECAY, [2000])
    narrow = fit_runs(three_runs()).predict(DECAY, [2000])
    assert wide.high[0] - wide.low[0] > 10 * (narrow.high[0] - narrow.low[0])


@pytest.mark.parametrize("schedules", [[ec.cosine(2000, 0.01)], [ec.cosine(2000, 0.01), ec.linear(2000, 0.01)]])
def test_runs_that_decay_alike_are_warned_about(schedules):
    warnings = fit_runs([logged(f) for f in schedules]).warnings
    assert any(warning.startswith("No two runs at the peak rate 0.01 decay differently") for warning in warnings)


def test_runs_at_two_peaks_that_follow_no_common_model_are_warned_about():
    runs = two_peaks()
    (warning,) = fit_runs([*runs[0.005], *runs[0.01]]).warnings
    assert warning.startswith("The runs at different peak rates do not follow one model: its error is")


def test_runs_of_one_model_need_no_warning():
    low = [logged(f) for f in (ec.constant(2000, 0.005), ec.linear(2000, 0.005))]
    for runs in (three_runs(), [*three_runs(), *low]):
        assert fit_runs(runs).warnings == ()


def test_a_short_decay_from_a_checkpoint_helps_most(constant_only):
    run = constant_only.next_run()
    assert "decay linearly to 0" in run.reason
    assert (run.branch_step, run.num_steps) == (2000, 200)
    assert run.schedule.total_steps == 2200
    assert run.narrower < 0.5


def test_without_a_constant_rate_the_run_begins_anew():
    run = fit_runs([logged(ec.cosine(2000, 0.01)), logged(ec.linear(2000, 0.01))]).next_run()
    assert run.reason.startswith("Hold the peak rate for ")
    assert run.branch_step == 0
    assert run.num_steps == run.schedule.total_steps


def test_the_promised_gain_is_real(constant_only):
    run = constant_only.next_run()
    more = fit_runs([logged(ec.constant(2000, 0.01)), logged(run.schedule)])
    widths = [end.high[0] - end.low[0] for end in (f.predict(DECAY, [2000]) for f in (constant_only, more))]
    assert widths[1] < 0.5 * widths[0]
    assert more.warnings == ()


def test_a_small_drop_leaves_the_end_of_a_decay_open():
    drop = ec.schedules.join([ec.constant(1000, 0.01), ec.constant(1000, 0.008)])
    warnings = fit_runs([logged(ec.constant(2000, 0.01)), logged(drop)]).warnings
    assert any("decay" in warning for warning in warnings)
