"""The spectrum that the settings ask for; uploads are parsed, never executed, and limited in size."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePath

from eigencurve import _check
from eigencurve.planning.subject import Subject, law_subject, zoo_subject
from eigencurve.spectrum.files import SUFFIX_WORDS, SUFFIXES, parse_spectrum
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.studio.state import Settings

# Megabytes that may be sent; megabytes that an archive may unpack to; eigenvalues that a redraw has the time for.
MOST_MEGABYTES = 5
MOST_UNPACKED = 64
MOST_EIGENVALUES = 20_000


@dataclass(frozen=True)
class Upload:
    """A spectrum from a file that was sent: the file's name without folders, and the eigenvalues as measured."""

    name: str
    spectrum: Spectrum


def read_upload(name: str, content: bytes) -> Upload:
    """Parse a file that was sent.

    Raises:
        ValueError: a file that is too large, damaged, of another kind, or of too many eigenvalues.
    """
    plain = PurePath(name.replace("\\", "/")).name
    suffix = PurePath(plain).suffix.lower()
    if suffix not in SUFFIXES:
        _check.refuse("upload", "file", f"one that ends in {SUFFIX_WORDS}", plain)
    if len(content) > MOST_MEGABYTES << 20:
        _check.refuse("upload", "file", f"at most {MOST_MEGABYTES} MB", f"{len(content) / (1 << 20):.1f} MB")
    if suffix == ".npz":
        _require_small_archive(content)
    spectrum, _ = parse_spectrum(content, suffix, Path(plain))
    if len(spectrum) > MOST_EIGENVALUES:
        remedy = "Merge neighbours: a schedule sees octaves, not single eigenvalues."
        _check.refuse("upload", "file", f"of at most {MOST_EIGENVALUES:,} eigenvalues", f"{len(spectrum):,}", remedy)
    return Upload(plain, spectrum)


def subject_of(settings: Settings, upload: Upload | None = None) -> Subject:
    """The spectrum, with the weight decay of the settings.

    Args:
        settings: with the source.
        upload: for the source ``"upload"``.

    Raises:
        ValueError: no upload where one is needed, or eigenvalues that stay at zero.
    """
    if settings.source == "power_law":
        return law_subject(settings.alpha, settings.kappa, settings.weight_decay)
    if settings.source == "zoo":
        subject = zoo_subject(settings.zoo, settings.weight_decay)
    elif upload is None:
        _check.refuse("studio", "upload", "a file with a spectrum", "none", "Upload one, or choose another source.")
    else:
        code = f"ec.load_spectrum({json.dumps(upload.name)})"
        subject = Subject(upload.name, upload.spectrum, settings.weight_decay, code=code)
    subject.prepared  # noqa: B018 -- refuses a spectrum that is not positive here, and not where it is first used
    return subject


def _require_small_archive(content: bytes) -> None:
    """Refuse an archive that would unpack to more than memory should hold."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except zipfile.BadZipFile as error:
        _check.refuse("upload", "file", "an .npz archive", str(error))
    if size > MOST_UNPACKED << 20:
        limit = f"an archive of at most {MOST_UNPACKED} MB unpacked"
        _check.refuse("upload", "file", limit, f"{size / (1 << 20):.1f} MB")
