"""The zoo: measured spectra that ship with eigencurve, for a schedule without a measurement of your own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from eigencurve import _check
from eigencurve.spectrum.files import SpectrumFile, parse_spectrum
from eigencurve.spectrum.spectrum import Spectrum


@dataclass(frozen=True)
class ZooEntry:
    """The network and data that a shipped spectrum was measured on."""

    network: str
    data: str
    weight_decay: float


# All networks but the first were trained on 2,560 images stored as JPEG; see results/spectra.md and
# results/spectra-unshrunk.md.
FEW_IMAGES = "the mean loss on 200 of 2,560 training images of CIFAR-10"
ZOO = {
    "resnet20_cifar10": ZooEntry(
        network="ResNet-20, 272,474 parameters, trained to 92 % test accuracy, in eval mode",
        data="the mean loss on 200 training images of CIFAR-10",
        weight_decay=5e-4,
    ),
    "resnet18_cifar10": ZooEntry(
        network="ResNet-18, 11,173,962 parameters, barely trained: 2 epochs, 33 % test accuracy, in eval mode",
        data="the mean loss on 32 of 2,560 training images of CIFAR-10, 60 products, not settled (8.7 %)",
        weight_decay=5e-4,
    ),
    "resnet18_cifar10_narrow8": ZooEntry(
        network="ResNet-18 with 1/8 of its widths, 176,402 parameters, 15 epochs, 42 % test accuracy, in eval mode",
        data=f"{FEW_IMAGES}, 54 products",
        weight_decay=5e-4,
    ),
    "googlenet_cifar10_narrow16": ZooEntry(
        network="GoogLeNet with 1/16 of its widths, 26,319 parameters, 15 epochs, 46 % test accuracy, in eval mode",
        data=f"{FEW_IMAGES}, 63 products",
        weight_decay=5e-4,
    ),
    "vgg16_cifar10_narrow8": ZooEntry(
        network="VGG16 with 1/8 of its widths, 532,690 parameters, 40 epochs, 34 % test accuracy, in eval mode",
        data=f"{FEW_IMAGES}, 111 products",
        weight_decay=5e-4,
    ),
}


def zoo_spectrum(name: str) -> Spectrum:
    """Load a shipped spectrum with signed eigenvalues, sharpened at the scale of its entry's weight decay.

    Args:
        name: One of the keys of ``ZOO``.

    >>> from eigencurve import eigencurve, prepare
    >>> spectrum = zoo_spectrum("resnet20_cifar10")
    >>> spectrum.dim
    272474
    >>> f = eigencurve(prepare(spectrum, ZOO["resnet20_cifar10"].weight_decay), total_steps=1000, lr=0.1)
    """
    return zoo_file(name).spectrum


def zoo_file(name: str) -> SpectrumFile:
    """Load a shipped spectrum with all that was measured with it."""
    _check.choice("zoo_spectrum", "name", name, tuple(ZOO))
    content = files("eigencurve.spectrum").joinpath("zoo_data", f"{name}.npz").read_bytes()
    return parse_spectrum(content, ".npz", Path(f"{name}.npz"))
