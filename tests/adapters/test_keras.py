"""Beyond the contract: traced steps, saved models, callbacks and errors."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from tests.adapters.contract import SCHEDULES
from tests.adapters.keras_driver import BACKENDS, keras_worker
from tests.schedules.test_segments import LONG, relative_error

import eigencurve as ec
from eigencurve.schedules.segments import breaks

pytestmark = pytest.mark.slow


@pytest.fixture(params=BACKENDS)
def worker(request):
    return keras_worker(request.param)


def test_each_worker_has_its_own_backend():
    assert [keras_worker(name).call("backend") for name in BACKENDS] == [*BACKENDS]


@pytest.mark.parametrize("kind", ["eigencurve, last rate", "cosine_power", "multistep", "wsd"])
def test_nothing_is_lost_in_a_million_traced_steps(worker, kind):
    f = LONG[kind](10**6, 0.1)
    steps = (breaks(f)[:, None] + np.arange(-1, 2)).ravel().clip(0, f.total_steps - 1)[-1500:]
    steps = np.append(steps, np.random.default_rng(0).integers(0, f.total_steps, 3000 - len(steps)))
    found = np.array(worker.call("values", schedule=f.to_dict(), steps=steps.tolist()))
    assert relative_error(found, f(steps)).max() <= 2**-22


def test_fit_shows_callbacks_the_rate_of_the_next_update(worker):
    f = ec.warmup(ec.cosine(9, 0.1), 3)
    found = worker.call("fitted_rates", schedule=f.to_dict(), num_steps=15)
    np.testing.assert_allclose(found["seen"], f(np.arange(15)), rtol=2**-22)
    assert found["iterations"] == list(range(1, 16))


def test_hurt_2_a_restored_backup_continues_with_the_next_rate(worker, tmp_path):
    f = SCHEDULES["eigencurve"](10)
    found = worker.call("restored_rates", schedule=f.to_dict(), num_steps=10, stop_at=4, folder=str(tmp_path / "b"))
    assert len(found) == 4 + 10  # Keras repeats the interrupted epoch, and the optimizer keeps counting
    np.testing.assert_allclose(found, f(np.arange(14)), rtol=2**-22)


def test_hurt_3_a_compiled_train_step_does_not_keep_the_old_horizon(worker):
    f, longer = ec.cosine(8, 0.5), ec.cosine(14, 0.5)
    both = {"schedule": f.to_dict(), "longer": longer.to_dict(), "num_steps": 14, "at": 6}
    wanted = [*f(np.arange(6)), *longer(np.arange(6, 14))]
    np.testing.assert_allclose(worker.call("rates_extended_in_place", **both), wanted, rtol=2**-22)
    ratios = [1.0, 0.5]
    found = worker.call("groups_extended_in_place", **both, ratios=ratios)
    np.testing.assert_allclose(found, np.outer(wanted, ratios), rtol=2**-22)


@pytest.mark.parametrize("shape", ["linear", "1-sqrt", "cosine"])
def test_a_loaded_model_is_cooled_down(worker, shape):
    f, ratios = ec.constant(100, 0.5), [1.0, 0.5]
    found = worker.call("rates_cooled", schedule=f.to_dict(), num_steps=5, at=3, shape=shape, ratios=ratios)
    wanted = ec.cooldown(f, 3, 5, shape).values()
    np.testing.assert_allclose(found, np.outer(wanted, ratios), rtol=2**-22)


def test_hurt_3_a_rewarmup_does_not_jump_with_accumulation(worker):
    f, longer = ec.cosine(8, 0.5), ec.cosine(20, 0.5)
    found = worker.call(
        "rates_rewarmed", schedule=f.to_dict(), longer=longer.to_dict(), num_steps=20, at=7, rewarm=5, accumulation=2
    )
    np.testing.assert_allclose(found[7 + 5 :], longer.values()[12:], rtol=2**-22)
    np.testing.assert_allclose(np.diff(found[7:13]), (longer(12) - f(7)) / 6, rtol=1e-5)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (10, None),
        (6, "has 6 steps, but the trainer takes 10: the last 4"),
        (30, "has 30 steps, .* training ends before"),
    ],
)
@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_schedule_of_another_length_is_reported(worker, length, text, accumulation):
    f = ec.linear(length, 0.5)
    settings = {"num_batches": 4 * accumulation, "epochs": 2, "taken": 2, "accumulation": accumulation}
    found = worker.call("length_warnings", schedule=f.to_dict(), **settings)
    assert len(found) == (text is not None)
    assert text is None or re.match(f"CheckLength: the schedule {text}", found[0])


LOADED = """
import sys, numpy as np, keras
import eigencurve.adapters.keras
model = keras.models.load_model(sys.argv[1])
for _ in range(3):
    print(float(model.optimizer.learning_rate))
    model.train_on_batch(np.ones((1, 1)), np.ones((1, 1)))
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_hurt_6_a_saved_model_is_loaded_in_a_new_process_without_custom_objects(backend, tmp_path):
    f, path = SCHEDULES["warmup, eigencurve"](9), str(tmp_path / "model.keras")
    keras_worker(backend).call("save", schedule=f.to_dict(), num_steps=4, path=path)
    environment = {**os.environ, "KERAS_BACKEND": backend}
    command = [sys.executable, "-c", LOADED, path]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    np.testing.assert_allclose([float(line) for line in said.split()], f(np.arange(4, 7)), rtol=2**-22)


def test_the_curvature_of_a_keras_model_is_the_same_on_both_backends():
    """The backends order the weights differently, so the eigenvalues are compared."""
    first, second = (np.linalg.eigvalsh(keras_worker(backend).call("hessian")) for backend in BACKENDS)
    assert len(first) == 34
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-5 * np.abs(first).max())  # float32 on both sides


def test_doctests(worker):
    found = worker.call("doctests")
    assert found["attempted"] > 0
    assert found["failed"] == 0


@pytest.mark.parametrize(
    ("case", "error", "function", "argument"),
    [
        ("schedule", "ArgumentTypeError", "KerasSchedule", "schedule"),
        ("scale", "ArgumentValueError", "KerasSchedule", "scale"),
        ("accumulation", "ArgumentValueError", "KerasSchedule", "gradient_accumulation_steps"),
        ("float step", "ArgumentTypeError", "KerasSchedule", "step"),
        ("too short", "ArgumentValueError", "extend", "schedule"),
        ("no schedule", "ArgumentValueError", "extend", "model"),
        ("not compiled", "ArgumentValueError", "extend", "model"),
        ("past", "ArgumentValueError", "cooldown", "from_step"),
        ("cool nothing", "ArgumentValueError", "cooldown", "model"),
        ("extend a number", "ArgumentTypeError", "extend", "schedule"),
        ("foreign config", "ArgumentValueError", "schedule_from_dict", "kind"),
    ],
)
def test_bad_arguments(worker, case, error, function, argument):
    assert worker.call("refused", case=case) == [error, function, argument]


def test_a_missing_backend_is_named():
    keras_worker("torch")
    code = "try:\n import eigencurve.adapters.keras\nexcept ImportError as error:\n print(error)"
    environment = {**os.environ, "KERAS_BACKEND": "openvino"}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "Keras cannot import openvino: set KERAS_BACKEND to torch, jax or tensorflow" in said.stdout
