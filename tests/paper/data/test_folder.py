from pathlib import Path

import pytest

from paper.data.folder import RESNET_CIFAR10, data_file, data_folder, published_spectrum, require_folder


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_there_is_no_folder(value, monkeypatch):
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("EIGENCURVE_DATA", value)
    assert data_folder() is None
    with pytest.raises(
        ValueError, match=r"'data' must be the folder that holds a4a, .*Pass --data or set EIGENCURVE_DATA"
    ):
        require_folder(None, "a4a")
    with pytest.raises(FileNotFoundError, match="a4a is missing: set EIGENCURVE_DATA"):
        data_file("a4a")


def test_a_folder_that_is_passed_wins_over_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("EIGENCURVE_DATA", "elsewhere")
    assert data_folder() == require_folder(None, "a4a") == Path("elsewhere")
    assert require_folder(tmp_path, "a4a") == tmp_path


def test_a_file_must_exist(tmp_path, monkeypatch):
    monkeypatch.setenv("EIGENCURVE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=rf"a4a is missing in {tmp_path}; EIGENCURVE_DATA or --data must name"):
        data_file("a4a")
    (tmp_path / "a4a").touch()
    assert data_file("a4a") == data_file("a4a", tmp_path) == tmp_path / "a4a"


def test_a_published_spectrum_is_read(data_path):
    folder = data_path(f"spectra/{RESNET_CIFAR10}").parent.parent
    assert len(published_spectrum(folder, RESNET_CIFAR10)) == 5000
    assert len(published_spectrum(None, RESNET_CIFAR10)) == 5000


def test_a_missing_folder_or_file_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    message = r"paper: 'data' must be the folder that holds spectra/.*Pass --data or set EIGENCURVE_DATA"
    with pytest.raises(ValueError, match=message):
        published_spectrum(None, RESNET_CIFAR10)
    with pytest.raises(FileNotFoundError, match=rf"{RESNET_CIFAR10} is missing"):
        published_spectrum(tmp_path, RESNET_CIFAR10)
