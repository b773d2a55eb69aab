"""Spectra on disk: ``.npz`` without pickle, ``.json``, and the paper's text format.

All three keep every float64 exactly. The text format is the published one, "eigenvalue density" a line; a
comment line ``# dim N`` carries the number of parameters. Files from elsewhere are parsed, never executed.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array
from eigencurve._files import write_atomically
from eigencurve.spectrum.spectrum import Spectrum

FORMAT = "eigencurve.spectrum"
VERSION = 1
SUFFIXES = (".npz", ".json", ".txt")


def save_spectrum(spectrum: Spectrum, path: str | os.PathLike[str]) -> None:
    """Write ``spectrum`` to ``path`` in the format of its ending (.npz, .json or .txt), atomically.

    An existing file is replaced only once the new one is complete.
    """
    if not isinstance(spectrum, Spectrum):
        raise TypeError(_check.sentence("save_spectrum", "spectrum", "a Spectrum", spectrum))
    writers = {".npz": _npz_bytes, ".json": _json_bytes, ".txt": _text_bytes}
    target = Path(path)
    write_atomically(target, writers[_suffix("save_spectrum", target)](spectrum))


def load_spectrum(path: str | os.PathLike[str]) -> Spectrum:
    """Read a spectrum; the ending (.npz, .json or .txt) tells the format. Unsorted files are sorted.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty, damaged, of another kind, or holds a bad value (with its line number in a
            text file). Pickled objects are refused, not loaded.
    """
    readers = {".npz": _read_npz, ".json": _read_json, ".txt": _read_text}
    source = Path(path)
    reader = readers[_suffix("load_spectrum", source)]
    content = source.read_bytes()
    if not content.strip():
        _refuse(source, "not empty", "an empty file")
    return reader(content, source)


def _suffix(function: str, path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        _check.refuse(function, "path", "a file name ending in " + ", ".join(SUFFIXES), str(path))
    return suffix


def _refuse(path: Path, constraint: str, value: object, remedy: str = "") -> NoReturn:
    _check.refuse("load_spectrum", "path", constraint, value, f"The file is {path}." + (f" {remedy}" if remedy else ""))


def _npz_bytes(spectrum: Spectrum) -> bytes:
    buffer = io.BytesIO()
    dim = np.int64(-1 if spectrum.dim is None else spectrum.dim)
    np.savez_compressed(
        buffer, format=np.str_(FORMAT), version=np.int64(VERSION), eigenvalues=spectrum.eigenvalues,
        weights=spectrum.weights, dim=dim,
    )  # fmt: skip
    return buffer.getvalue()


def _json_bytes(spectrum: Spectrum) -> bytes:
    fields = {
        "format": FORMAT,
        "version": VERSION,
        "dim": spectrum.dim,
        "eigenvalues": spectrum.eigenvalues.tolist(),
        "weights": spectrum.weights.tolist(),
    }
    return (json.dumps(fields, indent=1) + "\n").encode()


def _text_bytes(spectrum: Spectrum) -> bytes:
    head = [] if spectrum.dim is None else [f"# dim {spectrum.dim}"]
    rows = [f"{lam!r} {w!r}" for lam, w in zip(spectrum.eigenvalues.tolist(), spectrum.weights.tolist(), strict=True)]
    return ("\n".join(head + rows) + "\n").encode()


def _read_npz(content: bytes, path: Path) -> Spectrum:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            fields = {name: archive[name] for name in archive.files}
        kind, version = str(fields.get("format", FORMAT)), int(fields.get("version", VERSION))
        dim = int(fields.get("dim", -1))
    except (
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
        EOFError,
        OSError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        _refuse(path, "an .npz archive of plain arrays", str(error), "Pickled objects are not loaded.")
    _require_version(path, kind, version)
    return _spectrum(path, fields, None if dim < 0 else dim)


def _read_json(content: bytes, path: Path) -> Spectrum:
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        _refuse(path, "JSON", str(error))
    if not isinstance(fields, dict):
        _refuse(path, "a JSON object", fields)
    _require_version(path, fields.get("format"), fields.get("version"))
    return _spectrum(path, fields, fields.get("dim"))


def _require_version(path: Path, kind: object, version: object) -> None:
    if kind != FORMAT:
        _refuse(path, f"of format {FORMAT!r}", kind)
    if version != VERSION:
        _refuse(path, f"of version {VERSION}", version, "Upgrade eigencurve to read it.")


def _spectrum(path: Path, fields: dict[str, Any], dim: int | None) -> Spectrum:
    missing = [name for name in ("eigenvalues", "weights") if name not in fields]
    if missing:
        _refuse(path, "a file with 'eigenvalues' and 'weights'", f"none of {missing}")
    try:
        return Spectrum(fields["eigenvalues"], fields["weights"], dim)
    except (TypeError, ValueError) as error:
        raise ValueError(f"load_spectrum: {path}: {error}") from None


def _read_text(content: bytes, path: Path) -> Spectrum:
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        _refuse(path, "UTF-8 text", str(error))
    rows = [
        _row(path, i, line)
        for i, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not rows:
        _refuse(path, "a file with at least one eigenvalue", "only comments")
    table: Array = np.array(rows)
    return _spectrum(path, {"eigenvalues": table[:, 0], "weights": table[:, 1]}, _text_dim(lines))


def _row(path: Path, number: int, line: str) -> tuple[float, float]:
    try:
        eigenvalue, weight = map(float, line.split())
    except ValueError:
        _refuse(path, "two numbers a line, 'eigenvalue density'", f"line {number}: {line.strip()!r}")
    if not (np.isfinite(eigenvalue) and np.isfinite(weight) and weight >= 0):
        _refuse(path, "a finite eigenvalue and a density >= 0", f"line {number}: {line.strip()!r}")
    return eigenvalue, weight


def _text_dim(lines: list[str]) -> int | None:
    words = [line.split() for line in lines[:1]]
    if words and len(words[0]) == 3 and words[0][:2] == ["#", "dim"] and words[0][2].isdigit():
        return int(words[0][2])
    return None
