import numpy as np
import pytest

import eigencurve as ec

pytest.importorskip("torch", reason="PyTorch is not installed")
import torch

from eigencurve.hessian import HessianOperator, MatvecOperator, estimate_noise, estimate_spectrum
from eigencurve.planning.from_operator import operator_subject


@pytest.fixture(scope="module")
def operator():
    source = torch.Generator().manual_seed(0)
    x, y = torch.randn(60, 5, generator=source), torch.randn(60, 1, generator=source)
    torch.manual_seed(0)
    return HessianOperator(torch.nn.Linear(5, 1), torch.nn.MSELoss(), (x, y))


def test_a_plan_from_the_hessian_of_a_model_measures_spectrum_and_noise(operator):
    found = ec.plan(operator, total_steps=100, batch_size=8, momentum=0.5)
    estimate = estimate_spectrum(operator, total_steps=100, progress=False)
    noise = estimate_noise(operator, estimate, 8, progress=False)
    expected = ec.plan(estimate, total_steps=100, noise=noise, momentum=0.5)
    assert found.verdict == expected.verdict
    assert {known.name: known.source for known in found.inputs}["gradient noise"] == "measured"


def test_given_noise_is_not_measured(operator):
    found = ec.plan(operator, total_steps=100, noise=2.0, initial_error=1.0)
    assert {known.name: known.source for known in found.inputs}["gradient noise"] == "given"


def test_the_batch_size_is_needed(operator):
    with pytest.raises(ValueError, match=r"'batch_size' must be given with the Hessian of a model.*or pass 'noise'"):
        ec.plan(operator, total_steps=100)


def test_a_preconditioned_operator_is_planned_for_its_optimizer(operator):
    subject = operator_subject(operator, 100, None, 8, measure_noise=True)
    assert subject.weight_decay == 5e-4
    metric = operator.preconditioned_by(np.full(operator.dim, 2.0))
    halved = operator_subject(metric, 100, 1e-3, 8, measure_noise=True)
    assert halved.weight_decay == 1e-3
    assert pytest.approx(subject.raw.L / 2, rel=1e-4) == halved.raw.L


def test_a_function_has_no_examples():
    matrix = np.diag(np.geomspace(0.01, 1, 20))
    subject = operator_subject(MatvecOperator(lambda v: matrix @ v, 20), 100, None, None, measure_noise=True)
    assert subject.noise is None
    assert pytest.approx(1.0, rel=1e-5) == subject.raw.L
