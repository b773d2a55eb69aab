"""The zoo: measured spectra that ship with eigencurve, for a schedule without a measurement of your own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from eigencurve import _check
from eigencurve.spectrum.files import SpectrumFile, parse_spectrum
from eigencurve.spectrum.spectrum import Spectrum


@dataclass(frozen=True)
class ZooEntry:
    """The network and data that a shipped spectrum was measured on.

    Attributes:
        network: The network and its training.
        data: The loss whose Hessian was measured.
        weight_decay: Weight decay of the training, which the spectrum is sharpened for.
        num_products: Number of Hessian-vector products of all probes, if its file does not record it.
        error_along_probe: Error of the schedule along one probe, if its file does not record it.
    """

    network: str
    data: str
    weight_decay: float
    num_products: int | None = None
    error_along_probe: float | None = None


@dataclass(frozen=True, kw_only=True)
class ZooSummary(ZooEntry):
    """A shipped spectrum and the errors of its measurement, from its file. None means not measured.

    Attributes:
        name: Name in the zoo.
        dim: Number of parameters.
        num_counted: Number of eigenvalues that were found one by one; see :mod:`eigencurve.spectrum.counting`.
        error_along_probe: Largest |ln f'/f| of the schedule over the last quarter of the products.
        error_between_probes: Typical largest |ln f/g| to the schedule of an estimate from other probes.
        sigma2, batch_size: Gradient noise σ² for batches of that size.
        gamma: Exponent γ in C ∝ H^γ of the covariance C of the gradient noise.
    """

    name: str
    dim: int | None
    num_counted: int | None = None
    error_between_probes: float | None = None
    sigma2: float | None = None
    batch_size: int | None = None
    gamma: float | None = None


# results/noise.md has the narrow networks and the transformer, at the end of their training, with their noise.
# The unshrunk ResNet-18 is from results/spectra-unshrunk.md and has no measured noise.
ZOO = {
    "resnet20_cifar10": ZooEntry(
        network="ResNet-20, trained to 92 % test accuracy, in eval mode",
        data="the mean loss on 200 training images of CIFAR-10",
        weight_decay=5e-4,
    ),
    "resnet18_cifar10": ZooEntry(
        network="ResNet-18, barely trained: 2 epochs, 33 % test accuracy, in eval mode",
        data="the mean loss on 32 of 2,560 training images of CIFAR-10, not settled",
        weight_decay=5e-4,
        num_products=60,
        error_along_probe=0.087,
    ),
    "resnet18_cifar10_narrow8": ZooEntry(
        network="ResNet-18 with 1/8 of its widths, 2,000 steps, 73 % test accuracy, in eval mode",
        data="the mean loss on 128 of 25,600 training images of CIFAR-10",
        weight_decay=5e-4,
    ),
    "googlenet_cifar10_narrow16": ZooEntry(
        network="GoogLeNet with 1/16 of its widths, 1,000 steps, 61 % test accuracy, in eval mode",
        data="the mean loss on 64 of 12,800 training images of CIFAR-10",
        weight_decay=5e-4,
    ),
    "vgg16_cifar10_narrow8": ZooEntry(
        network="VGG16 with 1/8 of its widths, 2,000 steps, 64 % test accuracy, in eval mode",
        data="the mean loss on 256 of 25,600 training images of CIFAR-10",
        weight_decay=5e-4,
    ),
    "transformer_ptb_adamw": ZooEntry(
        network="byte transformer, 1,950 steps of AdamW, 1.43 nats per byte, in AdamW's metric",
        data="the mean loss on 16 windows of 128 bytes of Penn Treebank's validation text",
        weight_decay=0.1,
    ),
}


def zoo_spectrum(name: str) -> Spectrum:
    """Load a shipped spectrum with signed eigenvalues, sharpened at the scale of its entry's weight decay.

    Args:
        name: One of the keys of ``ZOO``.

    >>> from eigencurve import eigencurve
    >>> from eigencurve.spectrum import prepare
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


def zoo_summary(name: str) -> ZooSummary:
    """Summarise a shipped spectrum: its size, the cost and the errors of its measurement, and its gradient noise.

    >>> zoo_summary("resnet20_cifar10").dim
    272474
    """
    file = zoo_file(name)
    facts: dict[str, Any] = vars(ZOO[name]) | {"name": name, "dim": file.spectrum.dim}
    if (record := file.measurement) is not None:
        facts |= {
            "num_products": record.num_products,
            "num_counted": len(record.counted),
            "error_along_probe": _finite(record.schedule_change),
            "error_between_probes": _finite(record.error_between_probes),
        }
    if (noise := file.noise) is not None:
        facts |= {"sigma2": noise.sigma2, "batch_size": noise.batch_size, "gamma": _finite(noise.exponent)}
    return ZooSummary(**facts)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
