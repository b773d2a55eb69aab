"""The recorder of docs/first_use.md, and that the page is its tape."""

import os
import re
import sys
from pathlib import Path

import pytest
from docs._make.tape import PAGE, STEPS, Step, borrow, normalised, record


def test_a_tape_has_commands_and_what_they_print(tmp_path):
    steps = (
        Step("Words.", "echo here; pwd; echo '12.3 s' >&2"),
        Step("A mistake.", "echo wrong; exit 2", code=2),
        Step("A file.", "cat > x <<'END'\none\nEND"),
    )
    page = record(steps, tmp_path, dict(os.environ))
    assert "\nWords.\n\n```console\n$ echo here; pwd; echo '12.3 s' >&2\nhere\neigencurve\n… s\n```\n" in page
    assert "$ echo wrong; exit 2\nwrong\n```\n\nIt ends with exit code 2." in page
    assert page.endswith("```console\n$ cat > x <<'END'\none\nEND\n```\n")
    assert (tmp_path / "x").read_text() == "one\n"


def test_a_step_that_fails_ends_the_recording(tmp_path):
    with pytest.raises(RuntimeError, match="'false' ended with 1, not 0"):
        record((Step("", "false"),), tmp_path, dict(os.environ))


def test_what_differs_between_machines_is_left_out(tmp_path):
    assert normalised(f"{sys.executable} -m venv .venv", tmp_path) == "python3 -m venv .venv"
    text = f"WARNING: pip says\n{tmp_path}/demo-output 31 s at 0123456789abcdef, 39,100 steps   \n"
    assert normalised(text, tmp_path) == "eigencurve/demo-output … s at …, 39,100 steps"


def test_a_borrowed_environment_is_not_written_to(tmp_path):
    (tmp_path / "there" / "bin").mkdir(parents=True)
    (tmp_path / "clone").mkdir()
    borrow(tmp_path / "there", tmp_path / "clone")
    assert (tmp_path / "clone" / ".venv" / "bin").is_symlink()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["bin"]


def test_the_page_is_the_tape_of_these_steps():
    """Someone who changes a step must record it: the page has just these commands, in this order."""
    shown = re.findall(r"^```console\n\$ (.*?)(?=^```$)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(shown) == 1 + len(STEPS)
    assert all(block.startswith(step.command + "\n") for block, step in zip(shown[1:], STEPS, strict=True))


def test_the_page_names_no_place_of_a_machine():
    assert not re.search(r"/(?:tmp|home|root|Users|var)/", PAGE.read_text())
    assert str(Path.home()) not in PAGE.read_text()
