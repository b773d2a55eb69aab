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


# The narrow networks and the transformer are those of results/noise.md at the end of their training, with their noise.
# The unshrunk ResNet-18 is from results/spectra-unshrunk.md and has no measured noise.
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
        network="ResNet-18 with 1/8 of its widths, 176,402 parameters, 2,000 steps, 73 % test accuracy, in eval mode",
        data="the mean loss on 128 of 25,600 training images of CIFAR-10, 100 products",
        weight_decay=5e-4,
    ),
    "googlenet_cifar10_narrow16": ZooEntry(
        network="GoogLeNet with 1/16 of its widths, 26,319 parameters, 1,000 steps, 61 % test accuracy, in eval mode",
        data="the mean loss on 64 of 12,800 training images of CIFAR-10, 100 products",
        weight_decay=5e-4,
    ),
    "vgg16_cifar10_narrow8": ZooEntry(
        network="VGG16 with 1/8 of its widths, 532,690 parameters, 2,000 steps, 64 % test accuracy, in eval mode",
        data="the mean loss on 256 of 25,600 training images of CIFAR-10, 100 products",
        weight_decay=5e-4,
    ),
    "transformer_ptb_adamw": ZooEntry(
        network="byte transformer, 282,720 parameters, 1,950 steps of AdamW, 1.43 nats per byte, in AdamW's metric",
        data="the mean loss on 16 windows of 128 bytes of Penn Treebank's validation text, 100 products",
        weight_decay=0.1,
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
