import io
import pickle
import zipfile

import numpy as np
import pytest
from tests.planning.logged import CONSTANT, COSINE, log_text

import eigencurve as ec
from eigencurve.planning.logs import LogSettings
from eigencurve.studio import uploads
from eigencurve.studio.uploads import MOST_EIGENVALUES, uploaded_runs, uploaded_source

S = ec.Spectrum([-0.5, 0.0, 2.0], [1, 2, 1], dim=4)


@pytest.mark.parametrize("ending", ["npz", "json", "txt", "NPZ"])
def test_reads_what_the_library_writes(ending, tmp_path):
    path = tmp_path / f"mine.{ending}"
    ec.save_spectrum(S, path)
    source = uploaded_source(path.name, path.read_bytes(), 1e-3)
    assert (source.name, source.raw, source.weight_decay) == (path.name, S, 1e-3)


@pytest.mark.parametrize("name", [r"C:\fakepath\..\a.txt", "../../etc/a.txt"])
def test_a_name_with_folders_keeps_its_last_part(name):
    assert uploaded_source(name, b"1 1\n2 1\n").name == "a.txt"


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
    "too large": ("a.txt", b"1 1\n" * (2 << 20), "at most 5 MB, got '8.0 MB"),
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
    "a bomb": ("a.npz", npz(eigenvalues=np.zeros(40_000_000), weights=np.zeros(10)), "at most 256 MB unpacked"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name, capsys):
    file, content, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        uploaded_source(file, content, 1e-3)
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
        uploaded_source("a.npz", archive.getvalue())


# ---- Logs


def content(schedule, skip=0):
    head, *rows = log_text(schedule).splitlines()
    return ("\n".join([head, *rows[skip:]]) + "\n").encode()


def test_files_of_the_same_name_are_two_runs():
    loaded = uploaded_runs([("run.csv", content(CONSTANT)), ("C:\\logs\\run.csv", content(COSINE))], LogSettings())
    assert [run.name for run in loaded.runs] == ["run", "run (2)"]
    assert loaded.runs[0].rates[-1] > loaded.runs[1].rates[-1]
    assert loaded.warnings == ()


def test_messages_have_the_names_of_the_files_and_of_the_fields():
    late = [("late.csv", content(COSINE, skip=10))]
    (warning,) = uploaded_runs(late, LogSettings(), str.upper).warnings
    assert warning.startswith("late.csv: no learning rate is logged before step 200")
    assert "WARMUP_STEPS" in warning
    with pytest.raises(ValueError, match="no such loss") as caught:
        uploaded_runs([("bad.csv", content(COSINE))], LogSettings(loss="no such loss"))
    assert caught.value.sentence(str.upper).startswith("bad.csv: ")
    assert "LOSS" in caught.value.sentence(str.upper)


def test_number_and_size_are_limited(monkeypatch):
    with pytest.raises(ValueError, match="'files' must be at most 8, got 9"):
        uploaded_runs([("a.csv", b"")] * 9, LogSettings())
    monkeypatch.setattr(uploads, "MOST_MEGABYTES", 0)
    with pytest.raises(ValueError, match=r"at most 0 MB, got '0.0 MB \(a.csv\)'"):
        uploaded_runs([("a.csv", b"step,lr,loss\n")], LogSettings())
