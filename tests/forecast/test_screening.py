import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.forecast import three_runs

import eigencurve as ec
from eigencurve import ArgumentError
from eigencurve._check import Arg
from eigencurve.forecast import LoggedRun, fit_runs
from eigencurve.forecast.curve import loss_range, own_rows
from eigencurve.forecast.screening import require_distinct, require_same_loss, require_sound

T = 2000
WSD = ec.wsd(T, 0.01, 400)


def with_losses(run, losses, steps=None):
    return LoggedRun(run.steps if steps is None else steps, losses, run.schedule, run.name, run.metric)


def changed(run, place, value):
    losses = run.losses.copy()
    losses[place] = value
    return with_losses(run, losses)


def end(runs, schedule=WSD):
    found = fit_runs(runs).predict(schedule, [T])
    return found.loss[0], found.low[0], found.high[0]


@pytest.mark.parametrize("place", [0, 1, 50, 98, 99])
@pytest.mark.parametrize("value", [1e30, -1e30, 1e8, 1e300])
def test_a_loss_that_cannot_be_meant_is_refused_with_its_step(place, value):
    one, *others = three_runs(deviation=0.01)
    with pytest.raises(ArgumentError) as error:
        fit_runs([changed(one, place, value), *others])
    assert str(error.value.value).startswith(f"{value:.4g} at step {one.steps[place]:,} of 'constant'")


@pytest.mark.parametrize("place", [1, 50, 98, 99])
@pytest.mark.parametrize("height", [-1.5, 3.0, 30.0])
def test_one_spike_hardly_moves_a_forecast(place, height):
    plain = three_runs(deviation=0.01)
    spiked = [changed(plain[0], place, plain[0].losses[place] + height), *plain[1:]]
    loss, low, high = end(plain)
    found, its_low, its_high = end(spiked)
    assert abs(found - loss) < 0.5 * (high - low)
    assert its_high - its_low < 2 * (high - low)


def test_one_spike_hardly_moves_the_forecast_of_short_logs():
    """With few rows a single one is more than 5 % of them."""
    plain = [LoggedRun(run.steps[::9], run.losses[::9], run.schedule, run.name) for run in three_runs(0.01)]
    assert len(plain[0]) == 12
    loss, low, high = end(plain)
    found, _, _ = end([changed(plain[0], 7, 20.0), *plain[1:]])
    assert abs(found - loss) < 0.5 * (high - low)


@pytest.mark.parametrize("power", [-25, -10, -3, 3, 10, 25])
def test_the_size_of_the_losses_does_not_matter(power):
    plain = three_runs(deviation=0.01)
    scaled = [with_losses(run, run.losses * 10.0**power) for run in plain]
    np.testing.assert_allclose(np.array(end(scaled)) / 10.0**power, end(plain), rtol=1e-4)
    best = [fit_runs(runs).best_schedule(T) for runs in (plain, scaled)]
    assert best[1].loss / 10.0**power == pytest.approx(best[0].loss, rel=1e-3)


@pytest.mark.parametrize("power", [-300, -100, 100, 300])
def test_losses_of_an_absurd_size_are_refused(power):
    scaled = [with_losses(run, run.losses * 10.0**power) for run in three_runs()]
    with pytest.raises(ArgumentError) as error:
        fit_runs(scaled)
    assert error.value.constraint == "losses between 1e-30 and 1e+30"


@pytest.mark.parametrize("shift", [-2.0, -10.0])
def test_losses_may_be_zero_or_negative(shift):
    """As of a likelihood of densities: a shift of all losses shifts the forecast."""
    plain = three_runs(deviation=0.01)
    shifted = [with_losses(run, run.losses + shift) for run in plain]
    np.testing.assert_allclose(np.array(end(shifted)) - shift, end(plain), atol=2e-3)


def rising(run, first, last):
    return with_losses(run, np.linspace(first, last, len(run)))


def test_a_run_that_diverged_or_climbs_back_is_refused():
    one, *others = three_runs(deviation=0.01)
    back, climbed = one.losses.copy(), one.losses.copy()
    back[60:] = np.linspace(back[60], 12.0, 40)
    climbed[50:] += np.linspace(0, 0.9 * (climbed[:10].mean() - climbed[45:50].mean()), 50)
    rise = rising(one, 2.0, 50.0)
    for runs, words in (
        ([rise, *others], "rises from 4.182 to 47.8"),
        (rise, "rises from"),
        ([with_losses(one, back), *others], "rises"),
        (with_losses(one, climbed), "rises again, from 2"),
    ):
        with pytest.raises(ArgumentError, match=words) as error:
            fit_runs(runs)
        assert error.value.constraint == "runs whose loss falls"
        assert Arg("last_step") in error.value.remedy


def test_a_loss_may_rise_with_its_rate():
    """A restart brings back the noise that the decay had removed."""
    halves = np.concatenate((ec.linear(1000, 0.01).values(), ec.linear(1000, 0.01).values()))
    falling = np.linspace(3.0, 2.0, 50)
    run = LoggedRun(np.arange(20, T + 1, 20), np.concatenate((falling, falling - 0.3)), halves)
    require_sound([LoggedRun(run.steps[:60], run.losses[:60], halves)])


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 1.0]))
def test_a_noisy_plateau_is_not_a_divergence(seed, slope):
    rng = np.random.default_rng(seed)
    losses = 2.0 + 0.1 * rng.standard_normal(100) + slope * np.geomspace(1, 0.01, 100)
    require_sound([LoggedRun(np.arange(20, T + 1, 20), losses, np.full(T, 0.1))])


