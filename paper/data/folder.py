"""The folder of real data sets, named by the environment variable EIGENCURVE_DATA, and the published spectra in it."""

from __future__ import annotations

import os
from pathlib import Path

from eigencurve import Spectrum, load_spectrum
from paper import checks

VARIABLE = "EIGENCURVE_DATA"
# The first is the spectrum of a ResNet-20, despite its name.
RESNET_CIFAR10 = "resnet-18_cifar10.txt"
GOOGLENET_CIFAR10 = "googlenet_cifar10.txt"
VGG16_CIFAR10 = "vgg16_cifar10.txt"
RESNET_IMAGENET = "resnet-18_imagenet.txt"


def data_folder() -> Path | None:
    """The folder that EIGENCURVE_DATA names; None if the variable is not set."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None


def require_folder(data: Path | None, holding: str) -> Path:
    """``data`` if given, else the data folder; ``holding`` is what it must hold, for the message."""
    folder = data or data_folder()
    if folder is None:
        remedy = f"Pass --data or set {VARIABLE}."
        checks.refuse("paper", "data", f"the folder that holds {holding}", None, remedy)
    return folder


def data_file(name: str, data: Path | None = None) -> Path:
    """The file ``name`` in ``data``, or in the data folder.

    Raises:
        FileNotFoundError: No folder is set, or it has no such file.
    """
    folder = data or data_folder()
    if folder is None:
        raise FileNotFoundError(f"{name} is missing: set {VARIABLE} to the folder that holds it.")
    if not (folder / name).exists():
        raise FileNotFoundError(f"{name} is missing in {folder}; {VARIABLE} or --data must name the folder with it.")
    return folder / name


def published_path(data: Path | None, file: str) -> Path:
    """Path of a published spectrum in ``data``, or in the data folder.

    Raises:
        ValueError: There is no such folder.
        FileNotFoundError: It does not hold the file.
    """
    path = require_folder(data, f"spectra/{file}") / "spectra" / file
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing. It is one of the spectra that the paper's authors published.")
    return path


def published_spectrum(data: Path | None, file: str) -> Spectrum:
    """A published spectrum, with signed eigenvalues; see :func:`published_path`."""
    return load_spectrum(published_path(data, file))
