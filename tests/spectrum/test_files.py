import dataclasses
import io
import json
import math
import os
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from tests.spectrum.test_measurement import record, shares
from tests.spectrum.test_noise import noise
from tests.spectrum.test_start import START

import eigencurve as ec
from eigencurve.spectrum.files import load_measurement, load_noise, load_start, parse_spectrum

LOADERS = {"measurement": load_measurement, "noise": load_noise, "start": load_start}
MEASURED = {"measurement": record(), "noise": noise(), "start": START}
SUFFIXES = [".npz", ".json", ".txt"]
S = ec.Spectrum([-0.1, 1 / 3, 2.0, 1e-300], [0.3, 0.1, 1 / 7, 5e-12], dim=272_474)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(
    pairs=st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1)), min_size=1).filter(
        lambda p: sum(w for _, w in p) > 1e-3
    ),
    dim=st.none() | st.integers(1, 10**12),
)
def test_round_trips_exactly(suffix, pairs, dim, tmp_path_factory):
    path = tmp_path_factory.mktemp("spectra") / f"s{suffix}"
    s = ec.Spectrum(*zip(*pairs, strict=True), dim=dim)
    ec.save_spectrum(s, path)
    assert ec.load_spectrum(path) == s


def test_the_published_format_is_read(tmp_path, data_path):
    path = data_path("spectra/resnet-18_cifar10.txt")
    s = ec.load_spectrum(path)
    table = np.loadtxt(path)
    assert_array_equal(s.eigenvalues, np.sort(table[:, 0]))
    assert len(s) == 5000
    ec.save_spectrum(s, tmp_path / "copy.txt")
    assert_array_equal(np.loadtxt(tmp_path / "copy.txt")[:, 0], s.eigenvalues)


def test_unsorted_lines_comments_and_blank_lines_are_fine(tmp_path):
    path = tmp_path / "s.txt"
    path.write_text("# eigenvalue density\n\n 2.0 0.25\n-1e-3\t0.75  \n")
    assert ec.load_spectrum(path) == ec.Spectrum([-1e-3, 2.0], [0.75, 0.25])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"  \n"])
def test_an_empty_file_is_refused(suffix, content, tmp_path):
    path = tmp_path / f"s{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"load_spectrum: 'path' must be not empty, got 'an empty file'.*s\."):
        ec.load_spectrum(path)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("1.0 0.5\n2.0\n", r"two numbers per line.*line 2: '2.0'"),
        ("# head\n1.0 0.5\n2.0 0.5 7\n", r"line 3: '2.0 0.5 7'"),
        ("1.0,0.5\n", r"line 1: '1.0,0.5'"),
        ("1.0 0.5\nnan 0.5\n", r"a finite eigenvalue and a density >= 0.*line 2: 'nan 0.5'"),
        ("1.0 0.5\n1.0 inf\n", r"line 2: '1.0 inf'"),
        ("1.0 -0.5\n", r"line 1: '1.0 -0.5'"),
        ("1.0 0\n2.0 0\n", r"'weights' must be above zero somewhere"),
        ("# nothing\n", r"only comments"),
    ],
)
def test_a_bad_line_is_named(text, match, tmp_path):
    path = tmp_path / "s.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=match):
        ec.load_spectrum(path)
    assert path.read_text() == text


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_pickled_objects_are_refused_and_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("objects.npz", eigenvalues=np.array([Bomb()], dtype=object), weights=np.ones(1))
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Bomb()))
    for name in ("objects.npz", "pickle.npz"):
        with pytest.raises(
            ValueError, match=r"must be an .npz archive of plain arrays.*Pickled objects are not loaded"
        ):
            ec.load_spectrum(name)
    assert not (tmp_path / "exploded").exists()


