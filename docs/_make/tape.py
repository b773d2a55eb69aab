"""Record docs/first_use.md: run real commands in a fresh clone and environment, and write down their output.

``make tape`` (``python -m docs._make.tape``) records the page again. It takes a few minutes, most of them for pip.
During development, ``--environment FOLDER`` uses an existing environment instead of a new one.

Times and paths are normalised, so two recordings differ only if the project has changed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from docs._make.blocks import Block, blocks_of

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "first_use.md"
# The walkthroughs: their files are written and their commands run as the pages give them.
WALKTHROUGHS = tuple(ROOT / "docs" / "how" / f"{name}.md" for name in ("plan_nothing", "plan_adamw", "plan_resnet"))
TIMES = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|seconds|min)\b")
# A hash has a letter, unlike the digits of a number.
REVISION = re.compile(r"(?<!\.)\b(?=\d*[a-f])[0-9a-f]{12,40}\b")
# Messages of pip and make about their environment.
NOISE = re.compile(r"^(?:WARNING|DEPRECATION|\[notice\]|Looking in|make\[\d\]:).*\n", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command of the recording.

    Attributes:
        text: Text on the page before the command.
        command: Command for ``sh``. It runs in the clone, with the environment's commands on the path.
        code: Expected exit code.
    """

    text: str
    command: str
    code: int = 0


@dataclass(frozen=True)
class Session:
    """A section of the recording.

    Attributes:
        title: Heading of the section; empty for the first one.
        text: Text below the heading.
        steps: Commands, in order.
        files: Content of the files that are there before the first command, by name.
        folder: Folder below the clone in which the commands run.
    """

    title: str
    text: str
    steps: tuple[Step, ...]
    files: dict[str, str] = field(default_factory=dict)
    folder: str = "."


MODEL = """\
cat > my_model.py <<'END'
import torch

def problem():
    torch.manual_seed(0)
    x = torch.randn(512, 20)
    y = (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    loss_fn = torch.nn.functional.cross_entropy
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=1e-3)
    for _ in range(300):  # yours would load a checkpoint instead
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    return model, loss_fn, (x, y)
END"""

STEPS = (
    Step("Run the demo. It creates a virtual environment in `.venv`.", "make demo"),
    Step("Activate the environment to use the command line:", ". .venv/bin/activate"),
    Step("List the spectra that ship with the package:", "eigencurve zoo"),
    Step(
        "Compute a schedule from one of them, for 100 epochs of CIFAR-10:",
        "eigencurve schedule resnet20_cifar10 --epochs 100 --steps-per-epoch 391 --lr 0.1",
    ),
    Step("For your own model, write a function that returns the model, its loss and a few hundred examples:", MODEL),
    Step(
        "Estimate its spectrum and the gradient noise of its batches:",
        "eigencurve estimate my_model:problem --noise --batch-size 32 --weight-decay 1e-3 --steps 1000 --lr 0.5",
    ),
    Step("Print the schedule as PyTorch code:", "eigencurve schedule spectrum.npz --steps 1000 --lr 0.5 --code torch"),
    Step(
        "Compare its expected loss with that of other schedules and with the lower bound:",
        "eigencurve compare spectrum.npz --steps 1000",
    ),
    Step("Write everything to one HTML page:", "eigencurve report spectrum.npz --steps 1000 --lr 0.5 -o report.html"),
    Step("Errors are printed on one line. A missing option:", "eigencurve schedule spectrum.npz --lr 0.5", code=2),
    Step("A missing file:", "eigencurve schedule no_such.npz --steps 1000", code=1),
)
HEAD = """\
# Recorded sessions

This page records first sessions with eigencurve: a fresh clone, a new environment, and the output of each command.
`make tape` records it again. Times are replaced by `…`.

```console
$ git clone <this repository> eigencurve && cd eigencurve
```
"""


def record(sessions: tuple[Session, ...], folder: Path, environment: dict[str, str]) -> str:
    """Run the steps of all sessions below ``folder`` and return the page.

    Raises:
        RuntimeError: If a step ends with an unexpected exit code.
    """
    return HEAD + "".join(_section(session, folder, environment) for session in sessions)


