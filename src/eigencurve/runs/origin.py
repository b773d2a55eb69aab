"""Where a number comes from: versions of what computed it, and the revision of the source."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from eigencurve.runs.store import Origin

PACKAGES = ("eigencurve", "numpy", "scipy", "numba", "torch")


def origin_here() -> Origin:
    """Python's and the packages' versions, and git's revision ("+" marks uncommitted changes) where there is one."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return Origin(versions, _revision())


def _revision() -> str:
    folder = Path(__file__).parent
    try:
        head = _git(folder, "rev-parse", "--short=12", "HEAD")
        inside = _git(folder, "ls-files", "--error-unmatch", Path(__file__).name)
        return head + ("+" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "") if inside else ""
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(folder: Path, *words: str) -> str:
    result = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10)
    return result.stdout.strip()
