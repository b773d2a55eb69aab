import pytest
from tests.paper.images.examples import data, settings

import eigencurve as ec
from eigencurve.hessian import estimate_noise, estimate_start
from eigencurve.runs.store import Run
from paper.images.experiment import train_images
from paper.images.recommendation import recommendation_experiment
from paper.images.spectra import estimate_on, operator_on
from paper.models.registry import build
from paper.training.devices import threads
from paper.training.schedules import through_points

CHOSEN = settings(
    num_images=12, num_products=16, settle=None, microbatch=None, schedule_steps=20, momenta=[0.0, 0.9], spectrum="own"
)


def test_it_is_the_plan_for_what_was_measured():
    images = data()
    with threads(1):  # as the experiment has
        model, _ = train_images(images, CHOSEN, 3, {})
    spectrum = estimate_on(model, images, CHOSEN, 3, None).spectrum
    (found,) = recommendation_experiment(images, spectrum).run([Run(CHOSEN, 3)])
    operator = operator_on(model, images, CHOSEN)
    noise = estimate_noise(operator, spectrum, 16, num_steps=8, seed=3, progress=False)
    begin = build("resnet18", 10, 16, seed=3)
    start = estimate_start(operator, (begin, model), spectrum, num_steps=8, progress=False)
    assert found.metrics == {"sigma2": pytest.approx(noise.sigma2)}
    for momentum in (0.0, 0.9):
        planned = ec.plan(
            spectrum, total_steps=20, momentum=momentum, weight_decay=5e-4, noise=noise, initial_error=start
        ).schedule.values()
        schedule = through_points(found.curves[f"momentum {momentum:g}"], 20, lr=0.5)
        assert schedule.values() == pytest.approx(0.5 * planned / planned.max(), abs=1e-5)


def test_a_diverged_run_recommends_nothing():
    (found,) = recommendation_experiment(data(), None).run([Run(CHOSEN | {"lr": 1e30}, 0)])
    assert found.diverged
    assert not found.curves
