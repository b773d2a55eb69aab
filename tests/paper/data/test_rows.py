import hashlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from paper.data import rows
from paper.data.rows import SparseRows, load_rows, read_libsvm

GOOD = "+1 1:0.5 3:-2e-1\n\n# comment\n-1 2:1\n0\n1.5 1:1 2:2 3:3 \n"


def write(folder, text):
    path = folder / "rows"
    path.write_text(text)
    return path


def test_reads_labels_and_entries(tmp_path):
    rows = read_libsvm(write(tmp_path, GOOD))
    assert_array_equal(rows.labels, [1, -1, 0, 1.5])
    assert_array_equal(rows.dense(), [[0.5, 0, -0.2], [0, 1, 0], [0, 0, 0], [1, 2, 3]])
    assert read_libsvm(write(tmp_path, GOOD), num_columns=5).dense().shape == (4, 5)


@given(
    matrix=st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([0.0, 1.0, -0.25, 1e-7, 1 / 3]), min_size=n, max_size=n), min_size=1
        )
    )
)
def test_round_trips_what_it_reads(matrix, tmp_path_factory):
    dense = np.array(matrix)
    if not dense.any():
        return
    labels = np.arange(len(dense)) / 3
    lines = [
        " ".join([repr(y), *(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v)])
        for y, row in zip(labels.tolist(), matrix, strict=True)
    ]
    rows = read_libsvm(write(tmp_path_factory.mktemp("libsvm"), "\n".join(lines)), num_columns=dense.shape[1])
    assert_array_equal(rows.dense(), dense)
    assert_array_equal(rows.labels, labels)
    again = SparseRows.from_dense(dense, labels)
    for name in ("labels", "starts", "columns", "values"):
        assert_array_equal(getattr(again, name), getattr(rows, name))


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ("x 1:1", r"line 2: label 'x' is not a finite number"),
        ("nan 1:1", r"line 2: label 'nan'"),
        ("1 1:1 2", r"line 2: '2' is not index:value"),
        ("1 1:1:1", r"line 2: '1:1:1' is not index:value"),
        ("1 a:1", r"line 2: 'a:1' is not index:value"),
        ("1 1:", r"line 2: '1:' is not index:value"),
        ("1 1:inf", r"line 2: '1:inf' is not index:value"),
        ("1 1:1_0", r"line 2: '1:1_0' is not index:value"),
        ("1 1.0:1", r"line 2: '1.0:1' is not index:value"),
        ("1 -1:1", r"line 2: '-1:1' is not index:value"),
        ("1 0:1", r"line 2: index 0 does not increase from 0 \(indices begin at 1\)"),
        ("1 2:1 2:1", r"line 2: index 2 does not increase from 2"),
        ("1 2:1 1:1", r"line 2: index 1 does not increase from 2"),
        ("1 1:1e999", r"line 2: '1:1e999' is not index:value"),
        ("1 99999999999:1", r"line 2: index 99999999999 is above 2147483647"),
        ("1 " + "9" * 400 + ":1", r"line 2: index 9+ is above 2147483647"),
        ("1 " + "9" * 5000 + ":1", r"line 2: index 9+\.* is above 2147483647"),
        ("1 1:--1", r"line 2: '1:--1' is not index:value"),
    ],
)
def test_a_bad_line_is_named(bad, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        read_libsvm(write(tmp_path, f"1 1:1\n{bad}\n1 1:1\n"))


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "1\n2\n"])
def test_a_file_without_entries_is_refused(text, tmp_path):
    with pytest.raises(ValueError, match="at least one feature"):
        read_libsvm(write(tmp_path, text))


def test_too_few_columns_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"'num_columns' must be >= the largest index, 3, got 2"):
        read_libsvm(write(tmp_path, GOOD), num_columns=2)


def test_reads_a4a(data_path):
    rows = read_libsvm(data_path("a4a"), num_columns=123)
    assert (len(rows), rows.num_columns) == (4781, 123)
    assert set(rows.labels) == {-1.0, 1.0}
    assert set(rows.values) == {1.0}


@pytest.mark.parametrize("index", [50_000, 2_000_000_000])
def test_a_few_bytes_do_not_become_a_matrix_of_gigabytes(index, tmp_path):
    rows = read_libsvm(write(tmp_path, f"1 {index}:1\n"))
    assert rows.num_columns == index
    with pytest.raises(ValueError, match=rf"dense: 'rows' must be at most 1024 MB as a matrix.*got '1 × {index}'"):
        rows.dense()


CONTENT = b"+1 1:1\n-1 2:1\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder, and no data folder."""
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_named_file_wins_over_a4a(here):
    (here / "mine.libsvm").write_bytes(CONTENT)
    (here / "a4a").write_bytes(CONTENT)
    name, rows = load_rows("mine.libsvm")
    assert (name, len(rows), rows.num_columns) == ("mine.libsvm", 2, 2)
    name, rows = load_rows()
    assert (name, len(rows), rows.num_columns) == ("a4a", 2, 123)


def test_a4a_comes_from_the_data_folder(here, monkeypatch):
    (here / "data").mkdir()
    (here / "data" / "a4a").write_bytes(CONTENT)
    monkeypatch.setenv("EIGENCURVE_DATA", "data")
    assert load_rows()[0] == "a4a"


@pytest.mark.usefixtures("here")
def test_without_a4a_rows_come_from_scikit_learn():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    name, rows = load_rows()
    assert (name, len(rows), rows.num_columns) == ("breast cancer", 569, 30)
    assert (rows.dense().min(), rows.dense().max()) == (0.0, 1.0)
    assert set(rows.labels) == {-1.0, 1.0}


@pytest.mark.usefixtures("here")
def test_a_missing_scikit_learn_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"data from scikit-learn: pip install --requirement paper/requirements.txt"):
        load_rows()


def test_a4a_is_downloaded_when_asked(here, monkeypatch, serve):
    url, asked = serve({"/a4a": CONTENT})
    monkeypatch.setattr(rows, "A4A_URL", f"{url}/a4a")
    monkeypatch.setattr(rows, "A4A_SHA256", hashlib.sha256(CONTENT).hexdigest())
    assert len(load_rows(download=True)[1]) == 2
    assert asked == ["/a4a"]
    assert (here / "a4a").read_bytes() == CONTENT
