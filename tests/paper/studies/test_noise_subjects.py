import pytest

from paper.studies.noise_subjects import DESK, SMOKE, noise_scale


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
