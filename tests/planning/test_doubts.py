import pytest
from tests.spectrum.test_measurement import record

import eigencurve as ec
from eigencurve.planning.doubts import USUAL_NEGATIVE, doubts, exponent_doubt, metric_doubt, negative_doubt
from eigencurve.planning.subject import Subject, file_subject, law_subject, zoo_subject
from eigencurve.spectrum.power_law import fitted_law
from eigencurve.spectrum.zoo import ZOO

TWO = ec.Spectrum([1.0, 1e3], [1, 1])


def test_nothing_is_doubted_without_a_reason():
    assert doubts(Subject("mine", TWO, 0.0, record()), 1000, "sgd") == ()
    assert doubts(Subject("mine", TWO, 0.0)) == ()


def test_an_estimate_that_has_not_settled():
    (sentence,) = doubts(Subject("mine", TWO, 0.0, record(reason="num_steps", schedule_change=0.41)))
    assert "still moved by 41 %" in sentence
    assert "measure it with more steps" in sentence


def test_most_of_the_curvature_is_negative():
    (sentence,) = doubts(Subject("mine", ec.Spectrum([-2.0, 1.0], [1, 1]), 5e-4))
    assert "67 % of the curvature is negative" in sentence
    assert "Measure it later in training" in sentence
    assert negative_doubt(Subject("mine", ec.Spectrum([-1.0, 1.0], [1, 1]), 5e-4)) == ""
    assert negative_doubt(law_subject(1.5, 1e4)) == ""


def test_the_largest_curvature_is_negative():
    (sentence,) = doubts(Subject("mine", ec.Spectrum([-5.0, 1.0], [1, 9]), 5e-4))
    assert "-5, is negative, and the largest stable rate is computed from it" in sentence


@pytest.mark.parametrize("name", list(ZOO))
def test_the_spectra_of_the_zoo_have_a_usual_share_of_negative_curvature(name):
    subject = zoo_subject(name)
    assert 0.3 < subject.raw.negative_share < USUAL_NEGATIVE
    assert negative_doubt(subject) == ""


def test_the_published_spectra_have_a_usual_share_of_negative_curvature(data_path):
    for path in data_path("spectra").glob("*.txt"):
        subject = file_subject(path, 5e-4)
        assert 0.2 < subject.raw.negative_share < USUAL_NEGATIVE
        assert negative_doubt(subject) == ""


def test_a_run_far_shorter_than_the_condition_number():
    assert doubts(law_subject(1.5, 1e6), 1000) == ()
    (sentence,) = doubts(law_subject(1.5, 1e6), 50)
    assert "20,000 times shorter than the condition number" in sentence
    assert "Set a final rate" in sentence


def test_the_exponent_of_a_spectrum_that_no_law_fits():
    law = fitted_law(TWO)
    (sentence,) = doubts(Subject("law", law, law.mu))
    assert sentence == exponent_doubt(Subject("mine", TWO, 0.0)) == law.warning
    assert "Build the schedule from the spectrum itself" in sentence
    assert exponent_doubt(law_subject(1.5, 1e4)) == ""
    assert exponent_doubt(Subject("points", ec.Spectrum([2.0, 2.0], [1, 1]), 0.0)) == ""


@pytest.mark.parametrize(
    ("metric", "optimizer", "expected"),
    [
        ("", "sgd", ""), ("AdamW", "adamw", ""), ("AdamW", "adam", ""),
        ("AdamW", "sgd", "that in the metric of AdamW, not for SGD"),
        ("", "adamw", "plain Hessian, not in the metric of adamw: measure it with --optimizer-state"),
    ],
)  # fmt: skip
def test_the_metric_of_another_optimizer(metric, optimizer, expected):
    mine = Subject("mine", TWO, 0.0, record(preconditioner=metric))
    assert expected in metric_doubt(mine, optimizer)
    assert len(doubts(mine, optimizer=optimizer)) == bool(expected)
    assert metric_doubt(law_subject(1.5, 1e4), optimizer) == ""
