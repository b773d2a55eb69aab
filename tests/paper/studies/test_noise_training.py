from dataclasses import replace

import pytest
import torch
from tests.paper.studies.noise_files import IMAGES, TEXT, write_data

from paper.studies import noise_training
from paper.studies.noise_training import (
    DESK,
    END,
    HALF,
    MOMENTS,
    SMOKE,
    START,
    TENTH,
    noise_scale,
    problem_of,
    schedule_for,
    state_at,
    train_subject,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noise")
    problem = problem_of(TEXT, write_data(folder))
    return problem, train_subject(TEXT, problem, folder), folder


def test_there_is_a_state_for_each_moment(trained):
    problem, files, folder = trained
    states = [state_at(TEXT, problem, files, moment) for moment in MOMENTS]
    steps = problem.task.steps_per_epoch
    assert [state.step for state in states] == [0, steps, 5 * steps, 10 * steps]
    assert [bool(state.optimizer.state) for state in states] == [False, True, True, True]
    assert [len(state.metrics) > 0 for state in states] == [False, True, True, True]
    assert all(not state.model.training for state in states)
    assert not list(folder.glob("*a[0-9a-f].pt"))


def test_what_is_trained_is_not_trained_again(trained, monkeypatch):
    problem, files, folder = trained
    monkeypatch.setattr(noise_training, "train", None)
    assert train_subject(TEXT, problem, folder) == files


def test_other_training_settings_have_other_files_and_other_measurements_do_not(trained):
    problem, _, _ = trained
    key = TEXT.key(problem.digest)
    assert replace(TEXT, lr=1.0).key(problem.digest) != key
    assert TEXT.key("other data") != key
    assert replace(TEXT, num_curved=7).key(problem.digest) == key


def test_examples_are_nested_and_fixed(trained, tmp_path):
    for problem in (trained[0], problem_of(IMAGES, write_data(tmp_path))):
        few, more = problem.examples(3), problem.examples(6)
        for part, whole in zip(few, more, strict=True):
            assert torch.equal(part, whole[:3])


def test_the_rate_rises_and_decays_to_zero():
    f = schedule_for(replace(TEXT, rise=0.1, lr=0.5), 100)
    assert f.values().argmax() in (9, 10)
    assert f.values().max() == pytest.approx(0.5)
    assert f(99) < 0.01


def test_weights_from_a_file_have_a_start_and_an_end():
    assert replace(IMAGES, epochs=0).moments == (START, END)
    assert IMAGES.moments == (START, TENTH, HALF, END)


def test_every_name_but_smoke_is_the_desk_scale():
    assert noise_scale("smoke") is SMOKE
    assert noise_scale("paper") is noise_scale("laptop") is DESK


@pytest.mark.parametrize("scale", [DESK, SMOKE])
def test_moments_are_whole_epochs_and_checked_networks_exist(scale):
    names = [subject.name for subject in scale.subjects]
    assert len(set(names)) == len(names)
    assert {*scale.fewer, *scale.noisier} <= set(names)
    assert all(subject.epochs % 10 == 0 for subject in scale.subjects)
    assert all(subject.num_curved <= subject.num_noisy for subject in scale.subjects)


def test_both_optimizers_train_the_same_transformer():
    pair = [subject for subject in DESK.subjects if subject.network == "transformer"]
    assert {subject.optimizer for subject in pair} == {"sgd", "adamw"}
    assert len({(subject.divisor, subject.batch_size, subject.epochs) for subject in pair}) == 1
