"""Every snippet runs unchanged, in its own process, with the real framework."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import eigencurve as ec
from eigencurve.planning.recipe import PlannedSchedule, Recipe, SavedSchedule
from eigencurve.planning.snippets import TEMPLATES, snippet
from eigencurve.planning.subject import law_subject

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
    velocity = 0.5 * velocity + {added}
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
    recipe = Recipe("eigencurve", T, 0.1, law, warmup_steps=2, momentum=0.5)
    program = tmp_path / "program.py"
    program.write_text(YOURS[framework] + snippet(framework, recipe) + CHECKS[framework])
    quiet = {"KERAS_BACKEND": "jax", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", str(program)], cwd=tmp_path, env={**os.environ, **quiet}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.parametrize("framework", ["torch", "lightning", "keras", "optax"])
def test_the_momentum_is_that_of_the_source(framework):
    plain, heavy = Recipe("cosine", 9, 0.1), Recipe("cosine", 9, 0.1, momentum=0.9)
    assert "momentum" not in snippet(framework, plain)
    assert "schedule.lr, momentum=0.9" in snippet(framework, heavy) or "schedule), momentum=0.9" in snippet(
        framework, heavy
    )
    saved = SavedSchedule(Path("best.json"), ec.cosine(9, 0.1), momentum=0.9, nesterov=True)
    assert ", momentum=0.9, nesterov=True" in snippet(framework, saved)


def test_another_framework_is_refused():
    with pytest.raises(ValueError, match="'framework' must be one of 'torch'"):
        snippet("caffe", Recipe("cosine", 10, 0.1))


def test_imports_come_in_blocks():
    saved = SavedSchedule(Path("best.json"), ec.cosine(9, 0.1))
    assert "import json\nfrom pathlib import Path\n\nimport torch\n" in snippet("torch", saved)


@pytest.mark.parametrize(
    ("framework", "calls"),
    [
        ("torch", ("torch.optim.SGD(", "torch.optim.Adam(", "torch.optim.AdamW(")),
        ("lightning", ("torch.optim.SGD(", "torch.optim.Adam(", "torch.optim.AdamW(")),
        ("transformers", ('optim="sgd"', 'optim="adam"', 'optim="adamw_torch"')),
        ("keras", ("keras.optimizers.SGD(", "keras.optimizers.Adam(", "keras.optimizers.AdamW(")),
        ("optax", ("optax.sgd(", "optax.adam(", "optax.adamw(")),
    ],
)
def test_the_code_names_the_optimizer(framework, calls):
    for optimizer, call in zip(("sgd", "adam", "adamw"), calls, strict=True):
        program = snippet(framework, PlannedSchedule(ec.cosine(9, 0.1), optimizer, weight_decay=0.1))
        assert call in program
        assert "momentum" not in program
        compile(program, "program.py", "exec")


def test_sgd_in_transformers_keeps_its_momentum():
    assert 'optim="sgd", optim_args="momentum=0.9"' in snippet("transformers", Recipe("cosine", 9, 0.1, momentum=0.9))
