import json
import subprocess
import sys

import pytest
from tests.commands.running import run

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
