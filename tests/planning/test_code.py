"""Every snippet runs unchanged, in its own process, with the real framework."""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.planning.logged import runs

import eigencurve as ec
from eigencurve.forecast import fit_runs
from eigencurve.planning.code import FRAMEWORKS, ScheduleCode, literal, load_schedule, training_code
from eigencurve.planning.result import Training
from eigencurve.schedules.kinds import FACTORIES
from eigencurve.spectrum.files import spectrum_bytes
from eigencurve.spectrum.source import bytes_source, file_source, law_source, zoo_source

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


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_snippet_trains_with_the_schedule(framework, tmp_path):
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    law = law_source(1.5, 1e4, 5e-4)
    recipe = ScheduleCode.of_kind("eigencurve", T, 0.1, Training("sgd", 0.5), law, warmup_steps=2)
    program = tmp_path / "program.py"
    program.write_text(YOURS[framework] + training_code(framework, recipe) + CHECKS[framework])
    run(program)


def run(program):
    quiet = {"KERAS_BACKEND": "jax", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", str(program)], cwd=program.parent, env={**os.environ, **quiet},
        capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]


# Settings as a user gives them: optimizer, momentum or beta1, Nesterov, weight decay.
SETTINGS = [("sgd", 0.9, True, 5e-4), ("sgd", 0.0, False, 0.0), ("adam", 0.8, False, 0.01), ("adamw", 0.85, False, 0.1)]
# The optimizer that the program has used, as PyTorch's group of parameters or as Keras' configuration.
USED = {
    "torch": "optimizer.param_groups[0]",
    "lightning": "trainer.optimizers[0].param_groups[0]",
    # Trainer decays the weights, not the biases.
    "transformers": "max(trainer.optimizer.param_groups, key=lambda group: group['weight_decay'])",
    "keras": "optimizer.get_config()",
}
COMPARED_IN_TORCH = """
group = {used}
name, momentum, nesterov, weight_decay = {settings}
if name == "sgd":
    assert (group["momentum"], group["nesterov"], group["weight_decay"]) == (momentum, nesterov, weight_decay), group
else:
    assert (tuple(group["betas"]), group["weight_decay"]) == ((momentum, 0.999), weight_decay), group
assert rates == schedule.values().tolist(), rates
assert {kind} == {{"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}}[name]
"""
COMPARED_IN_KERAS = """
config = optimizer.get_config()
name, momentum, nesterov, weight_decay = {settings}
assert type(optimizer).__name__.lower() == name
assert config["weight_decay"] == weight_decay, config
if name == "sgd":
    assert (config["momentum"], config["nesterov"]) == (momentum, nesterov), config
else:
    assert (config["beta_1"], config["beta_2"]) == (momentum, 0.999), config
assert optimizer.learning_rate is not None and int(optimizer.iterations) == 6
"""
# optax keeps no settings: its steps are those of PyTorch's optimizer with the same ones.
COMPARED_IN_OPTAX = """
import torch
name, momentum, nesterov, weight_decay = {settings}
own = {{"momentum": momentum, "nesterov": nesterov}} if name == "sgd" else {{"betas": (momentum, 0.999)}}
weight = torch.zeros(1, requires_grad=True)
made = {{"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}}[name]
expected = made([weight], lr=0.1, weight_decay=weight_decay, **own)
for rate in schedule.values():
    expected.param_groups[0]["lr"] = rate
    weight.grad = torch.ones(1)
    expected.step()
assert abs(float(params[0]) - weight.item()) < 1e-5 * abs(weight.item()), (params, weight)
"""
KIND = {
    "torch": "type(optimizer)",
    "lightning": "type(trainer.optimizers[0])",
    "transformers": "type(getattr(trainer.optimizer, 'optimizer', trainer.optimizer))",
}


