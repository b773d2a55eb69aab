"""The package as a user installs it: sdist, wheel from the sdist, and the wheel without extras in a new environment."""

import os
import re
import subprocess
import sys
import tarfile
import venv
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

import eigencurve as ec

pytestmark = pytest.mark.slow


ROOT = Path(__file__).parent.parent
CORE_NAMES = sorted(set(ec.__all__) - {"torch_schedule", "schedules", "spectrum"})


def run(*command, cwd, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    kept.setdefault("PIP_CONSTRAINT", str(ROOT / "constraints.txt"))
    words = [str(word) for word in command]
    result = subprocess.run(words, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist of this source tree and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)  # the wheel is built from the sdist
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The Python of a new environment that has the wheel and what it requires, without extras."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", built[1], cwd=folder)
    return python


def test_the_sdist_has_what_the_wheel_is_built_from(built):
    with tarfile.open(built[0]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "src/eigencurve/__init__.py",
        "paper/cli.py",
        "tests/conftest.py",
    } <= names


def test_the_wheel_has_its_data_files(built):
    with ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
    assert all(name.startswith(("eigencurve/", "eigencurve-")) for name in names)
    for path in (ROOT / "src" / "eigencurve").rglob("*"):
        if path.suffix in (".npz", ".css", ".pyi", ".typed"):
            assert path.relative_to(ROOT / "src").as_posix() in names


def test_links_and_images_work_on_a_package_index(built):
    """The README becomes the page of a package index, where relative links lead nowhere."""
    with ZipFile(built[1]) as wheel:
        (metadata,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        page = str(message_from_bytes(wheel.read(metadata)).get_payload())
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert len(targets) == len(re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text())) > 5
    assert all(target.startswith(("https://", "#")) for target in targets)
    assert all("raw.githubusercontent.com" in target for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page))
    for target in re.findall(r"\]\(https://[^)]*?/(?:blob/)?main/([^)#]+)", page):
        assert (ROOT / target).exists(), target


def test_the_commands_work_without_extras(installed, tmp_path):
    command = installed.with_name("eigencurve")
    assert run(command, "--version", cwd=tmp_path).strip() == ec.__version__
    shown = run(command, "schedule", "resnet20_cifar10", "--steps", "1000", "--lr", "0.1", cwd=tmp_path)
    assert "1,000 steps" in shown or "1000" in shown


def test_every_core_name_is_there_without_extras(installed, tmp_path):
    code = f"import eigencurve as ec; print(sum(callable(getattr(ec, name)) for name in {CORE_NAMES}))"
    assert int(run(installed, "-c", code, cwd=tmp_path)) == len(CORE_NAMES)
