import io
import pickle
import zipfile

import numpy as np
import pytest

import eigencurve as ec
from eigencurve.spectrum.zoo import zoo_spectrum
from eigencurve.studio.source import MOST_EIGENVALUES, Upload, read_upload, subject_of
from eigencurve.studio.state import Settings

S = ec.Spectrum([-0.5, 0.0, 2.0], [1, 2, 1], dim=4)


@pytest.mark.parametrize("ending", ["npz", "json", "txt", "NPZ"])
def test_reads_what_the_library_writes(ending, tmp_path):
    path = tmp_path / f"mine.{ending}"
    ec.save_spectrum(S, path)
    assert read_upload(path.name, path.read_bytes()) == Upload(path.name, S)


def test_a_name_with_folders_keeps_its_last_part():
    assert read_upload(r"C:\fakepath\..\a.txt", b"1 1\n2 1\n").name == "a.txt"
    assert read_upload("../../etc/a.txt", b"1 1\n2 1\n").name == "a.txt"


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def encrypted(content):
    """The archive with the bit set that says so, in every local header and in the directory."""
    changed = bytearray(content)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = -1
        while (start := content.find(mark, start + 1)) >= 0:
            changed[start + offset] |= 1
    return bytes(changed)


class Trap:
    def __reduce__(self):
        return print, ("unpickled",)


BAD = {
    "another ending": ("spectrum.pkl", pickle.dumps([1.0]), "'file' must be one that ends in .npz, .json or .txt"),
    "no ending": ("spectrum", b"1 1", "one that ends in"),
    "empty": ("a.txt", b"", "not empty"),
    "words": ("a.txt", b"once upon a time", "two numbers per line.*line 1"),
    "one column": ("a.txt", b"1 1\n2\n", "line 2"),
    "not a number": ("a.txt", b"1 1\nnan 1\n", "line 2"),
    "binary": ("a.txt", b"\xff\xfe\x00", "UTF-8"),
    "not JSON": ("a.json", b"{", "JSON"),
    "other JSON": ("a.json", b"[1, 2]", "a JSON object"),
    "nested JSON": ("a.json", b"[" * 100_000, "JSON"),
    "no archive": ("a.npz", b"PK but no more", "an .npz archive"),
    "half an archive": ("a.npz", npz(eigenvalues=np.ones(100), weights=np.ones(100))[:-40], "an .npz archive"),
    "no weights": ("a.npz", npz(eigenvalues=np.ones(3)), "'weights'"),
    "pickled": ("a.npz", npz(eigenvalues=np.array([Trap()]), weights=np.ones(1)), "plain arrays"),
    "too many": (
        "a.npz",
        npz(eigenvalues=np.ones(MOST_EIGENVALUES + 1), weights=np.ones(MOST_EIGENVALUES + 1)),
        "at most 20,000 eigenvalues, got '20,001'",
    ),
    "too large": ("a.txt", b"1 1\n" * (2 << 20), "at most 5 MB, got '8.0 MB'"),
    "an encrypted archive": (
        "a.npz",
        encrypted(npz(eigenvalues=np.ones(3), weights=np.ones(3))),
        "plain arrays.*encrypted",
    ),
    "400 digits": (
        "a.json",
        b'{"format": "eigencurve.spectrum", "version": 1, "eigenvalues": [1' + b"0" * 400 + b'], "weights": [1]}',
        "small enough for float64",
    ),
    "no dimension": ("a.npz", npz(eigenvalues=np.ones(3), weights=np.ones(3), dim=np.inf), "plain arrays"),
    "a bomb": ("a.npz", npz(eigenvalues=np.zeros(10_000_000), weights=np.zeros(10)), "at most 64 MB unpacked"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name, capsys):
    file, content, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        read_upload(file, content)
    assert capsys.readouterr().out == ""


def test_a_header_that_promises_too_much():
    """An array of 2^40 numbers in a few bytes: refused, not allocated."""
    header = {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
    buffer, archive = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, header)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("eigenvalues.npy", buffer.getvalue())
        file.writestr("weights.npy", buffer.getvalue())
    with pytest.raises(ValueError, match=r"an \.npz archive"):
        read_upload("a.npz", archive.getvalue())


def test_sources():
    law = subject_of(Settings(source="power_law", alpha=1.2, kappa=1e4, weight_decay=1e-3))
    assert law.prepared == ec.PowerLaw(1.2, 1e-3, 10.0)
    zoo = subject_of(Settings(weight_decay=1e-3))
    assert zoo.spectrum == ec.spectrum.prepare(zoo_spectrum("resnet20_cifar10"), 1e-3)
    own = subject_of(Settings(source="upload", weight_decay=0.5), Upload("a.txt", S))
    assert own.spectrum == ec.spectrum.prepare(S, 0.5)
    assert own.name == "a.txt"
    assert own.code == 'ec.load_spectrum("a.txt")'
    assert subject_of(Settings(source="upload"), Upload("🦔.txt", S)).code == 'ec.load_spectrum("🦔.txt")'


def test_no_file_or_no_curvature():
    with pytest.raises(ValueError, match="studio: 'upload' must be a file with a spectrum"):
        subject_of(Settings(source="upload"))
    with pytest.raises(ValueError, match="positive"):
        subject_of(Settings(source="upload", weight_decay=0.0), Upload("a.txt", S))
