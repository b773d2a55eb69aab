"""The spectrum that a schedule or a report is about, its origin, and the weight decay it is prepared with."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from eigencurve import _check
from eigencurve.planning.literals import literal
from eigencurve.spectrum.files import SpectrumFile, parse_spectrum, spectrum_suffix
from eigencurve.spectrum.measurement import MeasurementRecord
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.octaves import Octaves
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.spectrum import Spectrum, prepare
from eigencurve.spectrum.start import StartEstimate
from eigencurve.spectrum.zoo import ZOO, zoo_file

# The default smallest eigenvalue of an assumed power law: a common weight decay.
USUAL_DECAY = 5e-4


@dataclass(frozen=True)
class Subject:
    """A measured spectrum, or an assumed power law, and what is known about it.

    Attributes:
        name: Name to show to people.
        raw: Spectrum as measured, before the weight decay is added; or the power law.
        weight_decay: Weight decay of the training run. A power law includes it in its smallest eigenvalue.
        measurement: How the spectrum was measured, if known.
        code: Python expression that creates ``raw``, or None if only its numbers can recreate it.
        about: What the spectrum was measured on, if known.
        noise: Measured gradient noise, if known.
        start: Measured initial error of a run, if known.
        decay_source: Where the weight decay comes from: ``"given"``, ``"measured"`` or ``"assumed"``.
    """

    name: str
    raw: Spectrum | PowerLaw
    weight_decay: float
    measurement: MeasurementRecord | None = None
    code: str | None = None
    about: str = ""
    noise: NoiseEstimate | None = None
    start: StartEstimate | None = None
    decay_source: str = "given"

    @cached_property
    def prepared(self) -> Spectrum | PowerLaw:
        """The prepared spectrum, or the power law: the input of a schedule."""
        return self.raw if isinstance(self.raw, PowerLaw) else prepare(self.raw, self.weight_decay)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The prepared spectrum; a power law is sampled. The theory needs single eigenvalues."""
        return self.prepared.spectrum() if isinstance(self.prepared, PowerLaw) else self.prepared

    @property
    def octaves(self) -> Octaves | None:
        """The measured octave shares with error bars, if they were measured for this weight decay."""
        known = self.measurement
        return known.octaves if known is not None and known.weight_decay == self.weight_decay else None

    @property
    def fraction_negative(self) -> float:
        """The share of eigenvalues that were measured negative."""
        if isinstance(self.raw, PowerLaw):
            return 0.0
        return float(self.raw.weights[self.raw.eigenvalues < 0].sum())

    @property
    def negative_text(self) -> str:
        """The share of the curvature that was measured negative, to append to a line; empty if there is none."""
        share = 0.0 if isinstance(self.raw, PowerLaw) else self.raw.negative_share
        shown = "<1 %" if share < 0.01 else f"{100 * share:.0f} %"
        return f", {shown} of the curvature negative" if share > 0 else ""

    @property
    def heading(self) -> str:
        """The name, the weight decay, and the share of the curvature that was measured negative."""
        return f"{self.name}, weight decay {self.weight_decay:g}{self.negative_text}"

    def __repr__(self) -> str:
        return f"Subject({self.name!r}, {self.raw!r}, weight_decay={self.weight_decay:g})"


def zoo_subject(name: str, weight_decay: float | None = None) -> Subject:
    """A spectrum of the zoo. The weight decay defaults to the one it was measured with."""
    file, entry = _zoo_file(name), ZOO[name]
    decay, origin = (entry.weight_decay, "measured") if weight_decay is None else (weight_decay, "given")
    code, about = f'zoo_spectrum("{name}")', f"{entry.network}; {entry.data}"
    return Subject(name, file.spectrum, decay, file.measurement, code, about, file.noise, file.start, origin)


def file_subject(path: Path, weight_decay: float | None = None) -> Subject:
    """A spectrum from a file; see :func:`bytes_subject` for the default weight decay."""
    suffix = spectrum_suffix("load_spectrum", path)
    subject = bytes_subject(path.read_bytes(), suffix, str(path), weight_decay)
    code = f"ec.load_spectrum({literal(str(path))})"
    return dataclasses.replace(subject, name=path.stem, code=code)


def bytes_subject(content: bytes, suffix: str, name: str, weight_decay: float | None = None) -> Subject:
    """A spectrum from the bytes of a file with the ending ``suffix``.

    Without ``weight_decay``, the file's own is used; if it has none, the eigenvalues must be positive.
    """
    file = parse_spectrum(content, suffix, Path(name))
    decay, origin = _decay(file.spectrum, file.measurement, weight_decay)
    return Subject(
        name, file.spectrum, decay, file.measurement, noise=file.noise, start=file.start, decay_source=origin
    )


def law_subject(alpha: float, kappa: float, weight_decay: float | None = None) -> Subject:
    """A power law with condition number ``kappa``. Its smallest eigenvalue is the weight decay."""
    decay = _check.positive("power law", "weight_decay", USUAL_DECAY if weight_decay is None else weight_decay)
    ratio = _check.real("power law", "kappa", kappa)
    law = PowerLaw(alpha=alpha, mu=decay, L=ratio * decay)
    code = f"ec.PowerLaw(alpha={law.alpha!r}, mu={law.mu!r}, L={law.L!r})"
    origin = "assumed" if weight_decay is None else "given"
    name = f"power law, exponent {law.alpha:g}, condition number {law.kappa:g}"
    return Subject(name, law, decay, code=code, decay_source=origin)


@cache
def _zoo_file(name: str) -> SpectrumFile:
    """A spectrum of the zoo, read from its file once per process."""
    return zoo_file(name)


def _decay(spectrum: Spectrum, measurement: MeasurementRecord | None, weight_decay: float | None) -> tuple[float, str]:
    """The weight decay, and where it comes from."""
    if weight_decay is not None:
        return _check.at_least("prepare", "weight_decay", weight_decay, 0.0), "given"
    if measurement is not None:
        return measurement.weight_decay, "measured"
    if spectrum.mu <= 0:
        remedy = "Its smallest eigenvalue is not positive, so a schedule needs the weight decay of the training run."
        _check.refuse("prepare", "weight_decay", "given for this spectrum", None, remedy)
    return 0.0, "assumed"
