"""Spectra on disk: ``.npz`` without pickle, ``.json``, and the paper's text format.

All three formats store every float64 exactly. The text format is the published one: "eigenvalue density" on each line,
and optionally a first line ``# dim N`` with the number of parameters. Loading a file never executes code from it. The
first two formats can also hold how the spectrum was measured, the gradient noise and the start of a run; readers that
ignore those fields can still read the spectrum.
"""

from __future__ import annotations

import io
import json
import operator
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from eigencurve import _check
from eigencurve._archives import MOST_UNPACKED, read_arrays
from eigencurve._arrays import Array
from eigencurve._files import write_atomically
from eigencurve.spectrum.measurement import MeasurementRecord, from_fields, to_fields
from eigencurve.spectrum.noise import NoiseEstimate, noise_fields, noise_from_fields
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.spectrum.start import StartEstimate, start_fields, start_from_fields

FORMAT = "eigencurve.spectrum"
VERSION = 1
DIM_LINE = re.compile(r"\s*#\s+dim\s+([0-9]+)\s*")
# More digits than Python converts are more than any dimension.
MOST_DIGITS = 400
SUFFIXES = (".npz", ".json", ".txt")
SUFFIX_WORDS = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
# What a file can hold next to the spectrum, and how to read it. A name is the prefix of the names of arrays in an .npz
# archive, and the name of an object in JSON.
READERS = {"measurement": from_fields, "noise": noise_from_fields, "start": start_from_fields}
Sections = Mapping[str, Mapping[str, Any]]
# What a reader may raise on fields that are missing or invalid.
DAMAGE = (AttributeError, KeyError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True, eq=False)
class SpectrumFile:
    """The content of a file: a spectrum, and the measurements that were stored with it.

    Attributes:
        spectrum: The spectrum.
        measurement: Record of how the spectrum was measured, or None.
        noise: Gradient noise in the octaves of the spectrum, or None.
        start: Initial error of a run in the octaves of the spectrum, or None.
    """

    spectrum: Spectrum
    measurement: MeasurementRecord | None = None
    noise: NoiseEstimate | None = None
    start: StartEstimate | None = None


def save_spectrum(
    spectrum: Spectrum,
    path: str | os.PathLike[str],
    measurement: MeasurementRecord | None = None,
    noise: NoiseEstimate | None = None,
    start: StartEstimate | None = None,
) -> None:
    """Write ``spectrum`` to ``path``; the suffix (.npz, .json or .txt) selects the format.

    An existing file is replaced only once the new one is complete.

    Args:
        spectrum: Spectrum to save.
        path: Path of the file.
        measurement: Record of how the spectrum was measured (``estimate.measurement()``), stored in the same file.
            A .txt file cannot hold it, nor the next two.
        noise: Gradient noise from :func:`eigencurve.hessian.estimate_noise`.
        start: Initial error from :func:`eigencurve.hessian.estimate_start`.
    """
    target = Path(path)
    suffix = spectrum_suffix("save_spectrum", target)
    write_atomically(target, spectrum_bytes(spectrum, suffix, measurement, noise, start))


def spectrum_bytes(
    spectrum: Spectrum,
    suffix: str,
    measurement: MeasurementRecord | None = None,
    noise: NoiseEstimate | None = None,
    start: StartEstimate | None = None,
) -> bytes:
    """The content that :func:`save_spectrum` writes to a file with this suffix."""
    if not isinstance(spectrum, Spectrum):
        _check.wrong_type("save_spectrum", "spectrum", "a Spectrum", spectrum)
    sections = {
        "measurement": None if measurement is None else to_fields(measurement),
        "noise": None if noise is None else noise_fields(noise),
        "start": None if start is None else start_fields(start),
    }
    present = {name: fields for name, fields in sections.items() if fields is not None}
    for name, fields in present.items():
        if suffix == ".txt":
            remedy = "Leave it out, or save to .npz or .json."
            _check.refuse("save_spectrum", name, "None for a .txt file, which cannot hold it", "one", remedy)
        try:
            READERS[name](fields)  # load_spectrum would refuse the file
        except DAMAGE as error:
            _check.refuse("save_spectrum", name, "complete and finite", f"{type(error).__name__}: {error}")
    if suffix == ".txt":
        return _text_bytes(spectrum)
    return (_npz_bytes if suffix == ".npz" else _json_bytes)(spectrum, present)


def load_spectrum(path: str | os.PathLike[str]) -> Spectrum:
    """Read a spectrum; the suffix (.npz, .json or .txt) selects the format. The eigenvalues need not be sorted.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is empty, damaged, of another kind, or holds an invalid value (for a text file, the message
            names the line). Pickled objects are never loaded.

    Warns:
        UserWarning: The file says that its measurement has not settled.
    """
    file = _load("load_spectrum", Path(path))
    if file.measurement is not None and file.measurement.warning:
        warnings.warn(f"load_spectrum: {path}: {file.measurement.warning}", stacklevel=2)
    return file.spectrum


def load_measurement(path: str | os.PathLike[str]) -> MeasurementRecord | None:
    """The record of how the spectrum in a file was measured, or None; raises the errors of :func:`load_spectrum`."""
    return _load("load_measurement", Path(path)).measurement


def load_noise(path: str | os.PathLike[str]) -> NoiseEstimate | None:
    """The gradient noise in the file of a spectrum, or None; raises the errors of :func:`load_spectrum`."""
    return _load("load_noise", Path(path)).noise


def load_start(path: str | os.PathLike[str]) -> StartEstimate | None:
    """The initial error of a run in the file of a spectrum, or None; raises the errors of :func:`load_spectrum`."""
    return _load("load_start", Path(path)).start


