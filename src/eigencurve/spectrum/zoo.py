"""Spectra that this project measured itself, shipped with it: a schedule to start from without a measurement."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files

from eigencurve import _check
from eigencurve.spectrum.files import load_spectrum
from eigencurve.spectrum.spectrum import Spectrum


@dataclass(frozen=True)
class ZooEntry:
    """What a shipped spectrum was measured on."""

    network: str
    data: str
    weight_decay: float


ZOO = {
    "resnet20_cifar10": ZooEntry(
        network="ResNet-20, 272,474 parameters, trained to 92 % test accuracy, in eval mode",
        data="the mean loss on 200 training images of CIFAR-10",
        weight_decay=5e-4,
    ),
}


def zoo_spectrum(name: str) -> Spectrum:
    """A shipped spectrum: signed eigenvalues, sharpened to the scale of its entry's weight decay.

    Args:
        name: one of the keys of ``ZOO``.

    >>> from eigencurve import eigencurve, prepare
    >>> spectrum = zoo_spectrum("resnet20_cifar10")
    >>> spectrum.dim
    272474
    >>> f = eigencurve(prepare(spectrum, ZOO["resnet20_cifar10"].weight_decay), total_steps=1000, lr=0.1)
    """
    _check.choice("zoo_spectrum", "name", name, tuple(ZOO))
    with as_file(files("eigencurve.spectrum").joinpath("zoo_data", f"{name}.npz")) as path:
        return load_spectrum(path)
