import hashlib
import sys

import pytest

from paper.data import regression
from paper.data.regression import load_rows

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
    monkeypatch.setattr(regression, "A4A_URL", f"{url}/a4a")
    monkeypatch.setattr(regression, "A4A_SHA256", hashlib.sha256(CONTENT).hexdigest())
    assert len(load_rows(download=True)[1]) == 2
    assert asked == ["/a4a"]
    assert (here / "a4a").read_bytes() == CONTENT