def parse_spectrum(content: bytes, suffix: str, source: Path, most_unpacked: int = MOST_UNPACKED) -> SpectrumFile:
    """The content of a file from its bytes; error messages call it ``source``.

    A small .npz archive that unpacks to more than ``most_unpacked`` bytes is refused.
    """
    if not content.strip():
        _refuse(source, "not empty", "an empty file")
    if suffix == ".npz":
        return _read_npz(content, source, most_unpacked)
    return (_read_json if suffix == ".json" else _read_text)(content, source)


def _load(function: str, source: Path) -> SpectrumFile:
    suffix = spectrum_suffix(function, source)
    return parse_spectrum(source.read_bytes(), suffix, source)


def spectrum_suffix(function: str, path: Path) -> str:
    """The suffix of ``path`` in lower case; raise ValueError if it is not one of ``SUFFIXES``."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        _check.refuse(function, "path", "a file name ending in " + ", ".join(SUFFIXES), str(path))
    return suffix


def _refuse(path: Path, constraint: str, value: object, remedy: str = "") -> NoReturn:
    _check.refuse("load_spectrum", "path", constraint, value, f"The file is {path}." + (f" {remedy}" if remedy else ""))


def _npz_bytes(spectrum: Spectrum, sections: Sections) -> bytes:
    buffer = io.BytesIO()
    more = {f"{section}.{name}": v for section, fields in sections.items() for name, v in fields.items()}
    arrays: dict[str, Any] = _head(spectrum, -1 if spectrum.dim is None else spectrum.dim) | more
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _json_bytes(spectrum: Spectrum, sections: Sections) -> bytes:
    whole = _plain(_head(spectrum, spectrum.dim)) | {name: _plain(fields) for name, fields in sections.items()}
    return (json.dumps(whole, indent=1) + "\n").encode()


def _text_bytes(spectrum: Spectrum) -> bytes:
    head = [] if spectrum.dim is None else [f"# dim {spectrum.dim}"]
    rows = [f"{lam!r} {w!r}" for lam, w in zip(spectrum.eigenvalues.tolist(), spectrum.weights.tolist(), strict=True)]
    return ("\n".join(head + rows) + "\n").encode()


def _head(spectrum: Spectrum, dim: int | None) -> dict[str, Any]:
    arrays = {"eigenvalues": spectrum.eigenvalues, "weights": spectrum.weights}
    return {"format": FORMAT, "version": VERSION, "dim": dim, **arrays}


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in fields.items()}


def _read_npz(content: bytes, path: Path, most_unpacked: int) -> SpectrumFile:
    try:
        fields = read_arrays(content, most_unpacked)
        kind, version = str(fields.get("format", FORMAT)), operator.index(fields.get("version", VERSION))
        dim = operator.index(fields.get("dim", -1))
    except (TypeError, ValueError) as error:
        _refuse(path, "an .npz archive of plain arrays", str(error), "Pickled objects are not loaded.")
    _require_version(path, kind, version)
    sections = {
        section: {name.removeprefix(f"{section}."): v for name, v in fields.items() if name.startswith(f"{section}.")}
        for section in READERS
    }
    return _file(path, fields, None if dim < 0 else dim, sections)


def _read_json(content: bytes, path: Path) -> SpectrumFile:
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        _refuse(path, "JSON", str(error))
    if not isinstance(fields, dict):
        _refuse(path, "a JSON object", fields)
    _require_version(path, fields.get("format"), fields.get("version"))
    return _file(path, fields, fields.get("dim"), fields)


def _require_version(path: Path, kind: object, version: object) -> None:
    if kind != FORMAT:
        _refuse(path, f"of format {FORMAT!r}", kind)
    if version != VERSION:
        _refuse(path, f"of version {VERSION}", version, "Upgrade eigencurve to read it.")


def _file(path: Path, fields: Mapping[str, Any], dim: int | None, sections: Mapping[str, Any]) -> SpectrumFile:
    missing = [name for name in ("eigenvalues", "weights") if name not in fields]
    if missing:
        _refuse(path, "a file with 'eigenvalues' and 'weights'", f"none of {missing}")
    try:
        spectrum = Spectrum(fields["eigenvalues"], fields["weights"], dim)
    except (TypeError, ValueError) as error:
        raise ValueError(f"load_spectrum: {path}: {error}") from None
    parts: dict[str, Any] = {}
    for section, read in READERS.items():
        if sections.get(section):
            try:
                parts[section] = read(sections[section])
            except DAMAGE as error:
                _refuse(path, f"a file whose {section} is complete", f"{type(error).__name__}: {error}")
    return SpectrumFile(spectrum, **parts)


def _read_text(content: bytes, path: Path) -> SpectrumFile:
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        _refuse(path, "UTF-8 text", str(error))
    used = {i: line for i, line in enumerate(lines, start=1) if line.strip() and not line.lstrip().startswith("#")}
    if not used:
        _refuse(path, "a file with at least one eigenvalue", "only comments")
    table: Array = np.array([_row(path, i, line) for i, line in used.items()])
    stated = DIM_LINE.fullmatch(lines[0])
    dim = int(stated[1][:MOST_DIGITS]) if stated else None
    return _file(path, {"eigenvalues": table[:, 0], "weights": table[:, 1]}, dim, {})


def _row(path: Path, number: int, line: str) -> tuple[float, float]:
    try:
        eigenvalue, weight = map(float, line.split())
    except ValueError:
        _refuse(path, "two numbers per line, 'eigenvalue density'", f"line {number}: {line.strip()!r}")
    if not (np.isfinite(eigenvalue) and np.isfinite(weight) and weight >= 0):
        _refuse(path, "a finite eigenvalue and a density >= 0", f"line {number}: {line.strip()!r}")
    return eigenvalue, weight
