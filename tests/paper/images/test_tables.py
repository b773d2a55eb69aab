"""Every image table through the command line, on small folders of the real layouts."""

import pytest
from tests.paper import running
from tests.paper.data.cifar_files import batch, mapping, pixels_and_labels, write_cifar10
from tests.paper.images.pages import made, run

from eigencurve import load_spectrum
from eigencurve.runs.store import Store
from eigencurve.spectrum import prepare


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """CIFAR-10 and CIFAR-100 in small, and one store for all tables: spectra are measured once."""
    path = tmp_path_factory.mktemp("cifar")
    write_cifar10(path, per_batch=12)
    target = path / "cifar-100-python"
    target.mkdir()
    for seed, (name, num) in enumerate((("train", 60), ("test", 16))):
        (target / name).write_bytes(batch(*pixels_and_labels(num, 100, seed), "fine_labels"))
    (target / "meta").write_bytes(mapping({"fine_label_names": b"]"}))
    return path


def test_spectra(folder):
    page, values = made(folder, "spectra")
    titles = [s["network"] for s in values["spectra"]]
    assert titles == [f"{name}, widths divided by 16" for name in ("ResNet-18", "GoogLeNet", "VGG16")]
    for found, name in zip(values["spectra"], ("resnet18", "googlenet", "vgg16"), strict=True):
        spectrum = load_spectrum(folder / "out" / f"spectra_{name}_cifar10_narrow16.npz")
        assert spectrum.dim == found["dim"]
        assert f"| {prepare(spectrum, 5e-4).kappa:.3g} |" in page
    assert page.count("| octave i |") == 3
    assert "trained on 32 images" in page
    assert "differ from the published files" in page


def test_spectra_unshrunk(folder):
    page, values = made(folder, "spectra-unshrunk")
    (found,) = values["spectra"]
    assert found["num_products"] == 13
    assert page.count("| octave i |") == 1


def test_cifar10(folder):
    page, values = made(folder, "cifar10")
    (rows,) = values["sections"].values()
    assert [row["schedule"] for row in rows] == [
        "Inverse Time Decay", "Step Decay", "General Step Decay", "Cosine Decay", "Eigencurve", "Elastic Step Decay",
        "Numerically best",
    ]  # fmt: skip
    for row in rows:
        assert len(row["trials"]["accuracy"]) + row["diverged"] == 2
        assert row["settings"]["split"] == "test"
    assert "differ from the published files" in page
    assert "ResNet-18, 1 epoch\n" in page
    done = Store(folder / "s.sqlite")
    assert {r["settings"]["split"] for r in _rows(done, "images/CIFAR-10/") if r["seed"] == 100} == {"validation"}
    assert "48 training and 12 test images" in page
    assert "after 1 epoch of 32 images" in page
    assert "16 of the training images" in page
    assert not list((folder / "s.checkpoints").iterdir())


def test_reuse(folder):
    page, values = made(folder, "reuse")
    assert list(values["sections"]) == ["GoogLeNet, 1 epoch", "VGG16, 1 epoch"]
    for rows in values["sections"].values():
        own, reused = (row["settings"]["spectrum"] for row in rows if row["schedule"].startswith("Eigencurve"))
        assert own.split("/")[0] in ("googlenet", "vgg16")
        assert reused.split("/")[0] == "resnet18"
    assert page.count(" standard errors).") == 2
    assert "32 training and 12 test images" in page


def test_ema(folder):
    _, values = made(folder, "ema")
    (rows,) = values["sections"].values()
    assert [row["schedule"] for row in rows] == ["Averaged weights, constant rate", "Eigencurve"]
    assert rows[0]["settings"]["schedule"] == "constant"
    assert rows[0]["settings"]["ema_decay"] == 0.95


def test_elastic(folder):
    _, values = made(folder, "elastic")
    assert list(values["sections"]) == ["CIFAR-10, ResNet-18, 1 epoch", "CIFAR-100, ResNet-18, 1 epoch"]
    assert all(len(rows) == 4 for rows in values["sections"].values())


def test_what_is_missing_is_said(tmp_path):
    write_cifar10(tmp_path, per_batch=12)
    result = run("elastic", "--data", str(tmp_path), "--store", str(tmp_path / "s.sqlite"))
    assert result.exit_code == 0, result.output
    assert "CIFAR-100 is missing" in result.stdout
    empty = run("elastic", "--data", str(tmp_path / "nothing"), "--store", str(tmp_path / "s.sqlite"))
    assert empty.exit_code == 1
    assert "neither CIFAR-10 nor CIFAR-100 was found" in empty.stderr
    unknown = running.run("cifar10", "--data", str(tmp_path), "--scale", "huge")
    assert unknown.exit_code == 2
    assert "'scale' must be one of 'paper', 'desk', 'laptop', 'smoke', got 'huge'" in unknown.stderr


def test_no_data_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    result = run("cifar10", "--store", str(tmp_path / "s.sqlite"))
    assert result.exit_code == 2
    assert "the folder that holds cifar-10-batches-py/" in result.stderr
    assert "EIGENCURVE_DATA" in result.stderr


def _rows(store, beginning):
    import sqlite3

    with sqlite3.connect(store.path) as connection:
        names = [name for (name,) in connection.execute("SELECT DISTINCT experiment FROM runs")]
    connection.close()
    return [row for name in names if name.startswith(beginning) for row in store.rows(name)]
