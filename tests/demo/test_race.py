import numpy as np
import pytest

import eigencurve as ec
from eigencurve.demo.race import (
    Racer,
    at_best_rates,
    at_rate,
    mean_and_error,
    outcome_sentence,
    prediction_sentence,
    race,
    race_table,
)
from eigencurve.demo.training import digits, train_together

NOISE = np.array([-0.001, 0.0, 0.001, 0.0])


def racer(name, loss, predicted=0.1, noise=NOISE):
    return Racer(name, ec.cosine(10, 0.1), predicted, loss + noise, np.full(4, 0.98))


def test_a_single_value_has_no_error():
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
    """The differences are paired, so the noise that all schedules of a start share cancels."""
    sentence = outcome_sentence([racer("the recommendation", 0.2), rival])
    assert all(part in sentence for part in words), sentence


def test_prediction_is_judged_by_order_and_size():
    agree = [racer("a", 0.1, 0.2), racer("b", 0.2, 0.4), racer("c", 0.3, 0.6)]
    assert "rank correlation of 1.00" in prediction_sentence(agree)
    assert "2.0 times the measured ones" in prediction_sentence(agree)
    against = [racer("a", 0.1, np.inf), racer("b", 0.2, 0.1), racer("c", 0.4, 0.05)]
    assert "rank correlation of -1.00" in prediction_sentence(against)
    assert "1/4.0 of the measured ones" in prediction_sentence(against)


def test_the_table_has_every_schedule():
    lines = race_table([racer("the recommendation", 0.2), racer("linear to 0", 0.3, np.inf)]).splitlines()
    assert " ".join(lines[1].split()) == "the recommendation 0.1 0.1000 0.2000 ± 0.0004 98.0 ± 0.0 %"
    assert "diverges" in lines[2]


def test_peak_rate_can_be_set():
    assert at_rate(ec.warmup(ec.cosine(10, 0.1), 5), 0.3).values().max() == pytest.approx(0.3)


def test_every_schedule_is_tuned_and_raced():
    data, shapes = digits(0), {"cosine": ec.cosine(15, 0.1), "linear": ec.linear(15, 0.1)}
    tuned = at_best_rates(data, shapes, (0.01, 0.2, 1e30), (1, 2))
    assert [schedule.values().max() for schedule in tuned.values()] == pytest.approx([0.2, 0.2])
    schedules = {"first": ec.constant(15, 1e-9), **tuned}
    racers = race(data, schedules, dict.fromkeys(schedules, 1.0), (7, 8, 9))
    assert racers[0].name == "first"
    assert racers[0].loss > racers[2].loss >= racers[1].loss
    losses, _ = train_together(data, [schedules[racers[1].name]], (7, 8, 9))
    np.testing.assert_allclose(racers[1].losses, losses[0], rtol=1e-3)
