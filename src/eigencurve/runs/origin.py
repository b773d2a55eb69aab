"""Where a number comes from: the versions that computed it and the revision of the source."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("eigencurve", "numpy", "scipy", "numba", "torch")


@dataclass(frozen=True)
class Origin:
    """Versions and source revision that a result was computed with.

    Attributes:
        versions: Version of Python and of each package in ``PACKAGES``, by name.
        revision: Git revision of the source; a trailing "+" marks uncommitted changes. Empty if unknown.
    """

    versions: Mapping[str, str]
    revision: str


def origin_here() -> Origin:
    """The origin of a result that this process computes."""
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
        # A copy installed into some other repository is not described by that repository's revision.
        tracked = _git(folder, "ls-files", "--error-unmatch", Path(__file__).name)
        return head + ("+" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "") if tracked else ""
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(folder: Path, *words: str) -> str:
    result = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10)
    return result.stdout.strip()
