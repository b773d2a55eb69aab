import dataclasses
import math

import numpy as np
import pytest
from tests.paper.studies.noise_results import measured, studied
from tests.spectrum.test_noise import noise

import eigencurve as ec
from paper.studies.noise_results import distance, factor_text, noise_of, resolved, spread
from paper.studies.noise_training import END, MOMENTS


def test_octaves_without_signal_or_below_the_weight_decay_do_not_count():
    octaves = noise().octaves
    weak = noise(octaves=dataclasses.replace(octaves, error=np.array([1.0, 0.1, 0.2])))
    assert resolved(weak).tolist() == [False, True, True]
    assert resolved(noise(weight_decay=0.1)).tolist() == [False, True, True]
    assert spread(noise()) == 2.0
    assert math.isnan(spread(weak))


def test_the_distance_is_the_largest_log_ratio_of_two_schedules():
    curves = [
        np.log(ec.eigencurve(ec.spectrum.prepare(measured(moment).file.spectrum, 5e-4), 50, 1.0).values())
        for moment in ("start", END)
    ]
    assert distance(measured("start"), measured(END), 5e-4, 50) == pytest.approx(np.abs(curves[0] - curves[1]).max())


def test_results_are_found_by_moment_and_probe():
    one = studied()
    assert list(one.moments("plain")) == list(MOMENTS)
    assert one.metrics == ["plain"]
    assert one.other_probe("plain").step == MOMENTS.index("a half")
    assert one.other_probe("own") is None
    assert noise_of(one.moments("plain")[END]).batch_size == 4


def test_a_ratio_is_short():
    assert [factor_text(number) for number in (1.234, 28.49, 2261.0, math.nan)] == ["1.23", "28.5", "2,261", "–"]