def compared(framework, settings):
    """Code that compares the optimizer of a program with the settings that were given."""
    if framework in KIND:
        return (
            COMPARED_IN_TORCH.format(used=USED[framework], kind=KIND[framework], settings=settings) + "rates.clear()\n"
        )
    return (COMPARED_IN_KERAS if framework == "keras" else COMPARED_IN_OPTAX).format(settings=settings)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_optimizer_of_the_program_has_the_settings_that_were_given(framework, tmp_path):
    """From nothing, from a power law and from logs, through ``plan``; all in one process, because imports are slow."""
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    forecast, law = fit_runs(runs()), ec.PowerLaw(1.2, 1e-3, 1.0)
    parts = []
    for settings, sources in product(SETTINGS, ((), (law,), (forecast,))):
        optimizer, momentum, nesterov, weight_decay = settings
        plan = ec.plan(
            *sources, total_steps=T, optimizer=optimizer, momentum=momentum, nesterov=nesterov,
            weight_decay=weight_decay,
        )  # fmt: skip
        program = plan.code(framework)
        assert "Assumed" not in program
        yours = YOURS[framework].replace(RATES_OF_TORCH, "rates.clear()") if parts else YOURS[framework]
        parts += [yours, program, compared(framework, settings)]
    program = tmp_path / "program.py"
    program.write_text("\n".join(parts))
    run(program)