def archive(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def whole_json(**changes):
    fields = {"format": "eigencurve.spectrum", "version": 1, "dim": None, "eigenvalues": [1.0], "weights": [1.0]}
    return json.dumps({**fields, **changes}).encode()


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("s.npz", b"PK\x03\x04 damaged", "plain arrays"),
        ("s.npz", b"text", "plain arrays"),
        ("s.npz", archive(eigenvalues=np.ones(2)), "'eigenvalues' and 'weights'"),
        ("s.npz", archive(eigenvalues=np.ones(2), weights=np.ones(3)), "as long as"),
        ("s.npz", archive(eigenvalues=np.ones((2, 2)), weights=np.ones(2)), "one-dimensional"),
        ("s.npz", archive(eigenvalues=np.array(["a"]), weights=np.ones(1)), "sequence of real numbers"),
        ("s.npz", archive(eigenvalues=np.ones(1), weights=np.ones(1), format="other"), "format 'eigencurve.spectrum'"),
        ("s.npz", archive(eigenvalues=np.ones(1), weights=np.ones(1), version=np.ones(3)), "plain arrays"),
        ("s.npz", archive(eigenvalues=np.ones(1), weights=np.ones(1), dim=np.inf), "plain arrays"),
        ("s.npz", archive(eigenvalues=np.ones(1), weights=np.ones(1), dim=2.5), "plain arrays"),
        ("s.npz", archive(eigenvalues=np.array([1 + 2j]), weights=np.ones(1)), "plain arrays.*complex"),
        ("s.json", b"{", "must be JSON"),
        ("s.json", whole_json(dim=10**400), "'dim' must be <= 9223372036854775807, got an integer of about 401 digits"),
        ("s.json", whole_json(dim=math.inf), "'dim' must be an integer, got inf"),
        ("s.json", whole_json(eigenvalues=[10**400]), "'eigenvalues' must be small enough for float64"),
        ("s.json", whole_json(dim=10).replace(b"10", b"1" * 5000), "JSON"),
        ("s.json", whole_json(measurement={"reason": "settled", "moved": 10**400}), "measurement is complete"),
        ("s.txt", b"# dim " + b"1" * 400 + b"\n1 1\n", "'dim' must be <= 9223372036854775807"),
        ("s.txt", b"# dim " + b"1" * 5000 + b"\n1 1\n", "'dim' must be <= 9223372036854775807"),
        ("s.json", b"[1, 2]", "a JSON object"),
        ("s.json", b"{}", "format 'eigencurve.spectrum'"),
        ("s.json", json.dumps({"format": "eigencurve.spectrum", "version": 9}).encode(), "version 1.*Upgrade"),
        ("s.json", b'{"format": "eigencurve.spectrum", "version": 1, "eigenvalues": [NaN], "weights": [1]}', "finite"),
        (
            "s.json",
            b'{"format": "eigencurve.spectrum", "version": 1, "eigenvalues": [1], "weights": [1], "dim": "x"}',
            "dim",
        ),
        ("s.txt", b"\xff\xfe\x00", "UTF-8"),
    ],
)
def test_damaged_and_foreign_files_are_refused_and_left_alone(name, content, match, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=match) as caught:
        ec.load_spectrum(path)
    assert "load_spectrum" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_a_truncated_archive_is_refused(tmp_path):
    path = tmp_path / "s.npz"
    ec.save_spectrum(S, path)
    whole = path.read_bytes()
    for length in range(1, len(whole) - 1, 37):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="plain arrays"):
            ec.load_spectrum(path)


@pytest.mark.parametrize("path", ["s.csv", "spectrum", "s.pkl"])
def test_other_endings_are_refused(path, tmp_path):
    for call in (lambda p: ec.save_spectrum(S, p), ec.load_spectrum):
        with pytest.raises(ValueError, match=r"'path' must be a file name ending in .npz, .json, .txt"):
            call(tmp_path / path)
    assert list(tmp_path.iterdir()) == []


def test_missing_file_and_wrong_type(tmp_path):
    with pytest.raises(FileNotFoundError):
        ec.load_spectrum(tmp_path / "none.npz")
    with pytest.raises(TypeError, match="save_spectrum: 'spectrum' must be a Spectrum"):
        ec.save_spectrum([1.0], tmp_path / "s.npz")


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "s.npz"
    ec.save_spectrum(S, path)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        ec.save_spectrum(ec.Spectrum([1.0], [1]), path)
    assert ec.load_spectrum(path) == S


