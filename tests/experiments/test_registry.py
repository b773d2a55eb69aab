import json
import subprocess
import sys
from importlib import import_module

import pytest

from eigencurve.experiments.engine.request import Request
from eigencurve.experiments.registry import REGISTRY, Entry, entry_named

EXTRAS = ("joblib", "matplotlib", "torch", "sklearn", "PIL")


@pytest.mark.parametrize("entry", REGISTRY.values(), ids=REGISTRY)
def test_every_maker_exists(entry):
    module, _, function = entry.maker.partition(":")
    assert callable(getattr(import_module(f"eigencurve.experiments.{module}"), function))
    assert entry.shows
    assert entry.needs


def test_an_unknown_entry_is_refused():
    with pytest.raises(ValueError, match="reproduce: 'name' must be one of demo, ridge"):
        entry_named("nothing")


def without_extras(*words):
    """Run ``eigencurve reproduce`` in a process that cannot import any extra."""
    program = f"""
import sys
for name in {EXTRAS!r}:
    sys.modules[name] = None
sys.argv = ["eigencurve", "reproduce", *{words!r}]
from eigencurve.cli import app
app()
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_the_list_needs_no_extra():
    result = without_extras("--json")
    assert result.returncode == 0, result.stderr
    assert [entry["name"] for entry in json.loads(result.stdout)] == list(REGISTRY)


@pytest.mark.parametrize("name", ["demo", "ridge", "rates", "cifar10", "language", "prediction", "memory-modes"])
def test_a_missing_extra_is_one_line_that_says_what_to_install(name):
    result = without_extras(name)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: reproduce {name}: ")
    assert line.endswith("is not installed. Run: pip install eigencurve[experiments]")
    assert any(extra in line for extra in EXTRAS)


def test_other_import_errors_are_not_disguised():
    with pytest.raises(AttributeError):
        Entry("broken", "", "", "page:no_such_function").make(Request())
