"""Every snippet is run as it is, in a process of its own, with the real framework."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import eigencurve as ec
from eigencurve.planning.recipe import Recipe, load_schedule
from eigencurve.planning.snippets import TEMPLATES, snippet
from eigencurve.planning.subject import bytes_subject, file_subject, law_subject, zoo_subject
from eigencurve.spectrum.files import spectrum_bytes

T = 6
# The rate of every step, as PyTorch's optimizers get it.
RATES_OF_TORCH = """
rates = []
from torch.optim.optimizer import register_optimizer_step_pre_hook
register_optimizer_step_pre_hook(lambda optimizer, *_: rates.append(optimizer.param_groups[0]["lr"]))
"""
TORCH_AGREES = """
assert rates == schedule.values().tolist(), rates
"""
# A loss whose gradient is 1 whatever the parameter: from 0 it goes to minus the sum of the steps. Keras multiplies by
# the rate before it adds to the velocity, optax after it.
SUM_OF_STEPS = """
velocity = expected = 0.0
for rate in schedule.values():
    velocity = 0.9 * velocity + {added}
    expected -= {step}
assert abs(float({parameter}) - expected) < 1e-5 * abs(expected), expected
"""
YOURS = {
    "torch": RATES_OF_TORCH
    + """
import torch
model, loss_fn = torch.nn.Linear(2, 1), torch.nn.MSELoss()
batches = [(torch.ones(4, 2), torch.zeros(4, 1))] * 6
""",
    "lightning": RATES_OF_TORCH
    + """
import lightning, torch
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def training_step(self, batch):
        return self.layer(batch).square().mean()
loader = torch.utils.data.DataLoader(torch.ones(8, 2), batch_size=4)
""",
    "transformers": RATES_OF_TORCH
    + """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def forward(self, inputs, labels=None):
        return {"loss": (self.layer(inputs) - labels).square().mean()}
model = Model()
train_dataset = [{"inputs": torch.ones(2), "labels": torch.zeros(1)}] * 8
""",
    "keras": """
import keras, numpy as np
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
loss = lambda y, prediction: keras.ops.mean(prediction)
x, y, batch_size, epochs = np.ones((8, 1)), np.ones((8, 1)), 4, 3
""",
    "optax": """
import jax.numpy as jnp
params, batches = jnp.zeros(1), [jnp.ones(1)] * 6
loss_fn = lambda params, batch: jnp.sum(params * batch)
""",
}
CHECKS = {
    "torch": TORCH_AGREES + "assert scheduler.last_epoch == 6\n",
    "lightning": TORCH_AGREES,
    "transformers": TORCH_AGREES,
    "keras": SUM_OF_STEPS.format(added="rate", step="velocity", parameter="model.get_weights()[0][0, 0]"),
    "optax": SUM_OF_STEPS.format(added="1", step="rate * velocity", parameter="params[0]"),
}


@pytest.mark.parametrize("framework", TEMPLATES)
def test_the_snippet_trains_with_the_schedule(framework, tmp_path):
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    law = law_subject(1.5, 1e4, 5e-4)
    recipe = Recipe("eigencurve", T, 0.1, law, warmup_steps=2)
    program = tmp_path / "program.py"
    program.write_text(YOURS[framework] + snippet(framework, recipe) + CHECKS[framework])
    quiet = {"KERAS_BACKEND": "jax", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", str(program)], cwd=tmp_path, env={**os.environ, **quiet}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]


def made(making):
    """What the statements of a snippet make."""
    names = {"ec": ec}
    exec("\n".join([*making.imports(), *making.statements()]), names)
    return names["schedule"]


KINDS = {
    "constant": {},
    "cosine": {"min_lr": 1e-3},
    "cosine_power": {"alpha": 0.7},
    "elastic_step": {"r": 0.6},
    "exponential": {"min_lr": 1e-3},
    "hold_then_decay": {"hold": 20, "every": 5, "factor": 1.2},
    "inverse_time": {"min_lr": 1e-3},
    "linear": {},
    "multistep": {"milestones": (10, 50), "factor": 3.0},
    "step_decay": {"num_intervals": 4},
    "wsd": {"decay_steps": 10},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_code_of_every_kind_makes_an_equal_schedule(kind):
    for warmup_steps in (0, 7):
        recipe = Recipe(kind, 100, 0.3, warmup_steps=warmup_steps, settings=KINDS[kind])
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
    assert "import json\nfrom pathlib import Path\n\nimport torch\n" in snippet("torch", saved)
    with pytest.raises(ValueError, match="load_schedule: 'path' must be JSON"):
        load_schedule(Path("best.json"), b"{")


def test_another_framework_is_refused():
    with pytest.raises(ValueError, match="'framework' must be one of 'torch'"):
        snippet("caffe", Recipe("cosine", 10, 0.1))
