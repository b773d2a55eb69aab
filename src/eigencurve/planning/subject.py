"""What a schedule or a report is about: a spectrum, where it came from, and the weight decay it is prepared with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from eigencurve import _check
from eigencurve.spectrum.files import parse_spectrum, spectrum_suffix
from eigencurve.spectrum.measurement import MeasurementRecord, OctaveShares
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum, prepare
from eigencurve.spectrum.zoo import ZOO, zoo_spectrum

# The smallest eigenvalue of an assumed power law, where none is given: a common weight decay.
USUAL_DECAY = 5e-4


@dataclass(frozen=True)
class Subject:
    """A spectrum as measured, or a power law in its place, and what is known of it.

    Attributes:
        name: for people.
        shape: the spectrum as measured, or the law.
        weight_decay: of the training run; it is in the law's smallest eigenvalue already.
        measurement: how the spectrum was measured, where that is known.
        code: the Python expression that makes ``shape``; None where it can only be made from its numbers.
        about: what it was measured on, where that is known.
    """

    name: str
    shape: Spectrum | PowerLaw
    weight_decay: float
    measurement: MeasurementRecord | None = None
    code: str | None = None
    about: str = ""

    @cached_property
    def prepared(self) -> Spectrum | PowerLaw:
        """What a schedule is made from."""
        return self.shape if isinstance(self.shape, PowerLaw) else prepare(self.shape, self.weight_decay)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The same with eigenvalues one by one, as the theory needs it."""
        return self.prepared.spectrum() if isinstance(self.prepared, PowerLaw) else self.prepared

    @property
    def octaves(self) -> OctaveShares | None:
        """The measured shares with their error bars, where they are for this weight decay."""
        known = self.measurement
        return known.octaves if known is not None and known.weight_decay == self.weight_decay else None

    @property
    def fraction_negative(self) -> float:
        """The share of negative eigenvalues as measured."""
        if isinstance(self.shape, PowerLaw):
            return 0.0
        return float(self.shape.weights[self.shape.eigenvalues < 0].sum())


def zoo_subject(name: str, weight_decay: float | None = None) -> Subject:
    """A shipped spectrum; the weight decay is its own unless another is given."""
    spectrum, entry = zoo_spectrum(name), ZOO[name]
    decay = entry.weight_decay if weight_decay is None else weight_decay
    about = f"{entry.network}; {entry.data}"
    return Subject(name, spectrum, decay, code=f'zoo_spectrum("{name}")', about=about)


def file_subject(path: Path, weight_decay: float | None = None) -> Subject:
    """A spectrum from a file."""
    suffix = spectrum_suffix("load_spectrum", path)
    subject = bytes_subject(path.read_bytes(), suffix, str(path), weight_decay)
    return Subject(
        path.stem,
        subject.shape,
        subject.weight_decay,
        subject.measurement,
        f"ec.load_spectrum({json.dumps(str(path))})",
    )


def bytes_subject(content: bytes, suffix: str, name: str, weight_decay: float | None = None) -> Subject:
    """A spectrum from the bytes of a file of that ending."""
    spectrum, measurement = parse_spectrum(content, suffix, Path(name))
    return Subject(name, spectrum, _decay(spectrum, measurement, weight_decay), measurement)


def law_subject(alpha: float, kappa: float, weight_decay: float | None = None) -> Subject:
    """A power law of condition number ``kappa`` whose smallest eigenvalue is the weight decay."""
    decay = _check.positive("power law", "weight_decay", USUAL_DECAY if weight_decay is None else weight_decay)
    ratio = _check.real("power law", "kappa", kappa)
    law = PowerLaw(alpha=alpha, mu=decay, L=ratio * decay)
    code = f"ec.PowerLaw(alpha={law.alpha!r}, mu={law.mu!r}, L={law.L!r})"
    return Subject(f"power law, exponent {law.alpha:g}, condition number {law.kappa:g}", law, decay, code=code)


def _decay(spectrum: Spectrum, measurement: MeasurementRecord | None, weight_decay: float | None) -> float:
    """As given; else as measured with; else none, for a spectrum that needs none."""
    if weight_decay is not None:
        return _check.at_least("prepare", "weight_decay", weight_decay, 0.0)
    if measurement is not None:
        return measurement.weight_decay
    if spectrum.mu <= 0:
        remedy = "Its smallest eigenvalue is not positive; a schedule needs the weight decay of the training run."
        _check.refuse("prepare", "weight_decay", "given for this spectrum", None, remedy)
    return 0.0
