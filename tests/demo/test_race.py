import numpy as np
import pytest

import eigencurve as ec
from eigencurve.demo.race import (
    RECOMMENDATION,
    Racer,
    Tuned,
    at_rate,
    difference,
    mean_and_error,
    nearest_rate,
    outcome_sentence,
    prediction_sentence,
    race,
    race_table,
    rate_sentence,
    same_rate_sentence,
    tune_all,
    tuning_table,
)
from eigencurve.demo.training import digits, train_together

NOISE = np.array([-0.001, 0.0, 0.001, 0.0])


def racer(name, loss, predicted=0.1, noise=NOISE):
    return Racer(name, ec.cosine(10, 0.1), predicted, loss + noise, np.full(4, 0.98), np.ones(10))


def tuned(*losses, rates=(0.1, 0.2, 0.4, 0.8)):
    return Tuned(ec.cosine(10, 0.1), rates, np.array(losses))


def test_difference_is_paired():
    """The noise that all schedules of a start share cancels."""
    mean, error = difference(racer("a", 0.5), racer("b", 0.3))
    assert mean == pytest.approx(0.2)
    assert error == pytest.approx(0, abs=1e-12)
    assert mean_and_error(np.array([1.0, 3.0])) == (2.0, pytest.approx(1.0))
    assert mean_and_error(np.array([1.0])) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("rival", "words"),
    [
        (racer("cosine", 0.15), ["beaten: cosine at 0.1 ended 25 % lower", "0 ended higher", "0 level", "and 1 lower"]),
        (racer("cosine", 0.30), ["was the best: the next one, cosine at 0.1 ended 50 % higher", "1 ended higher"]),
        (racer("cosine", 0.201, noise=-10 * NOISE), ["best within noise: cosine", "higher, which", "1 level with it"]),
        (racer("cosine", 0.199, noise=-10 * NOISE), ["best within noise: cosine", "lower, which", "1 level with it"]),
    ],
)
def test_outcome_is_best_within_noise_or_beaten(rival, words):
    sentence = outcome_sentence([racer(RECOMMENDATION, 0.2), rival])
    assert all(part in sentence for part in words), sentence


def test_prediction_is_judged_by_order_and_size():
    agree = [racer("a", 0.1, 0.2), racer("b", 0.2, 0.4), racer("c", 0.3, 0.6)]
    assert "rank correlation of 1.00" in prediction_sentence(agree)
    assert "2.0 times the measured ones" in prediction_sentence(agree)
    against = [racer("a", 0.1, np.inf), racer("b", 0.2, 0.1), racer("c", 0.4, 0.05)]
    assert "rank correlation of -1.00" in prediction_sentence(against)
    assert "1/4.0 of the measured ones" in prediction_sentence(against)


def test_schedules_are_compared_at_the_same_rate():
    found = {"cosine": tuned(4.0, 1.1, 1.5, 2.0), "WSD": tuned(4.0, 1.0, 2.0, 2.0), "linear": tuned(1.0, 2.0, 3.0, 4.0)}
    predicted = {"cosine": 3.0, "WSD": 2.0, "linear": np.inf}
    sentence = same_rate_sentence("cosine", found, 0.2, predicted)
    assert "rate (0.2), cosine is number 2 of 3, 10 % behind WSD, and the rank correlation with" in sentence
    assert sentence.endswith("is 1.00.")
    assert "WSD is number 1 of 3, and" in same_rate_sentence("WSD", found, 0.2, predicted)
    assert nearest_rate((0.1, 0.2, 0.4), 0.29) == 0.4


def test_highest_rate_is_the_last_before_the_loss_doubles():
    assert tuned(4.0, 1.0, 1.9, 2.1).highest_rate == 0.4
    assert tuned(4.0, 1.0, 2.5, 1.1).highest_rate == 0.2
    assert tuned(4.0, 3.0, 2.0, 1.0).highest_rate == 0.8
    assert tuned(4.0, 1.0, np.inf, np.inf).best_rate == 0.2


def test_rates_of_the_plan_are_compared_with_those_that_work():
    too_high = rate_sentence("WSD", tuned(4.0, 1.0, 1.5, np.inf), 0.15, 3.0)
    for part in ("rate for WSD is 0.2", "plan used 0.15", "Above 0.4", "stable up to 3:", "range test"):
        assert part in too_high
    assert "no higher than rates that work" in rate_sentence("WSD", tuned(4.0, 1.0, 1.5, np.inf), 0.15, 0.3)


def test_tables_have_every_schedule():
    lines = race_table([racer(RECOMMENDATION, 0.2), racer("linear to 0", 0.3, np.inf)]).splitlines()
    assert " ".join(lines[1].split()) == "the recommendation 0.1 0.1000 0.2000 ± 0.0004 98.0 ± 0.0 %"
    assert "diverges" in lines[2]
    rows = tuning_table({"cosine": tuned(4.0, 1.0, 1.5, np.inf), "linear": tuned(1.0, 2.0, 3.0, 4.0)}).splitlines()
    assert rows[0].split() == ["peak", "lr", "cosine", "linear"]
    assert rows[1].split() == ["0.1", "4.0000", "*1.0000"]
    assert rows[4].split() == ["0.8", "diverged", "4.0000"]


def test_peak_rate_can_be_set():
    assert at_rate(ec.warmup(ec.cosine(10, 0.1), 5), 0.3).values().max() == pytest.approx(0.3)


def test_every_schedule_is_tuned_and_raced():
    data, shapes = digits(0), {"cosine": ec.cosine(15, 0.1), "linear": ec.linear(15, 0.1)}
    found = tune_all(data, shapes, (0.01, 0.2, 1e30), (1, 2))
    assert {name: one.best_rate for name, one in found.items()} == {"cosine": 0.2, "linear": 0.2}
    assert np.isinf(found["cosine"].losses[2])
    schedules = {RECOMMENDATION: ec.constant(15, 1e-9), **{name: one.schedule for name, one in found.items()}}
    racers = race(data, schedules, dict.fromkeys(schedules, 1.0), (7, 8, 9))
    assert racers[0].name == RECOMMENDATION
    assert racers[0].loss > racers[2].loss >= racers[1].loss
    alone = train_together(data, [schedules[racers[1].name]], (7, 8, 9))
    np.testing.assert_allclose(racers[1].losses, alone.losses[0], rtol=1e-3)
