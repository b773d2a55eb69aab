import math

import pytest
from tests.paper.language.texts import corpus

from eigencurve.runs.store import Run
from paper.language.experiment import language_experiment, outcome_of, train_language
from paper.language.scales import SMOKE_SCALE, base_settings, grids
from paper.training.loop import Trained


def test_an_lstm_learns():
    texts = corpus(2000)
    settings = base_settings(SMOKE_SCALE) | {"schedule": "cosine", "lr": 1.0, "min_lr": 0.0, "epochs": 4}
    settings |= {"divisor": 50, "initial": 0.5, "unroll": 10}
    _, trained = train_language(texts, settings, seed=0)
    found = outcome_of(trained, 10, len(texts.vocabulary))
    # The next word is one of three, with probabilities 3/5, 1/5, 1/5: a perplexity of 2.59 at best, to the 8 % that a
    # hundred words leave uncertain.
    assert 2.59 / 1.16 < found.metrics["test"] < 2.59 * 1.2
    assert not found.diverged
    assert [epoch for epoch, _ in found.curves["train"]] == [1, 2, 3, 4]


def test_perplexity_is_the_exponential_of_the_mean_loss_of_a_word():
    history = {"train_loss": [(1.0, 35 * math.log(90.0))], "valid_loss": [(1.0, math.log(80.0))], "lr": [(1.0, 0.5)],
               "test_loss": [(1.0, math.log(70.0))]}  # fmt: skip
    found = outcome_of(Trained(history, False, 10), 35, 1000)
    assert found.metrics == pytest.approx({"train": 90.0, "valid": 80.0, "test": 70.0})
    assert outcome_of(Trained(history, False, 10), 35, 79).diverged
    assert outcome_of(Trained({}, True, 3), 35, 1000).diverged
    history["valid_loss"] = [(1.0, 1e6)]
    assert outcome_of(Trained(history, False, 10), 35, 1000).diverged


def test_a_run_is_a_function_of_settings_and_seed(tmp_path):
    experiment = language_experiment(corpus(), tmp_path)
    settings = grids(SMOKE_SCALE)["Cosine Decay"][0]
    one, again, other = (experiment.run([Run(settings, seed)])[0] for seed in (1, 1, 2))
    assert one == again
    assert one.metrics != other.metrics
    assert language_experiment(corpus(401)).name != experiment.name
