import hashlib
import io
import pickle
import tarfile
from dataclasses import replace

import pytest
import torch
from tests.paper.data.cifar_files import batch, mapping, pixels_and_labels, write_cifar10, write_cifar100
from tests.paper.data.hostile import Runs

from paper.data.cifar import CIFAR10, CIFAR100, download, load_cifar


def test_cifar10_as_it_was_written(tmp_path):
    inner = write_cifar10(tmp_path)
    train, test = load_cifar(tmp_path)
    assert (len(train), len(test), train.num_classes, train.name) == (20, 4, 10, "CIFAR-10")
    pixels, labels = pixels_and_labels(4, 10, seed=2)  # the third batch
    assert torch.equal(train.images[8:12].flatten(1), torch.from_numpy(pixels))
    assert train.labels[8:12].tolist() == labels
    assert torch.equal(load_cifar(inner)[1].images, test.images)


def test_cifar100_as_it_was_written(tmp_path):
    write_cifar100(tmp_path)
    train, test = load_cifar(tmp_path, CIFAR100)
    assert (len(train), len(test), train.num_classes) == (12, 5, 100)
    assert test.labels.tolist() == pixels_and_labels(5, 100, seed=1)[1]


def test_pixels_are_red_then_green_then_blue_by_rows(tmp_path):
    inner = write_cifar10(tmp_path)
    train, _ = load_cifar(inner)
    row = pixels_and_labels(4, 10, seed=0)[0][1]
    assert train.images[1, 2, 5, 7] == row[2 * 1024 + 5 * 32 + 7]


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_would_run_code_is_refused_and_runs_nothing(tmp_path, protocol):
    inner = write_cifar10(tmp_path)
    (inner / "data_batch_3").write_bytes(pickle.dumps({"data": Runs(tmp_path / "ran")}, protocol))
    with pytest.raises(
        ValueError, match=r"data_batch_3 must be .* got one that names \w+\.mkdir; nothing was executed"
    ):
        load_cifar(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_truncated_batch_is_refused(tmp_path):
    inner = write_cifar10(tmp_path)
    whole = (inner / "data_batch_2").read_bytes()
    (inner / "data_batch_2").write_bytes(whole[:5000])
    with pytest.raises(ValueError, match=r"load_cifar: .*data_batch_2 must be a whole pickle, got .* again"):
        load_cifar(tmp_path)


@pytest.mark.parametrize(
    ("num", "labels", "message"),
    [
        (4, [1, 2, 3], r"test_batch must be a batch with a list of 4 'labels', got 3 labels"),
        (4, [1, 2, 3, 10], r"test_batch must be a batch with labels in 0 … 9, got 10 for image 3"),
        (4, [1, -2, 3, 0], r"test_batch must be .* got -2 for image 1"),
        (3, [1, 2, 3], r"test_batch must be a batch of 4 images, as batches.meta says, got 3 images"),
    ],
)
def test_batches_that_do_not_fit_are_refused(tmp_path, num, labels, message):
    inner = write_cifar10(tmp_path)
    (inner / "test_batch").write_bytes(batch(pixels_and_labels(num, 10, 0)[0], labels, "labels"))
    with pytest.raises(ValueError, match=message):
        load_cifar(tmp_path)


def test_batches_without_pixels_are_refused(tmp_path):
    inner = write_cifar10(tmp_path)
    (inner / "test_batch").write_bytes(mapping({"labels": b"]"}))
    with pytest.raises(ValueError, match=r"'data' is uint8 of shape \(n, 3072\), got NoneType"):
        load_cifar(tmp_path)
    (inner / "test_batch").write_bytes(pickle.dumps([1]))
    with pytest.raises(ValueError, match=r"must be a pickled dictionary, got list"):
        load_cifar(tmp_path)


def test_missing_files_are_named(tmp_path):
    inner = write_cifar10(tmp_path)
    (inner / "data_batch_4").unlink()
    with pytest.raises(FileNotFoundError, match=r"load_cifar: .*data_batch_4 is missing"):
        load_cifar(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"load_cifar: .*meta is missing"):
        load_cifar(tmp_path, CIFAR100)


def packed(folder, path):
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, folder.name)
        tar.addfile(tarfile.TarInfo("../escaped"), io.BytesIO())
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


@pytest.mark.parametrize(("cifar", "write"), [(CIFAR10, write_cifar10), (CIFAR100, write_cifar100)])
def test_downloads_and_takes_out_only_the_files_it_reads(tmp_path, serve, cifar, write):
    folder = write(tmp_path / "theirs")
    (folder / "readme.html").write_text("hello")
    archive = tmp_path / f"{folder.name}.tar.gz"
    digest = packed(folder, archive)
    url, asked = serve({"/cifar.tar.gz": archive.read_bytes()})
    published = replace(cifar, url=f"{url}/cifar.tar.gz", md5=digest)
    for _ in range(2):
        download(published, tmp_path / "mine")
    assert asked == ["/cifar.tar.gz"]
    assert load_cifar(tmp_path / "mine", cifar)[0].digest == load_cifar(folder, cifar)[0].digest
    assert not (tmp_path / "mine" / folder.name / "readme.html").exists()
    assert not (tmp_path / "escaped").exists()


def test_another_archive_is_refused(tmp_path, serve):
    url, _ = serve({"/cifar.tar.gz": b"something else"})
    with pytest.raises(ValueError, match=r"'md5' must be that of the download from .* expected c58f"):
        download(replace(CIFAR10, url=f"{url}/cifar.tar.gz"), tmp_path)
    assert list(tmp_path.iterdir()) == []
