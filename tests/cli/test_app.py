import json
import subprocess
import sys

import pytest
from tests.cli.running import run

import eigencurve as ec

HEAVY = {"torch", "matplotlib", "streamlit", "numba", "scipy", "jax", "keras", "transformers", "lightning"}


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("shcedule",), ()])
def test_starting_loads_nothing_heavy(words):
    code = (
        "import json, sys\nfrom eigencurve.cli import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert not HEAVY & set(json.loads(result.stderr.splitlines()[-1]))


def test_without_a_command_it_prints_its_help():
    assert run().stdout == run("--help").stdout
    assert run().stdout.startswith("Usage: eigencurve [OPTIONS] COMMAND [ARGS]...")


def test_the_version_is_that_of_the_package():
    assert run("--version").stdout == f"{ec.__version__}\n"


def test_the_module_is_the_command():
    result = subprocess.run([sys.executable, "-m", "eigencurve.cli", "--version"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, f"{ec.__version__}\n")


CORE_ONLY = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from eigencurve.cli import app
from eigencurve.cli.shell import COMMANDS, load
words = [[name, *inner] for name in COMMANDS for inner in ([], *([i] for i in getattr(load(name), "commands", [])))]
assert len(words) > len(COMMANDS)
for command in [[], *words]:
    try:
        app([*command, "--help"])
    except SystemExit as end:
        assert end.code == 0, (command, end.code)
for command in (["report", "spectrum.npz", "--steps", "9"], ["estimate", "module:problem"]):
    try:
        app(command)
    except SystemExit as end:
        assert end.code == 1, (command, end.code)
"""
OPTIONAL = {
    "torch", "jax", "keras", "optax", "matplotlib", "plotly", "streamlit", "joblib", "ray", "sklearn", "PIL",
    "lightning", "pytorch_lightning", "transformers", "accelerate", "tensorboard", "pandas",
}  # fmt: skip


def test_the_help_of_every_command_needs_only_the_core():
    code = CORE_ONLY.format(missing=sorted(OPTIONAL))
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines() == [
        "error: eigencurve.figures needs matplotlib: pip install eigencurve[plot]",
        "error: eigencurve.hessian needs PyTorch: pip install eigencurve[torch]",
    ]
