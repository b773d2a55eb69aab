"""The spectrum that the settings select. Uploads are parsed, never executed, and limited in size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath

from eigencurve import _check
from eigencurve.spectrum.files import SUFFIX_WORDS, SUFFIXES, parse_spectrum
from eigencurve.spectrum.measurement import MeasurementRecord
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.source import SpectrumSource, law_source, zoo_source
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.spectrum.start import StartEstimate
from eigencurve.studio.state import Settings

# Limits of an upload: size of the file, size of an unpacked archive, and number of eigenvalues that redraw quickly.
MOST_MEGABYTES = 5
MOST_UNPACKED = 64
MOST_EIGENVALUES = 20_000


@dataclass(frozen=True)
class Upload:
    """An uploaded spectrum: the file name without folders, the eigenvalues as measured, and all that was measured."""

    name: str
    spectrum: Spectrum
    noise: NoiseEstimate | None = None
    start: StartEstimate | None = None
    measurement: MeasurementRecord | None = None


def read_upload(name: str, content: bytes) -> Upload:
    """Parse an uploaded file.

    Raises:
        ValueError: If the file is too large, damaged, of another type, or has too many eigenvalues.
    """
    plain = PurePath(name.replace("\\", "/")).name
    suffix = PurePath(plain).suffix.lower()
    if suffix not in SUFFIXES:
        _check.refuse("upload", "file", f"one that ends in {SUFFIX_WORDS}", plain)
    if len(content) > MOST_MEGABYTES << 20:
        _check.refuse("upload", "file", f"at most {MOST_MEGABYTES} MB", f"{len(content) / (1 << 20):.1f} MB")
    file = parse_spectrum(content, suffix, Path(plain), MOST_UNPACKED << 20)
    spectrum = file.spectrum
    if len(spectrum) > MOST_EIGENVALUES:
        remedy = "Merge neighbouring eigenvalues; the schedule only depends on octaves."
        _check.refuse("upload", "file", f"of at most {MOST_EIGENVALUES:,} eigenvalues", f"{len(spectrum):,}", remedy)
    return Upload(plain, spectrum, file.noise, file.start, file.measurement)


def subject_of(settings: Settings, upload: Upload | None = None) -> SpectrumSource:
    """The selected spectrum, prepared with the weight decay of the settings.

    Args:
        settings: Settings of the page.
        upload: Uploaded file, if the source is ``"upload"``.

    Raises:
        ValueError: If the upload is missing, or if an eigenvalue is still zero after adding the weight decay.
    """
    if settings.source == "power_law":
        return law_source(settings.alpha, settings.kappa, settings.weight_decay)
    if settings.source == "zoo":
        subject = zoo_source(settings.zoo, settings.weight_decay)
    elif upload is None:
        _check.refuse("studio", "upload", "a file with a spectrum", "none", "Upload one, or choose another source.")
    else:
        subject = SpectrumSource(
            upload.name, upload.spectrum, settings.weight_decay, upload.measurement, upload.noise, upload.start,
            origin="file", path=upload.name,
        )  # fmt: skip
    subject.prepared  # noqa: B018 -- raises here, not at first use, if the spectrum is not positive
    return subject
