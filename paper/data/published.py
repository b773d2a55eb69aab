"""The spectra that the paper's authors published, as text files in spectra/ below the data folder."""

from __future__ import annotations

from pathlib import Path

from eigencurve import Spectrum, load_spectrum
from paper.data.folder import require_folder

# The first is the spectrum of a ResNet-20, despite its name.
RESNET_CIFAR10 = "resnet-18_cifar10.txt"
GOOGLENET_CIFAR10 = "googlenet_cifar10.txt"
VGG16_CIFAR10 = "vgg16_cifar10.txt"
RESNET_IMAGENET = "resnet-18_imagenet.txt"


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
