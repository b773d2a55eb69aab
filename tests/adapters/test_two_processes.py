import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("accelerate")
pytest.importorskip("lightning")
pytest.importorskip("transformers")

import torch
from tests.adapters.drivers.transformers import sentences, tiny_gpt2
from tests.adapters.test_lightning import Classifier, data
from tests.adapters.two_processes import LR, SCHEDULE
from tests.torchrun import run_in_two
from torch.nn import functional as F

import eigencurve as ec
from eigencurve.adapters.transformers import model_loss
from eigencurve.hessian import HessianOperator, estimate_spectrum

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Rates used by each of two processes."""
    folder = tmp_path_factory.mktemp("two")
    run_in_two(Path(__file__).with_name("two_processes.py"), folder)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


def test_both_processes_used_the_same_rates(found):
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("case", "updates"),
    [
        ("accelerate", 12),
        ("accelerate, accumulating", 6),
        ("accelerate, split batches", 12),
        ("transformers, optimizers", 8),
        ("transformers, callback", 8),
    ],
)
def test_hurt_1_one_step_per_update_for_any_processes_and_accumulation(found, case, updates):
    assert found[0][case] == [SCHEDULE(t) for t in range(updates)]


def test_what_accelerate_prepares_itself_steps_once_per_process(found):
    """The reason for prepare_schedule: this test fails if accelerate changes its behaviour."""
    assert found[0]["accelerate, prepared by itself"] == [SCHEDULE(2 * t) for t in range(12)]


def test_a_time_budget_is_that_of_the_first_process(found):
    assert found[0]["timed"] == found[1]["timed"] == ec.linear(100, LR)(np.arange(10, 60, 10)).tolist()


def test_lightning_measures_over_all_processes_and_counts_their_steps(found):
    # 24 examples, two processes, batches of 2, two epochs: 12 updates.
    assert found[0]["lightning steps"] == len(found[0]["lightning"]) == 12
    operator = HessianOperator(Classifier().net, F.cross_entropy, data().tensors)
    one = estimate_spectrum(operator, 8, settle=None, weight_decay=1e-2, total_steps=12)
    np.testing.assert_allclose(found[0]["alphas"], one.alphas[0], rtol=1e-3, atol=1e-6)  # float32
    curve = ec.eigencurve(ec.spectrum.prepare(one.spectrum, 1e-2), 12, LR)
    np.testing.assert_allclose(found[0]["lightning"], curve.values(), rtol=1e-3)


def test_transformers_measures_over_all_processes(found):
    rows = sentences()
    batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    operator = HessianOperator.from_objective(tiny_gpt2(), model_loss, batch)
    one = estimate_spectrum(operator, 6, settle=None, weight_decay=1e-2, total_steps=6)
    np.testing.assert_allclose(found[0]["transformers, alphas"], one.alphas[0], rtol=1e-3, atol=1e-5)  # float32
    curve = ec.eigencurve(ec.spectrum.prepare(one.spectrum, 1e-2), 6, LR)
    np.testing.assert_allclose(found[0]["transformers, measured"], curve.values(), rtol=1e-3)
