import json
import math

import pytest
from tests.reference.forecast import logged, three_runs

import eigencurve as ec
from eigencurve.forecast.coverage import LoggedRange, by_peak, coverage_of, logged_range


def test_what_three_runs_cover():
    found = logged_range(three_runs(), 0.01)
    assert (found.lowest_peak, found.highest_peak, found.num_steps, found.warmup_steps) == (0.01, 0.01, 2000, 0)
    assert found.travel == pytest.approx(2000)
    assert found.decay == pytest.approx(1.0)  # the drop happens within one step
    assert found.lowest_rate < 1e-3


def test_only_the_logged_part_of_a_schedule_counts():
    run = logged(ec.linear(1000, 0.01))
    short = type(run)(run.steps[:20], run.losses[:20], run.schedule)
    assert logged_range([short], 0.01).num_steps == 400
    assert math.isinf(logged_range([short], 0.01).decay)  # 60 % of the peak is not a decay to half


def test_the_length_of_a_decay():
    assert coverage_of(ec.linear(1000, 0.01), 0.01).decay == pytest.approx(280, rel=0.01)  # mean 0.7 over 400 steps
    assert coverage_of(ec.linear(1000, 0.005), 0.01).decay == pytest.approx(140, rel=0.01)
    assert math.isinf(coverage_of(ec.constant(1000, 0.01), 0.01).decay)
    assert coverage_of(ec.warmup(ec.linear(900, 0.01), 100), 0.01).warmup_steps == 100


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (ec.cosine(2000, 0.01), []),
        (ec.cosine(2000, 0.02), ["peak rate 0.02 is outside the logged 0.01"]),
        (ec.cosine(2000, 0.004), ["peak rate 0.004 is outside the logged 0.01", "decays faster"]),
        (ec.cosine(6000, 0.01), ["6,000 steps are 3.0 times"]),
        (ec.wsd(2000, 0.01, 100), ["decays faster than any logged run"]),
    ],
)
def test_what_goes_beyond_the_logs_is_marked(schedule, words):
    covered = logged_range([logged(ec.constant(2000, 0.01)), logged(ec.linear(2000, 0.01))], 0.01)
    found = covered.beyond(coverage_of(schedule, 0.01))
    assert len(found) == len(words)
    assert all(word in sentence for word, sentence in zip(words, found, strict=True))


def test_constant_rates_say_nothing_about_any_decay():
    covered = logged_range([logged(ec.constant(2000, 0.01))], 0.01)
    assert covered.beyond(coverage_of(ec.cosine(2000, 0.01), 0.01)) == ("no logged run decays",)


def test_logs_that_only_decay_say_little_about_a_constant_rate():
    covered = logged_range([logged(ec.cosine(2000, 0.01)), logged(ec.linear(2000, 0.01))], 0.01)
    assert covered.beyond(coverage_of(ec.constant(2000, 0.01), 0.01)) == ("it decays more slowly than any logged run",)
    assert covered.beyond(coverage_of(ec.linear(2000, 0.01), 0.01)) == ()


@pytest.mark.parametrize(
    ("schedules", "found"),
    [
        ([ec.constant(2000, 0.01), ec.cosine(2000, 0.01)], True),
        ([ec.cosine(2000, 0.01), ec.wsd(2000, 0.01, 400)], True),
        ([ec.cosine(2000, 0.01), ec.linear(2000, 0.01)], False),  # too similar
        ([ec.wsd(2000, 0.01, 400)], False),
        ([ec.constant(2000, 0.01), ec.constant(2000, 0.01)], False),  # no decay
        ([ec.constant(2000, 0.02), ec.cosine(2000, 0.01)], False),  # at different peak rates
    ],
)
def test_contrast_needs_two_decays_at_one_peak(schedules, found):
    assert logged_range([logged(f) for f in schedules], 0.01).has_contrast == found


def test_groups_of_one_peak_rate():
    runs = [logged(ec.constant(200, lr), name=f"{lr:g}") for lr in (0.02, 0.01, 0.0202, 0.005)]
    assert [[run.name for run in group] for group in by_peak(runs)] == [["0.005"], ["0.01"], ["0.02", "0.0202"]]


def test_it_survives_json():
    for runs in (three_runs(), [logged(ec.constant(200, 0.01))]):
        covered = logged_range(runs, 0.01)
        assert LoggedRange.from_dict(json.loads(json.dumps(covered.to_dict()))) == covered


def test_it_reads_files_from_before_slow_decays_were_recorded():
    covered = logged_range(three_runs(), 0.01)
    earlier = {name: value for name, value in covered.to_dict().items() if name != "slowest_decay"}
    assert LoggedRange.from_dict(earlier) == covered


def test_a_rate_far_from_the_logged_ones_is_refused():
    runs = logged_range(three_runs(), 0.01)
    assert runs.require_near("plan", "lr", 0.05) == 0.05
    for rate in (0.101, 9e-5):
        with pytest.raises(ValueError, match=rf"plan: 'lr' must be from 0.0001 to 0.1, .* is 0.01, got {rate}"):
            runs.require_near("plan", "lr", rate)
