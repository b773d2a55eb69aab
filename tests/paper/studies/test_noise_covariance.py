import dataclasses

import numpy as np
from tests.paper.studies.noise_files import IMAGES
from tests.paper.studies.noise_results import measured, studied
from tests.spectrum.test_noise import noise

from paper.studies.noise_covariance import covariance_section
from paper.studies.noise_measuring import distance
from paper.studies.noise_training import END


def section(**changes):
    one = studied(**changes)
    return "\n".join(covariance_section([one], [(one, "plain")]))


def test_the_page_says_whether_the_covariance_is_that_of_the_paper():
    body = section()
    assert f"holds within a factor of 2 for {IMAGES.title}" in body
    assert "differs from 1 by more than two standard errors for: none." in body
    steep = section(exponent=1.6)
    assert f"{IMAGES.title} (1.60 ± 0.20)" in steep


def test_other_examples_are_compared_with_the_usual_ones():
    gap = distance(measured("a tenth"), measured(END), 5e-4, 39_100)
    lines = section().splitlines()
    rows = [
        line
        for line in lines
        if line.startswith(f"| {IMAGES.title} | ") and line.endswith((f"| {gap:.2f} |", "| 0.00 |"))
    ]
    counts = [(IMAGES.num_curved, IMAGES.num_curved), (2, 2), (IMAGES.num_curved, IMAGES.num_noisy)]
    starts = [f"| {IMAGES.title} | {curved} | {noisy} |" for curved, noisy in counts]
    assert all(any(row.startswith(start) for row in rows) for start in starts)


def test_without_signal_there_is_no_verdict():
    weak = dataclasses.replace(noise().octaves, error=np.array([1.0, 0.1, 0.2]))
    assert "holds for none of the networks" in section(octaves=weak)


def test_the_page_says_whether_the_examples_decide():
    assert "γ is above 1 in every row that has one" in section()
    assert "γ is not above 1 in every row" in section(exponent=0.9)
