"""The tape of a first use: real commands in a new clone and a new environment, and what they print.

``make tape`` (``python docs/_make/tape.py``) records docs/first_use.md anew, in a few minutes, most of which pip takes.
``--environment FOLDER`` uses an environment that is there instead of a new one, while the page is being written.

Times and paths are normalised, so that two recordings differ only where the project does.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "first_use.md"
TIMES = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|seconds|min)\b")
REVISION = re.compile(r"\b[0-9a-f]{12,40}\b")
# What pip says of its own surroundings is no part of the project.
NOISE = re.compile(r"^(?:WARNING|DEPRECATION|\[notice\]|Looking in|make\[\d\]:).*\n", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """One thing to type.

    Attributes:
        said: what the page says before it.
        command: for ``sh``, in the clone; the environment's commands are on the path.
        code: the exit code that it must end with.
    """

    said: str
    command: str
    code: int = 0


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
    Step("The one command that shows everything. It makes its own environment in `.venv`.", "make demo"),
    Step("What it wrote:", "ls demo-output"),
    Step("The command line is in that environment.", ". .venv/bin/activate"),
    Step("Spectra that come with the package:", "eigencurve zoo"),
    Step(
        "A schedule from one of them, for a hundred epochs of CIFAR-10:",
        "eigencurve schedule resnet20_cifar10 --epochs 100 --steps-per-epoch 391 --lr 0.1",
    ),
    Step("A model of one's own: a function that returns it, its loss and a few hundred examples.", MODEL),
    Step(
        "Measure it:",
        "eigencurve estimate my_model:problem -o spectrum.npz --weight-decay 1e-3 --steps 1000 --settle 0.02",
    ),
    Step("Its schedule, as code to paste:", "eigencurve schedule spectrum.npz --steps 1000 --lr 0.5 --code torch"),
    Step("How good is it, and how good could any schedule be?", "eigencurve compare spectrum.npz --steps 1000"),
    Step("All of it on one page:", "eigencurve report spectrum.npz --steps 1000 --lr 0.5 -o report.html"),
    Step("A mistake is answered in one line:", "eigencurve schedule spectrum.npz --lr 0.5", code=2),
    Step("So is a file that is not there:", "eigencurve schedule no_such.npz --steps 1000", code=1),
)
HEAD = """\
# First use

The tape of a first use: a new clone, a new environment, and what the commands print. `make tape` records it anew;
times are left out.

```console
$ git clone <this repository> eigencurve && cd eigencurve
```
"""


def record(steps: tuple[Step, ...], folder: Path, environment: dict[str, str]) -> str:
    """Run the steps one after the other in ``folder``; the page.

    Raises:
        RuntimeError: a step that ends with another exit code than it should.
    """
    return HEAD + "".join(_entry(step, _run(step, folder, environment), folder) for step in steps)


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
    ended = f"\nIt ends with exit code {step.code}.\n" if step.code else ""
    return f"\n{step.said}\n\n```console\n{shown.rstrip()}\n```\n{ended}"


def normalised(text: str, folder: Path) -> str:
    """Without times, revisions, places of this machine and what pip says of itself."""
    here = text.replace(sys.executable, "python3").replace(str(folder), "eigencurve").replace(str(ROOT), "eigencurve")
    plain = NOISE.sub("", here)
    plain = REVISION.sub("…", TIMES.sub("… s", plain))
    return "\n".join(line.rstrip() for line in plain.splitlines())


def surroundings(folder: Path) -> dict[str, str]:
    """What a new user's shell has: no colours, no data sets, the clone's own environment first."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "EIGENCURVE_DATA"}}
    path = f"{folder / '.venv' / 'bin'}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "PATH": path, "NO_COLOR": "1", "COLUMNS": "110", "PYTHON": sys.executable, "MAKEFLAGS": ""}


def borrow(environment: Path, folder: Path) -> None:
    """Let ``folder``/.venv be an environment that is there, which is not written to, with the marker for make."""
    venv = folder / ".venv"
    venv.mkdir()
    for entry in environment.iterdir():
        (venv / entry.name).symlink_to(entry)
    (venv / ".demo").touch()


def main() -> None:
    """Record the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, help="an environment that is there, for development")
    parser.add_argument("--out", type=Path, default=PAGE)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "eigencurve")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
        shell = surroundings(folder)
        if chosen.environment is not None:
            borrow(chosen.environment.resolve(), folder)
            shell["PYTHONPATH"] = str(folder / "src")
        page = record(STEPS, folder, shell)
    chosen.out.write_text(page)


if __name__ == "__main__":
    main()
