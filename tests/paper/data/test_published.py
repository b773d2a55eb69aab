import pytest

from paper.data.published import RESNET_CIFAR10, published_spectrum


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
