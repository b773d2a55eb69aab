import dataclasses

import pytest
from numpy.testing import assert_allclose
from tests.planning.measured import SPECTRUM, measured_source
from tests.spectrum.test_noise import noise
from tests.spectrum.test_start import START
from tests.studio.drawn import view_of

import eigencurve as ec
from eigencurve.figures.interactive import style_of
from eigencurve.planning.code import training_code
from eigencurve.planning.labels import BEST, LABELS
from eigencurve.spectrum import prepare
from eigencurve.spectrum.source import ASSUMED_NOISE
from eigencurve.spectrum.zoo import zoo_spectrum
from eigencurve.studio.source import Upload, subject_of
from eigencurve.studio.state import KINDS, USUAL_KINDS, Settings
from eigencurve.studio.view import problem_of, recipe_of
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.optimal import search

ZOO = Settings(epochs=20, steps_per_epoch=100)
LAW = Settings(source="power_law", alpha=1.2, kappa=1e4, weight_decay=1e-3, epochs=20, steps_per_epoch=100)


def test_the_problem_is_that_of_the_settings():
    problem, max_lr = problem_of(LAW, subject_of(LAW))
    assert problem == ec.NoisyQuadratic(ec.PowerLaw(1.2, 1e-3, 10.0).spectrum(), ASSUMED_NOISE, 1.0)
    assert max_lr == 2 / problem.spectrum.L
    given = dataclasses.replace(LAW, scale="given", lr=0.7)
    assert problem_of(given, subject_of(given)) == (problem, 0.7)
    nesterov = dataclasses.replace(LAW, momentum=0.9, nesterov=True)
    problem, max_lr = problem_of(nesterov, subject_of(nesterov))
    assert (problem.momentum, problem.nesterov, max_lr) == (0.9, True, problem.stable_rate)
    assert recipe_of("cosine", nesterov, subject_of(nesterov)).training.nesterov


def test_measured_noise_and_start_are_used_unless_the_noise_is_set():
    upload = Upload("u.npz", SPECTRUM, noise(), START)
    settings = dataclasses.replace(ZOO, source="upload")
    problem, _ = problem_of(settings, subject_of(settings, upload))
    assert problem == ec.NoisyQuadratic(prepare(SPECTRUM, 5e-4), noise(), START)
    own = dataclasses.replace(settings, noise=3.0)
    assert problem_of(own, subject_of(own, upload))[0] == ec.NoisyQuadratic(prepare(SPECTRUM, 5e-4), 3.0, START)


def test_the_search_is_shown_with_the_others():
    problem, max_lr = problem_of(LAW, subject_of(LAW))
    best = search(BlockEvaluator(problem.nodes), problem.spectrum, LAW.total_steps, max_lr)
    view = view_of(LAW, best=best)
    assert view.losses.rows[0].name == BEST
    assert view.curves.compared[BEST] == best.schedule
    scaled = best.schedule.values() * (LAW.lr / best.schedule.values().max())
    assert_allclose(view.curves.schedules[BEST].values(), scaled)
    assert BEST not in view.curves.recipes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("min_lr", [None, 0.0, 0.001])
def test_every_kind_is_made(kind, min_lr):
    settings = dataclasses.replace(LAW, schedules=(kind,), min_lr=min_lr)
    schedule = view_of(settings).curves.schedules[kind]
    assert schedule.total_steps == settings.total_steps
    assert schedule.kind == kind or kind in ("wsd", "wsd_sqrt", "wsd_cycles")
    assert schedule(0) == pytest.approx(settings.lr / 25 if kind == "one_cycle" else settings.lr)
    if min_lr and kind in ("eigencurve", "exponential", "inverse_time"):
        assert schedule(schedule.total_steps - 1) == pytest.approx(min_lr)


def test_only_eigencurve_has_intervals():
    assert len(view_of(ZOO).curves.intervals) == 19
    assert view_of(dataclasses.replace(ZOO, schedules=("cosine",))).curves.intervals == ()


def test_the_code_makes_the_same_schedule():
    for settings in (ZOO, LAW):
        for kind in KINDS:
            recipe = recipe_of(kind, settings, subject_of(settings))
            names = {"ec": ec, "zoo_spectrum": zoo_spectrum}
            exec("\n".join(recipe.statements()), names)
            assert names["schedule"] == recipe.schedule


def test_an_upload_is_read_from_its_file_in_the_code():
    settings = dataclasses.replace(ZOO, source="upload")
    subject = subject_of(settings, Upload('my "best".npz', zoo_spectrum("resnet20_cifar10")))
    lines = recipe_of("eigencurve", settings, subject).statements()
    assert r'ec.load_spectrum("my \"best\".npz")' in lines[0]


def test_every_schedule_has_a_label():
    assert set(LABELS) == {*KINDS, BEST}


def test_the_tail_of_wsd_has_two_shapes():
    curves = view_of(dataclasses.replace(LAW, schedules=("wsd", "wsd_sqrt"), lr=0.3)).curves.schedules
    assert curves["wsd"] == ec.wsd(2000, 0.3)
    assert curves["wsd_sqrt"] == ec.wsd(2000, 0.3, tail="1-sqrt")


def test_the_usual_schedules_have_colours_of_their_own():
    assert len({style_of(kind)["color"] for kind in USUAL_KINDS}) == len(USUAL_KINDS)


def test_a_spectrum_in_the_metric_of_adam_has_code_for_adam():
    record = dataclasses.replace(measured_source().measurement, preconditioner="AdamW")
    upload = Upload("a.npz", SPECTRUM, measurement=record)
    settings = dataclasses.replace(ZOO, source="upload", momentum=0.9, nesterov=True)
    recipe = recipe_of("cosine", settings, subject_of(settings, upload))
    training = recipe.training
    assert (training.optimizer, training.momentum, training.nesterov) == ("adamw", 0.9, False)
    assert "torch.optim.AdamW(model.parameters(), lr=schedule.lr, weight_decay=0.0005)" in training_code(
        "torch", recipe
    )