def test_a_constant_loss_is_refused_with_the_name_of_its_run():
    one, two, three = three_runs()
    with pytest.raises(ValueError, match=r"whose loss falls, got the constant 2.3 in 'cosine'"):
        fit_runs([one, with_losses(two, np.full(len(two), 2.3)), three])
    with pytest.raises(ValueError, match=r"the constant 0 in"):
        fit_runs(with_losses(two, np.zeros(len(two))))


@pytest.mark.parametrize(
    "copy",
    [
        lambda run: run,
        lambda run: with_losses(run, run.losses.round(5)),
        lambda run: with_losses(run, run.losses.astype(np.float32)),
        lambda run: LoggedRun(run.steps[:50], run.losses[:50], run.schedule),
        lambda run: LoggedRun(run.steps[::3], run.losses[::3], run.schedule),
    ],
    ids=["the same", "rounded", "float32", "a prefix", "every third row"],
)
def test_a_run_counts_once(copy):
    runs = three_runs(deviation=0.01)
    with pytest.raises(ValueError, match=r"different runs, got \d+ equal rows in 'cosine' and"):
        fit_runs([*runs, copy(runs[1])])


def test_runs_that_share_their_first_steps_are_two():
    """Branches of one checkpoint."""
    one, _, drop = three_runs()
    shared = np.where(drop.steps <= 1000, one.losses, drop.losses)
    require_distinct([one, with_losses(drop, shared)])


def test_a_branch_that_decays_and_its_trunk_are_two_runs_whose_common_rows_count_once():
    branch = ec.wsd(T, 0.01, 400)
    long = LoggedRun(np.arange(20, T + 1, 20), three_runs()[1].losses, branch, "branch")
    trunk = LoggedRun(long.steps[:80], long.losses[:80], branch, "trunk")
    require_distinct([trunk, long])
    assert own_rows(trunk, [trunk, long]).all()
    np.testing.assert_array_equal(long.steps[own_rows(long, [trunk, long])], np.arange(1620, T + 1, 20))


def test_the_range_does_not_see_one_outlier():
    losses = np.linspace(3, 2, 50)
    spiked = losses.copy()
    spiked[20] = 1e9
    assert loss_range(spiked) == pytest.approx(loss_range(losses), rel=0.01)


STEPS = np.arange(0, 101, 10)
CURVE = 2 + np.exp(-STEPS / 40)


def test_steps_that_count_epochs_are_refused():
    one, other, _ = three_runs()
    epochs = LoggedRun(other.steps // 20, other.losses, ec.constant(100, 0.0103), "epochs")
    with pytest.raises(ValueError, match=r"in 'constant' and 'epochs', after the same sum of learning rates"):
        require_same_loss([one, epochs])


def run(losses=CURVE, schedule=None, **names):
    return LoggedRun(STEPS, losses, schedule or ec.cosine(100, 0.1), **names)


def test_runs_of_one_model_pass():
    noise = np.random.default_rng(0).normal(0, 0.05, len(STEPS))
    require_same_loss([run(), run(CURVE + noise), run(CURVE / 1.5 + 1, ec.constant(100, 0.3))])
    require_same_loss([run(metric="val_loss"), run(metric="eval/loss"), run(metric="loss")])
    require_same_loss([run()])


def test_training_and_validation_losses_are_refused():
    runs = [run(metric="loss", name="a"), run(metric="train/loss", name="b"), run(metric="val_loss", name="c")]
    with pytest.raises(ArgumentError, match="'train/loss' and 'val_loss' in 'b' and 'c'") as error:
        require_same_loss(runs)
    assert (error.value.constraint, Arg("loss") in error.value.remedy) == ("runs with the same loss", True)


@pytest.mark.parametrize(
    "other", [CURVE / np.log(2), CURVE * 100, np.exp(CURVE), -CURVE], ids=["bits", "sum", "exp", "-"]
)
def test_losses_in_other_units_are_refused(other):
    with pytest.raises(ValueError, match=r"got .* in run 1 and 'b', after the same learning rates"):
        require_same_loss([run(), run(other, name="b")])


def test_only_steps_after_the_same_rates_are_compared():
    """A larger rate from step 50 on may well give another loss; before, it must not."""
    drop = ec.multistep(100, 0.1, [50])
    later = np.where(STEPS > 50, CURVE * 3, CURVE)
    require_same_loss([run(schedule=ec.constant(100, 0.1)), run(later, drop)])
    with pytest.raises(ValueError, match="same learning rates"):
        require_same_loss([run(schedule=ec.constant(100, 0.1)), run(CURVE * 3, drop)])


def test_the_loss_before_training_does_not_depend_on_the_rate():
    with pytest.raises(ValueError, match="got 3 and 30 in run 1 and run 2"):
        require_same_loss([run(), run(CURVE * 10, ec.constant(100, 0.3))])


def test_runs_without_a_common_step_are_not_compared():
    late = LoggedRun(STEPS + 200, CURVE * 10, ec.constant(300, 0.1))
    require_same_loss([run(), late])


def test_losses_around_zero_are_compared_by_their_range():
    require_same_loss([run(CURVE - 2.5), run(CURVE - 2.52)])
    with pytest.raises(ValueError, match="same learning rates"):
        require_same_loss([run(CURVE - 2.5), run(CURVE - 3.5)])
