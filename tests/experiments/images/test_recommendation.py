import numpy as np
import pytest
from tests.experiments.images.examples import data, settings

import eigencurve as ec
from eigencurve.experiments.images.experiment import train_images
from eigencurve.experiments.images.recommendation import RecommendationExperiment, points_of
from eigencurve.experiments.images.spectra import estimate_on, operator_on
from eigencurve.experiments.models.registry import build
from eigencurve.experiments.training.schedules import through_points
from eigencurve.hessian import estimate_noise, estimate_start
from eigencurve.runs.store import Run

CHOSEN = settings(
    num_images=12, num_products=16, settle=None, microbatch=None, schedule_steps=20, momenta=[0.0, 0.9], spectrum="own"
)


def test_it_is_the_best_schedule_for_what_was_measured():
    images = data()
    model, _ = train_images(images, CHOSEN, 3, {})
    spectrum = estimate_on(model, images, CHOSEN, 3, None).spectrum
    (found,) = RecommendationExperiment(images, spectrum).run([Run(CHOSEN, 3)])
    operator = operator_on(model, images, CHOSEN)
    noise = estimate_noise(operator, spectrum, 16, num_steps=8, seed=3, progress=False)
    begin = build("resnet18", 10, 16, seed=3)
    start = estimate_start(operator, (begin, model), spectrum, num_steps=8, progress=False)
    assert found.metrics == {"sigma2": pytest.approx(noise.sigma2)}
    prepared = ec.prepare(spectrum, 5e-4)
    for momentum, largest in ((0.0, 1 / prepared.L), (0.9, 1.9 / prepared.L)):
        best = ec.NoisyQuadratic(prepared, noise, start, momentum).search_best(20, largest)
        shares = best.schedule.values() / best.schedule.values().max()
        schedule = through_points(found.curves[f"momentum {momentum:g}"], 20, lr=0.5)
        assert schedule.values() == pytest.approx(0.5 * shares, abs=1e-3)


@pytest.mark.parametrize(
    "schedule", [ec.cosine(2_000, 0.3), ec.wsd(1_600, 0.3, 320), ec.step_decay(30, 0.1), ec.constant(1, 2.0)]
)
def test_points_describe_a_schedule(schedule):
    again = through_points(points_of(schedule), schedule.total_steps, schedule.lr)
    assert np.abs(again.values() - schedule.values()).max() < 0.02 * schedule.lr  # kinks between two knots


def test_points_stretch_to_other_lengths():
    points = points_of(ec.linear(2_000, 0.3))
    assert through_points(points, 1_600, 0.3).values() == pytest.approx(ec.linear(1_600, 0.3).values(), abs=1e-3)


def test_a_diverged_run_recommends_nothing():
    (found,) = RecommendationExperiment(data(), None).run([Run(CHOSEN | {"lr": 1e30}, 0)])
    assert found.diverged
    assert not found.curves
