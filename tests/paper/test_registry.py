import json
import subprocess
import sys
from importlib import import_module

import pytest

from paper.engine.request import Request
from paper.registry import INSTALL, REGISTRY, Entry, entry_named

EXTRAS = ("joblib", "matplotlib", "torch", "sklearn", "PIL")


@pytest.mark.parametrize("entry", REGISTRY.values(), ids=REGISTRY)
def test_every_maker_exists(entry):
    module, _, function = entry.maker.partition(":")
    assert callable(getattr(import_module(f"paper.{module}"), function))
    assert entry.shows
    assert entry.needs


def test_an_unknown_entry_is_refused():
    with pytest.raises(ValueError, match="paper: 'name' must be one of ridge, rates"):
        entry_named("nothing")


def without_extras(*words):
    """Run ``python -m paper`` in a process that cannot import any extra."""
    program = f"""
import sys
for name in {EXTRAS!r}:
    sys.modules[name] = None
from paper.cli import main
sys.exit(main({words!r}))
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_the_list_needs_no_extra():
    result = without_extras("--json")
    assert result.returncode == 0, result.stderr
    assert [entry["name"] for entry in json.loads(result.stdout)] == list(REGISTRY)


@pytest.mark.parametrize("name", ["ridge", "rates", "cifar10", "language", "prediction", "noise"])
def test_a_missing_extra_is_one_line_that_says_what_to_install(name):
    result = without_extras(name)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {name}: ")
    assert line.endswith(f"is not installed. Run: {INSTALL}")
    assert any(extra in line for extra in EXTRAS)


def test_other_import_errors_are_not_disguised():
    with pytest.raises(AttributeError):
        Entry("broken", "", "", "page:no_such_function").make(Request())