# Optimizers of the reader, with settings that the code must keep.
YOUR_OPTIMIZER = {
    "torch": "optimizer = torch.optim.RMSprop(model.parameters(), lr=3.0, weight_decay=0.3)\n",
    "lightning": """
class Module(Module):
    def configure_optimizers(self):
        return torch.optim.RMSprop(self.parameters(), lr=3.0, weight_decay=0.3)
""",
    "transformers": """
from transformers import TrainingArguments
arguments = TrainingArguments("output", max_steps=6, learning_rate=0.3, weight_decay=0.3, optim="rmsprop")
""",
    "keras": "optimizer = keras.optimizers.RMSprop(learning_rate=3.0, weight_decay=0.3)\n",
    "optax": "import optax\noptimizer_at = lambda rate: optax.sgd(rate, momentum=0.5)\n",
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_unknown_optimizer_stays_that_of_the_reader(framework, tmp_path):
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    source = ScheduleCode.of_kind("linear", T, 0.1, Training())
    kept = "" if framework == "optax" else f"assert {USED[framework]}['weight_decay'] == 0.3\n"
    if framework in KIND:
        kept += TORCH_AGREES + f"assert {KIND[framework]} is torch.optim.RMSprop\n"
    checks = CHECKS["optax"] if framework == "optax" else kept
    code = training_code(framework, source)
    assert "weight_decay" not in code
    assert "momentum" not in code
    assert "Assumed" not in code
    program = tmp_path / "program.py"
    program.write_text(YOURS[framework] + YOUR_OPTIMIZER[framework] + code + checks)
    run(program)


def test_what_is_assumed_is_in_a_comment():
    assert "# Assumed, because not given: optimizer sgd, momentum 0, weight decay 0\n" in ec.plan(total_steps=9).code()
    decayed = ec.plan(total_steps=9, optimizer="adamw", weight_decay=0.1).code()
    assert "# Assumed, because not given: beta1 0.9\n" in decayed
    logged = ec.plan(fit_runs(runs()), total_steps=T, momentum=0.9).code()
    assert "# Assumed, because not given: optimizer sgd, weight decay 0\n" in logged


def test_the_batch_size_is_in_the_code():
    plan = ec.plan(total_steps=9, batch_size=128)
    assert "9 batches of 128 examples in total" in plan.code("torch")
    assert "per_device_train_batch_size=128" in plan.code("transformers")
    assert "batch_size=128" in plan.code("keras")


def test_keras_says_that_its_decay_is_another_one():
    def code(*settings):
        return training_code("keras", ScheduleCode.of_kind("linear", 9, 0.1, Training(*settings)))

    assert "PyTorch's SGD adds the decay to the\n# gradient instead, which passes through the momentum." in code(
        "sgd", 0.9, False, 0.1
    )
    assert "PyTorch's Adam" in code("adam", 0.9, False, 0.1)
    assert "PyTorch" not in code("adamw", 0.9, False, 0.1) + code("sgd", 0.0, False, 0.1) + code("sgd", 0.9)


@pytest.mark.parametrize("framework", ["torch", "lightning", "keras", "optax"])
def test_the_momentum_is_that_of_the_source(framework):
    plain, heavy = (
        ScheduleCode.of_kind("cosine", 9, 0.1, training=Training("sgd", momentum)) for momentum in (0.0, 0.9)
    )
    assert "momentum" not in training_code(framework, plain)
    assert "schedule.lr, momentum=0.9" in training_code(framework, heavy) or "schedule), momentum=0.9" in training_code(
        framework, heavy
    )
    saved = ScheduleCode.from_file(Path("best.json"), ec.cosine(9, 0.1), Training("sgd", 0.9, nesterov=True))
    assert ", momentum=0.9, nesterov=True" in training_code(framework, saved)


def test_another_framework_is_refused():
    with pytest.raises(ValueError, match="'framework' must be one of 'torch'"):
        training_code("caffe", ScheduleCode.of_kind("cosine", 10, 0.1, Training()))


def test_imports_come_in_blocks():
    saved = ScheduleCode.from_file(Path("best.json"), ec.cosine(9, 0.1), Training())
    assert "import json\nfrom pathlib import Path\n\nimport eigencurve as ec\n" in training_code("torch", saved)
    known = ScheduleCode.from_file(Path("best.json"), ec.cosine(9, 0.1), Training("sgd"))
    assert "import json\nfrom pathlib import Path\n\nimport torch\n\nimport eigencurve as ec\n" in training_code(
        "torch", known
    )


def made(code):
    """The schedule that the statements make."""
    names = {"ec": ec}
    exec("\n".join([*code.imports, *code.statements]), names)
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
        code = ScheduleCode.of_kind(
            kind, 100, 0.3, Training(), warmup_steps=warmup_steps, warmup_shape=shape, settings=KINDS[kind]
        )
        assert made(code) == code.schedule
        assert code.schedule.total_steps == 100


def test_the_code_of_an_eigencurve_makes_an_equal_schedule_from_every_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spectrum = ec.Spectrum([-0.5, 1.0, 7.0, 30.0], [1, 5, 3, 1])
    ec.save_spectrum(spectrum, tmp_path / 'a "b".json')
    sources = [
        law_source(1.5, 1e4),
        zoo_source("resnet20_cifar10"),
        file_source(Path('a "b".json'), 1e-2),
        bytes_source(spectrum_bytes(spectrum, ".txt"), ".txt", "standard input", 1e-2),
    ]
    for source in sources:
        settings = {"beta": 1.7, "allocation": "optimal", "min_lr": 1e-4}
        code = ScheduleCode.of_kind("eigencurve", 500, 0.1, Training(), source, warmup_steps=20, settings=settings)
        assert made(code) == code.schedule


def test_the_code_of_a_saved_schedule_reads_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = b'{"kind": "cosine", "version": 1, "total_steps": 9, "lr": 0.1, "min_lr": 0.0}'
    (tmp_path / "best.json").write_bytes(content)
    schedule = load_schedule(Path("best.json"), content)
    assert made(ScheduleCode.from_file(Path("best.json"), schedule, Training())) == schedule == ec.cosine(9, 0.1)
    with pytest.raises(ValueError, match="load_schedule: 'path' must be JSON"):
        load_schedule(Path("best.json"), b"{")


@given(
    st.text(st.characters(exclude_categories=()))
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.none()
    | st.integers()
)
@example("hedgehog 🦔.npz")
@example("family 👨‍👩‍👧.npz")
@example('quotes " and \' and \\ and \\"')
@example("not UTF-8 \udcff")
@example("lines\n\r\u2028\x00")
def test_the_code_is_one_line_that_can_be_printed_and_gives_the_value(value):
    code = literal(value)
    assert ast.literal_eval(code) == value
    assert len(code.splitlines()) == 1
    code.encode()
