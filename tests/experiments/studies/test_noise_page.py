import dataclasses
import math

import numpy as np
import pytest
from tests.experiments.studies.noise_files import IMAGES, SCALE
from tests.spectrum.test_noise import noise

import eigencurve as ec
from eigencurve.experiments.studies.noise_measuring import fewer_examples, noisier_examples, usual
from eigencurve.experiments.studies.noise_page import Measured, Studied, distance, noise_page, resolved, spread
from eigencurve.experiments.studies.noise_training import END, MOMENTS
from eigencurve.spectrum.files import SpectrumFile
from eigencurve.spectrum.start import OctaveStart, StartEstimate

WEIGHTS = {"start": (4, 1), "a tenth": (3, 1), "a half": (2, 1), "end": (1, 1)}


def measured(moment, **changes):
    spectrum = ec.Spectrum([-0.1, 0.2, 3.0], [1, *WEIGHTS[moment]], dim=10)
    one = np.ones(1)
    start = StartEstimate(
        octaves=OctaveStart(np.zeros(1, dtype=np.int64), 0.1 * one, 10 * one, one, one, one), loss=0.5,
        source="displacement", weight_decay=5e-4, num_products=3, seconds=0.1,
    )  # fmt: skip
    metrics = {"accuracy": 0.5, "test_loss": 1.0} if moment != "start" else {}
    file = SpectrumFile(spectrum, None, noise(**changes), start if moment == END else None)
    return Measured(MOMENTS.index(moment), metrics, file)


def studied(**changes):
    found = {usual(IMAGES, moment): measured(moment, **changes) for moment in MOMENTS}
    found[usual(IMAGES, END, probe=1)] = measured("a half")
    found |= {fewer_examples(IMAGES): measured("a tenth"), noisier_examples(IMAGES): measured(END)}
    return Studied(IMAGES, 50, found)


def test_the_page_says_whether_the_covariance_is_that_of_the_paper():
    page = noise_page(SCALE, [studied()])
    assert f"holds within a factor of 2 for {IMAGES.title}" in page.body
    assert "differs from 1 by more than two standard errors for: none." in page.body
    steep = noise_page(SCALE, [studied(exponent=1.6)]).body
    assert f"{IMAGES.title} (1.60 ± 0.20)" in steep


def test_the_rows_are_the_moments_and_their_distance_to_the_end():
    page = noise_page(SCALE, [studied()])
    curves = {
        moment: np.log(ec.eigencurve(ec.prepare(measured(moment).file.spectrum, 5e-4), 50, 1.0).values())
        for moment in MOMENTS
    }
    for moment in MOMENTS[:3]:
        gap = np.abs(curves[moment] - curves[END]).max()
        assert distance(measured(moment), measured(END), 5e-4, 50) == pytest.approx(gap)
        (row,) = [
            line
            for line in page.body.splitlines()
            if line.startswith(f"| {IMAGES.title} | {moment} | {MOMENTS.index(moment)} |")
        ]
        assert f"| {gap:.2f} |" in row
        assert "10 ± 1" in row  # tr(HC) = 100 over g.Hg = 10 ± 1
    assert list(page.figures) == [f"noise_{IMAGES.name}.png"]
    assert list(page.files) == [f"noise_{IMAGES.name}.npz"]
    assert [row["moment"] for row in page.values["networks"][0]["moments"]] == list(MOMENTS)


def test_other_examples_are_compared_with_the_usual_ones():
    gap = distance(measured("a tenth"), measured(END), 5e-4, 39_100)
    lines = noise_page(SCALE, [studied()]).body.splitlines()
    rows = [
        line
        for line in lines
        if line.startswith(f"| {IMAGES.title} | ") and line.endswith((f"| {gap:.2f} |", "| 0.00 |"))
    ]
    counts = [(IMAGES.num_curved, IMAGES.num_curved), (2, 2), (IMAGES.num_curved, IMAGES.num_noisy)]
    starts = [f"| {IMAGES.title} | {curved} | {noisy} |" for curved, noisy in counts]
    assert all(any(row.startswith(start) for row in rows) for start in starts)


def test_the_prediction_is_that_of_the_quadratic():
    page, end = noise_page(SCALE, [studied()]), measured(END)
    p = ec.prepare(end.file.spectrum, 5e-4)
    q = ec.NoisyQuadratic(p, noise=end.file.noise, initial_error=end.file.start)
    table = q.compare({"cosine": ec.cosine(50, 1 / p.L)}, tune_lr=True)
    ratio = table["cosine"].loss / q.search_best(50, q.stable_rate).loss
    assert f"| {IMAGES.title} | end | {ratio:.3f} |" in page.body


def test_octaves_without_signal_do_not_count():
    octaves = noise().octaves
    weak = noise(octaves=dataclasses.replace(octaves, error=np.array([1.0, 0.1, 0.2])))
    assert resolved(weak).tolist() == [False, True, True]
    none = noise(octaves=dataclasses.replace(octaves, error=np.full(3, 9.0)))
    assert resolved(none).all()
    assert spread(noise()) == 2.0
    assert math.isfinite(spread(noise(octaves=dataclasses.replace(octaves, sigma2=np.zeros(3)))))
