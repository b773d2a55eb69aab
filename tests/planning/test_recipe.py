from pathlib import Path

import pytest

import eigencurve as ec
from eigencurve.planning.recipe import Recipe, load_schedule
from eigencurve.planning.subject import bytes_subject, file_subject, law_subject, zoo_subject
from eigencurve.schedules.kinds import FACTORIES
from eigencurve.spectrum.files import spectrum_bytes


def made(source):
    """What the statements of a snippet make."""
    names = {"ec": ec}
    exec("\n".join([*source.imports(), *source.statements()]), names)
    return names["schedule"]


KINDS = {
    "constant": {},
    "cosine": {"min_lr": 1e-3},
    "cosine_power": {"alpha": 0.7},
    "elastic_step": {"r": 0.6},
    "exponential": {"min_lr": 1e-3},
    "hold_then_decay": {"hold": 20, "every": 5, "factor": 1.2},
    "inverse_sqrt": {"timescale": 30},
    "inverse_time": {"min_lr": 1e-3},
    "linear": {},
    "multistep": {"milestones": (10, 50), "factor": 3.0},
    "one_cycle": {"pct_start": 0.2, "three_phase": True},
    "polynomial": {"power": 0.9},
    "rex": {"min_lr": 1e-3},
    "step_decay": {"num_intervals": 4},
    "wsd": {"decay_steps": 10, "tail": "1-sqrt"},
    "wsd_cycles": {"num_cycles": 2, "decay": 0.3},
}


def test_every_kind_is_tested():
    assert {*KINDS, "eigencurve"} == set(FACTORIES)


@pytest.mark.parametrize("kind", KINDS)
def test_the_code_of_every_kind_makes_an_equal_schedule(kind):
    for warmup_steps, shape in ((0, "linear"), (7, "linear"), (7, "cosine")):
        recipe = Recipe(kind, 100, 0.3, warmup_steps=warmup_steps, warmup_shape=shape, settings=KINDS[kind])
        assert made(recipe) == recipe.schedule
        assert recipe.schedule.total_steps == 100


def test_the_code_of_an_eigencurve_makes_an_equal_schedule_from_every_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spectrum = ec.Spectrum([-0.5, 1.0, 7.0, 30.0], [1, 5, 3, 1])
    ec.save_spectrum(spectrum, tmp_path / 'a "b".json')
    subjects = [
        law_subject(1.5, 1e4),
        zoo_subject("resnet20_cifar10"),
        file_subject(Path('a "b".json'), 1e-2),
        bytes_subject(spectrum_bytes(spectrum, ".txt"), ".txt", "standard input", 1e-2),
    ]
    for subject in subjects:
        settings = {"beta": 1.7, "allocation": "optimal", "min_lr": 1e-4}
        recipe = Recipe("eigencurve", 500, 0.1, subject, warmup_steps=20, settings=settings)
        assert made(recipe) == recipe.schedule


def test_the_code_of_a_saved_schedule_reads_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = b'{"kind": "cosine", "version": 1, "total_steps": 9, "lr": 0.1, "min_lr": 0.0}'
    (tmp_path / "best.json").write_bytes(content)
    saved = load_schedule(Path("best.json"), content)
    assert made(saved) == saved.schedule == ec.cosine(9, 0.1)
    with pytest.raises(ValueError, match="load_schedule: 'path' must be JSON"):
        load_schedule(Path("best.json"), b"{")
