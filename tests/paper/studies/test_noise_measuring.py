import dataclasses
import math

import numpy as np
import pytest
import torch
from tests.paper.studies.noise_files import IMAGES, SCALE, TEXT, write_data
from tests.paper.studies.noise_results import studied
from tests.spectrum.test_noise import noise

from eigencurve.hessian import PreconditionedOperator
from paper.studies import noise_measuring
from paper.studies.noise_measuring import (
    OWN,
    PLAIN,
    Measuring,
    decay_in,
    factor_text,
    fewer_examples,
    file_of,
    load_measured,
    measure,
    measurings,
    noise_of,
    noisier_examples,
    operator_of,
    resolved,
    spectrum_file_of,
    spread,
    usual,
)
from paper.studies.noise_training import END, MOMENTS, START, TENTH, problem_of, state_at, train_subject


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noise")
    problem = problem_of(TEXT, write_data(folder))
    return problem, train_subject(TEXT, problem, folder), folder


def test_a_measurement_has_spectrum_noise_and_at_the_end_the_start(trained):
    problem, files, folder = trained
    for how in (usual(TEXT, TENTH), usual(TEXT, END, OWN), noisier_examples(TEXT)):
        path = file_of(TEXT, problem, SCALE, how, folder)
        measure(TEXT, problem, SCALE, how, state_at(TEXT, problem, files, how.moment), path, "a test")
        found = load_measured(path)
        assert found.measurement.made_by == "a test"
        assert found.measurement.weight_decay == found.noise.weight_decay == decay_in(TEXT, how.metric)
        assert found.noise.batch_size == TEXT.batch_size
        assert found.noise.num_examples == how.num_noisy
        assert (found.start is not None) == (how == usual(TEXT, END, OWN))
    assert not list(folder.glob("*.part*"))


def test_the_own_metric_is_that_of_the_optimizer(trained):
    problem, files, _ = trained
    state = state_at(TEXT, problem, files, END)
    plain, own = (operator_of(TEXT, problem, usual(TEXT, END, metric), state) for metric in (PLAIN, OWN))
    assert isinstance(own, PreconditionedOperator)
    assert own.eigenvalue_shift == decay_in(TEXT, OWN) == TEXT.weight_decay
    scale = torch.cat([s["exp_avg_sq"].flatten() for s in state.optimizer.state.values()])
    bias = 1 - 0.999**state.step
    v = torch.randn(own.dim, generator=torch.Generator().manual_seed(0))
    root = ((scale / bias).sqrt() + 1e-8).rsqrt()
    torch.testing.assert_close(own(v), root * plain(root * v), rtol=1e-3, atol=1e-3 * own(v).abs().max().item())


def test_measurements_of_the_noise_share_a_spectrum(trained, monkeypatch):
    problem, files, folder = trained
    state, ways = state_at(TEXT, problem, files, TENTH), [Measuring(TENTH, 4, count) for count in (4, 6)]
    assert len({spectrum_file_of(TEXT, problem, SCALE, how, folder) for how in ways}) == 1
    paths = [file_of(TEXT, problem, SCALE, how, folder) for how in ways]
    measure(TEXT, problem, SCALE, ways[0], state, paths[0])
    monkeypatch.setattr(noise_measuring, "estimate_spectrum", None)
    measure(TEXT, problem, SCALE, ways[1], state, paths[1])
    first, second = (load_measured(path) for path in paths)
    assert first.spectrum == second.spectrum
    assert first.measurement.error_between_probes == second.measurement.error_between_probes
    assert [first.noise.num_examples, second.noise.num_examples] == [4, 6]


def test_everything_is_measured_once():
    every = measurings(TEXT, SCALE)
    assert len(set(every)) == len(every) == 4 + 3 + 1
    assert usual(TEXT, START, OWN) not in every
    assert usual(TEXT, END, OWN, probe=1) in every
    assert {fewer_examples(IMAGES), noisier_examples(IMAGES)} <= set(measurings(IMAGES, SCALE))


def test_every_setting_is_in_the_name_of_the_file(trained, tmp_path):
    problem, _, _ = trained
    ways = [*measurings(TEXT, SCALE), Measuring(END, 3, 3), Measuring(END, 3, 4)]
    names = {file_of(TEXT, problem, SCALE, how, tmp_path).name for how in ways}
    assert len(names) == len(ways)


def test_octaves_without_signal_or_below_the_weight_decay_do_not_count():
    octaves = noise().octaves
    weak = noise(octaves=dataclasses.replace(octaves, error=np.array([1.0, 0.1, 0.2])))
    assert resolved(weak).tolist() == [False, True, True]
    assert resolved(noise(octaves=dataclasses.replace(octaves, weight_decay=0.1))).tolist() == [False, True, True]
    assert spread(noise()) == 2.0
    assert math.isnan(spread(weak))


def test_results_are_found_by_moment_and_probe():
    one = studied()
    assert list(one.moments("plain")) == list(MOMENTS)
    assert one.metrics == ["plain"]
    assert one.other_probe("plain").step == MOMENTS.index("a half")
    assert one.other_probe("own") is None
    assert noise_of(one.moments("plain")[END]).batch_size == 4


def test_a_ratio_is_short():
    assert [factor_text(number) for number in (1.234, 28.49, 2261.0, math.nan)] == ["1.23", "28.5", "2,261", "–"]