def test_a_superscript_is_no_dimension(tmp_path):
    (tmp_path / "s.txt").write_text("# dim ²\n1 1\n")
    assert ec.load_spectrum(tmp_path / "s.txt").dim is None


def plain(made):
    """The fields of a dataclass as JSON, for comparison; NaN as a word."""
    return json.dumps(dataclasses.asdict(made), default=lambda array: array.tolist())


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize(
    ("section", "made"),
    [
        *MEASURED.items(),
        ("measurement", record(schedule_change=math.inf, reason="num_steps", made_by="ü & <b>")),
        ("measurement", record(preconditioner="AdamW", counted=np.array([0.2, 3.0]), num_unused=3)),
        ("measurement", record(error_between_probes=0.021, distance_between_probes=0.03)),
        ("noise", noise(exponent=math.nan, exponent_error=math.nan)),
    ],
)
def test_a_file_keeps_what_was_measured(section, made, suffix, tmp_path):
    path = tmp_path / f"s{suffix}"
    ec.save_spectrum(S, path, **{section: made})
    assert parse_spectrum(path.read_bytes(), suffix, path).spectrum == S
    loaded = {name: load(path) for name, load in LOADERS.items()}
    assert plain(loaded[section]) == plain(made)
    assert str(loaded[section]) == str(made)
    assert [name for name, part in loaded.items() if part is not None] == [section]
    if suffix == ".json":  # JSON has neither NaN nor infinity
        json.loads(path.read_text(), parse_constant=lambda word: pytest.fail(word))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_without_measurements_have_none(suffix, tmp_path):
    ec.save_spectrum(S, tmp_path / f"s{suffix}")
    assert {load(tmp_path / f"s{suffix}") for load in LOADERS.values()} == {None}


@pytest.mark.parametrize("section", MEASURED)
def test_text_cannot_hold_measurements(section, tmp_path):
    with pytest.raises(ValueError, match=rf"'{section}' must be None for a \.txt file"):
        ec.save_spectrum(S, tmp_path / "s.txt", **{section: MEASURED[section]})
    assert not (tmp_path / "s.txt").exists()


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("measurement", "reason", "bored"),
        ("measurement", "octave_error", [0.1]),
        ("measurement", "num_alphas", [3, 3]),
        ("measurement", "num_alphas", []),
        ("measurement", "nodes", [1.0, math.inf]),
        ("measurement", "nodes", "many"),
        ("measurement", "num_products", None),
        ("measurement", "seconds", "soon"),
        ("noise", "octave_error", [0.1]),
        ("noise", "octave_mass", [1.0, 2.0, math.inf]),
        ("noise", "batch_size", None),
        ("noise", "sigma2", "small"),
        ("start", "source", "guess"),
        ("start", "octave_index", []),
    ],
)
def test_damaged_fields_are_refused(section, name, value, tmp_path):
    path = tmp_path / "s.json"
    ec.save_spectrum(S, path, **{section: MEASURED[section]})
    fields = json.loads(path.read_text())
    fields[section][name] = value
    path.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match=f"'path' must be a file whose {section} is complete"):
        LOADERS[section](path)
    del fields[section][name]
    path.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match=f"KeyError: '{name}'"):
        ec.load_spectrum(path)
    path.write_text(json.dumps({**fields, section: [1]}))
    with pytest.raises(ValueError, match=f"whose {section} is complete"):
        ec.load_spectrum(path)


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize(
    ("section", "made"),
    [
        ("measurement", record(octaves=shares([0], [0.1], [1.0], [math.nan]))),
        ("measurement", record(nodes=np.array([math.inf]))),
        ("measurement", record(reason="tired")),
        ("measurement", record(alphas=(np.array([1.0, math.nan]), np.array([4.0, 5.0])))),
        ("start", dataclasses.replace(START, source="guess")),
    ],
)
def test_what_would_not_load_is_not_saved(section, made, suffix, tmp_path):
    with pytest.raises(ValueError, match=f"save_spectrum: '{section}' must be complete and finite, got"):
        ec.save_spectrum(S, tmp_path / f"s{suffix}", **{section: made})
    assert list(tmp_path.iterdir()) == []