def walkthrough(page: Path) -> Session:
    """The session of a documentation page: the files that it shows, and each of its commands."""
    text = page.read_text()
    found = [block for block in blocks_of(text) if block.reason is None]
    files = {block.title: block.code for block in found if block.is_file}
    steps = tuple(step for block in found if block.language == "sh" for step in _steps(block, text))
    title = text.split("\n", 1)[0].removeprefix("# ")
    about = f"The commands of [{title}](how/{page.name}), in a new folder with the files of that page."
    return Session(title, about, steps, files, page.stem)


def _steps(block: Block, text: str) -> list[Step]:
    """One step for each line of a block; the first has the heading that is above the block."""
    above = re.findall(r"^## (?:\d+\. )?(.+)$", text[: block.span[0]], re.MULTILINE)[-1]
    words = [f"{above}:", *[""] * block.code.count("\n")]
    return [Step(word, line) for word, line in zip(words, block.code.splitlines(), strict=False)]


def _section(session: Session, folder: Path, environment: dict[str, str]) -> str:
    place = folder / session.folder
    place.mkdir(exist_ok=True)
    for name, content in session.files.items():
        (place / name).write_text(content)
    heading = f"\n## {session.title}\n\n{session.text}\n" if session.title else ""
    return heading + "".join(_entry(step, _run(step, place, environment), folder) for step in session.steps)


def _run(step: Step, folder: Path, environment: dict[str, str]) -> str:
    print(f"$ {step.command.splitlines()[0]}", flush=True)
    done = subprocess.run(
        ["sh", "-c", step.command], cwd=folder, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode != step.code:
        raise RuntimeError(f"{step.command!r} ended with {done.returncode}, not {step.code}:\n{done.stdout}")
    return done.stdout


def _entry(step: Step, printed: str, folder: Path) -> str:
    shown = f"$ {step.command}\n{normalised(printed, folder)}"
    ended = f"\nThe exit code is {step.code}.\n" if step.code else ""
    before = f"\n{step.text}\n" if step.text else ""
    fence = "````" if "```" in shown else "```"  # the demo prints Markdown
    return f"{before}\n{fence}console\n{shown.rstrip()}\n{fence}\n{ended}"


def normalised(text: str, folder: Path) -> str:
    """Remove times, revisions, local paths and the messages of pip."""
    here = text.replace(sys.executable, "python3").replace(str(folder), "eigencurve").replace(str(ROOT), "eigencurve")
    plain = NOISE.sub("", here)
    plain = REVISION.sub("…", TIMES.sub("… s", plain))
    return "\n".join(line.rstrip() for line in plain.splitlines())


def sessions() -> tuple[Session, ...]:
    """All sessions of the recording: the command line, then the walkthroughs."""
    return (Session("", "", STEPS), *map(walkthrough, WALKTHROUGHS))


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of a new user's shell: no colours, no data sets, the clone's virtual environment first."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "EIGENCURVE_DATA"}}
    path = f"{folder / '.venv' / 'bin'}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "PATH": path, "NO_COLOR": "1", "COLUMNS": "110", "PYTHON": sys.executable, "MAKEFLAGS": ""}


def borrow(environment: Path, folder: Path) -> None:
    """Link an existing environment as ``folder``/.venv without writing to it, and mark it as ready for make."""
    venv = folder / ".venv"
    venv.mkdir()
    for entry in environment.iterdir():
        (venv / entry.name).symlink_to(entry)
    (venv / ".demo").touch()


def main() -> None:
    """Record the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, help="use this existing environment (for development)")
    parser.add_argument("--out", type=Path, default=PAGE)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "eigencurve")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
        shell = surroundings(folder)
        if chosen.environment is not None:
            borrow(chosen.environment.resolve(), folder)
            shell["PYTHONPATH"] = str(folder / "src")
        page = record(sessions(), folder, shell)
    chosen.out.write_text(page)


if __name__ == "__main__":
    main()
