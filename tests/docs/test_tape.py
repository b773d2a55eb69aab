"""The recorder of docs/first_use.md, and the recorded page."""

import os
import re
import sys
from pathlib import Path

import pytest
from docs._make.tape import PAGE, Session, Step, borrow, normalised, record, sessions, walkthrough


def test_recording_has_commands_and_their_output(tmp_path):
    steps = (
        Step("Words.", "echo here; pwd; echo '12.3 s' >&2"),
        Step("A mistake.", "echo wrong; exit 2", code=2),
        Step("A file.", "cat > x <<'END'\none\nEND"),
    )
    page = record((Session("", "", steps),), tmp_path, dict(os.environ))
    assert "\nWords.\n\n```console\n$ echo here; pwd; echo '12.3 s' >&2\nhere\neigencurve\n… s\n```\n" in page
    assert "$ echo wrong; exit 2\nwrong\n```\n\nThe exit code is 2." in page
    assert page.endswith("```console\n$ cat > x <<'END'\none\nEND\n```\n")
    assert (tmp_path / "x").read_text() == "one\n"


def test_output_with_a_fence_gets_a_longer_one(tmp_path):
    page = record((Session("", "", (Step("", "echo '```'"),)),), tmp_path, dict(os.environ))
    assert page.endswith("\n````console\n$ echo '```'\n```\n````\n")


def test_unexpected_exit_code_stops_the_recording(tmp_path):
    with pytest.raises(RuntimeError, match="'false' ended with 1, not 0"):
        record((Session("", "", (Step("", "false"),)),), tmp_path, dict(os.environ))


WALK = """# Walk

## 1. Look

```python title="one.py"
print("one")
```

```sh
cat one.py
echo two
```

```text
print("one")
two
```
"""


def test_walkthrough_is_recorded_from_its_page(tmp_path):
    (tmp_path / "walk.md").write_text(WALK)
    session = walkthrough(tmp_path / "walk.md")
    assert (session.title, session.folder, session.files) == ("Walk", "walk", {"one.py": 'print("one")\n'})
    assert session.steps == (Step("Look:", "cat one.py"), Step("", "echo two"))
    page = record((session,), tmp_path, dict(os.environ))
    look = '\nLook:\n\n```console\n$ cat one.py\nprint("one")\n```\n'
    assert page.endswith(f"\n## Walk\n\n{session.text}\n{look}\n```console\n$ echo two\ntwo\n```\n")


def test_machine_specific_output_is_removed(tmp_path):
    assert normalised(f"{sys.executable} -m venv .venv", tmp_path) == "python3 -m venv .venv"
    text = f"WARNING: pip says\n{tmp_path}/demo-output 31 s at 0123456789abcdef, 39,100 steps   \n"
    assert normalised(text, tmp_path) == "eigencurve/demo-output … s at …, 39,100 steps"
    numbers = "0.01000999000999001 and 1.708716791268715e-07"
    assert normalised(numbers, tmp_path) == numbers


def test_existing_environment_is_not_written_to(tmp_path):
    (tmp_path / "there" / "bin").mkdir(parents=True)
    (tmp_path / "clone").mkdir()
    borrow(tmp_path / "there", tmp_path / "clone")
    assert (tmp_path / "clone" / ".venv" / "bin").is_symlink()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["bin"]


def test_page_has_the_commands_of_the_steps():
    """The page has the text and the command of each step, in order; after a change, record it again."""
    shown = re.findall(r"^`{3,4}console\n\$ (.*?)(?=^`{3,4}$)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    steps = [step for session in sessions() for step in session.steps]
    assert len(shown) == 1 + len(steps)
    assert all(block.startswith(step.command + "\n") for block, step in zip(shown[1:], steps, strict=True))
    assert all(f"\n{step.text}\n" in PAGE.read_text() for step in steps)
    assert all(f"\n## {session.title}\n" in PAGE.read_text() for session in sessions() if session.title)


def test_page_contains_no_local_paths():
    assert not re.search(r"/(?:tmp|home|root|Users|var)/", PAGE.read_text())
    assert str(Path.home()) not in PAGE.read_text()
