import numpy as np
import pytest
from tests.paper.images.examples import data, settings
from torch.nn import functional as F

import eigencurve as ec
from eigencurve import Spectrum
from eigencurve.hessian import estimate_noise, estimate_start
from eigencurve.hessian.estimate import estimate_spectrum
from eigencurve.hessian.operator import HessianOperator
from eigencurve.runs.store import Run
from paper.data.images import normalise
from paper.images import spectra
from paper.images.experiment import train_images
from paper.images.spectra import (
    estimate_on,
    operator_on,
    recommendation_experiment,
    spectrum_experiment,
    spectrum_name,
    spectrum_of,
)
from paper.models.registry import build
from paper.training.devices import threads
from paper.training.settings import through_points

NUM_PRODUCTS = 6


def measured(**changes):
    estimate = {"num_images": 8, "num_products": NUM_PRODUCTS, "settle": None, "microbatch": 4, "schedule_steps": 100}
    return settings(epochs=1, **estimate) | changes


def test_an_outcome_holds_the_spectrum_and_what_it_was_computed_from():
    (outcome,) = spectrum_experiment(data()).run([Run(measured(), 0)])
    found = spectrum_of(outcome)
    assert found.dim == sum(p.numel() for p in build("resnet18", 10, 16).parameters())
    assert found.weights.sum() == pytest.approx(1.0)
    assert outcome.metrics["num_products"] == len(outcome.curves["tridiagonal"]) == NUM_PRODUCTS
    assert sum(share for _, share in outcome.curves["octaves"]) == pytest.approx(1.0)
    assert len(outcome.curves["octave_errors"]) == len(outcome.curves["octaves"])
    assert outcome.metrics["accuracy"] == 100 * outcome.curves["accuracy"][-1][1]


def test_the_estimate_is_on_the_first_training_images_in_eval_mode():
    whole, model = data(), build("resnet18", 10, 16).eval()
    found = estimate_on(model, whole, measured(), seed=3, checkpoint=None)
    batch = normalise(whole.train.images[:8]), whole.train.labels[:8]
    plain = estimate_spectrum(
        HessianOperator(model, F.cross_entropy, batch), NUM_PRODUCTS, seed=3, settle=None, weight_decay=5e-4,
        total_steps=100, progress=False,
    )  # fmt: skip
    # Float32 products of another memory layout.
    np.testing.assert_allclose(found.alphas[0], plain.alphas[0], rtol=1e-3, atol=1e-4)


def test_a_run_killed_in_the_estimate_does_not_train_again(tmp_path, monkeypatch):
    (whole,) = spectrum_experiment(data()).run([Run(measured(), 0)])
    experiment = spectrum_experiment(data(), tmp_path)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(spectra, "estimate_on", stop)
        with pytest.raises(KeyboardInterrupt):
            experiment.run([Run(measured(), 0)])
    assert [path.suffix for path in tmp_path.iterdir()] == [".pt"]
    monkeypatch.setattr("paper.images.task.ImageTask.loss", stop)
    assert experiment.run([Run(measured(), 0)]) == [whole]
    assert list(tmp_path.iterdir()) == []


def test_a_training_that_diverges_has_no_spectrum():
    (outcome,) = spectrum_experiment(data()).run([Run(measured(schedule="constant", lr=1e30, weight_decay=1.0), 0)])
    assert outcome.diverged
    assert outcome.curve == ()


def test_a_name_belongs_to_one_network_and_its_numbers():
    one, other = Spectrum([0.1, 2.0], [3, 1]), Spectrum([0.1, 2.0], [2, 1])
    assert spectrum_name(measured(), one).startswith("resnet18/16/")
    assert spectrum_name(measured(), one) == spectrum_name(measured(lr=7.0), one)
    names = {spectrum_name(measured(), one), spectrum_name(measured(), other), spectrum_name(measured(divisor=1), one)}
    assert len(names) == 3


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
    noise = estimate_noise(operator, spectrum, 16, num_products=8, seed=3, progress=False)
    begin = build("resnet18", 10, 16, seed=3)
    start = estimate_start(operator, (begin, model), spectrum, num_products=8, progress=False)
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
