import math
import threading

import numpy as np
import pytest
import torch

pytest.importorskip("PIL", reason="Pillow is not installed")
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from paper.data.imagenet import (
    CenterCrop,
    TrainingCrop,
    list_images,
    load_imagenet,
    random_box,
    read_batches,
    read_image,
)

CLASSES = ("n01440764", "n01443537", "n02102040")


def write_images(folder, per_class=4, size=(40, 30)):
    """A folder of class folders with JPEG files of smooth random pictures."""
    rng = np.random.default_rng(0)
    for kind in CLASSES:
        (folder / kind).mkdir(parents=True)
        for i in range(per_class):
            coarse = Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8))
            coarse.resize(size, Image.Resampling.BILINEAR).save(folder / kind / f"{kind}_{i}.JPEG", quality=95)
    return folder


@pytest.fixture
def folder(tmp_path):
    write_images(tmp_path / "train")
    write_images(tmp_path / "val", per_class=2)
    return tmp_path


def test_classes_are_numbered_by_the_alphabet(folder):
    train, val = load_imagenet(folder)
    assert (len(train), len(val), train.classes, train.num_classes) == (12, 6, CLASSES, 3)
    assert train.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert all(file.startswith(CLASSES[label]) for file, label in zip(train.files, train.labels.tolist(), strict=True))
    assert train.subset([5, 0]).labels.tolist() == [1, 0]
    assert train.digest == list_images(folder / "train").digest != train.subset(range(11)).digest


def test_hidden_files_are_passed_over(folder):
    (folder / "train" / CLASSES[0] / ".DS_Store").write_bytes(b"x")
    (folder / "train" / ".git").mkdir()
    assert len(load_imagenet(folder)[0]) == 12


def test_validation_images_are_the_middle():
    pixels = np.random.default_rng(0).integers(0, 256, (256, 401, 3), dtype=np.uint8)
    found = np.asarray(CenterCrop()(Image.fromarray(pixels), 0))
    assert np.array_equal(found, pixels[16:240, 88:312])  # nothing to scale; half a pixel goes to the even side


def test_validation_images_are_scaled_first():
    # 512 × 300 scales to 436 × 256; the picture is a ramp, so every pixel tells where it comes from.
    ramp = np.broadcast_to(np.round(np.arange(512) / 512 * 250), (300, 512))
    image = Image.fromarray(np.repeat(ramp[:, :, None], 3, axis=2).astype(np.uint8))
    found = np.asarray(CenterCrop()(image, 0), dtype=float)
    columns = (np.arange(224) + 106 + 0.5) / 436 * 512 - 0.5
    errors = found[100, :, 0] - columns / 512 * 250
    assert abs(errors).max() <= 1.01  # bytes are rounded twice
    assert abs(errors.mean()) < 0.1  # a pixel to the side would be 0.57


@given(st.integers(1, 600), st.integers(1, 600), st.integers(0, 1000))
def test_boxes_are_inside_the_image(width, height, seed):
    left, top, right, bottom = random_box(width, height, np.random.default_rng(seed))
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height
    # Sides are rounded to whole pixels, so small boxes may leave the range by that much.
    low, high = ((right - left - 1) / (bottom - top + 1), (right - left + 1) / max(bottom - top - 1, 0.5))
    assert low <= 4 / 3
    assert high >= 3 / 4


def test_areas_and_aspects_are_spread_over_their_ranges():
    rng = np.random.default_rng(0)
    boxes = np.array([random_box(2000, 2000, rng) for _ in range(3000)])
    across, down = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    areas, aspects = across * down / 2000**2, np.log(across / down)
    assert areas.min() == pytest.approx(0.08, abs=0.01)
    assert areas.max() > 0.95
    assert abs(aspects).max() == pytest.approx(math.log(4 / 3), abs=0.01)
    assert aspects.mean() == pytest.approx(0, abs=0.015)  # a standard error of 0.003, and room for rejected boxes
    assert boxes[:, 0].mean() == pytest.approx((2000 - across.mean()) / 2, rel=0.06)


def test_images_too_long_for_any_part_give_their_middle():
    assert random_box(1000, 3, np.random.default_rng(0)) == (498, 0, 502, 3)
    assert random_box(3, 1000, np.random.default_rng(0)) == (0, 498, 3, 502)


def test_training_images_depend_on_seed_epoch_and_index_alone(folder):
    train, _ = load_imagenet(folder)
    view = TrainingCrop(seed=1, epoch=2, size=16)

    def read(batches, threads):
        found = list(read_batches(train, map(torch.tensor, batches), view, num_threads=threads))
        return torch.cat([x for x, _ in found]), torch.cat([y for _, y in found])

    images, labels = read([range(12)], 1)
    assert images.shape == (12, 3, 16, 16)
    assert images.dtype == torch.uint8
    assert labels.tolist() == train.labels.tolist()
    order = [[3, 11], [0, 7, 5], [2], [1, 4, 6, 8, 9, 10]]
    again, _ = read(order, 3)
    assert torch.equal(again, images[[i for batch in order for i in batch]])
    for other in (TrainingCrop(1, 3, 16), TrainingCrop(2, 2, 16)):
        assert not torch.equal(torch.from_numpy(read_image(train.root / train.files[0], other, 0)), images[0])


def test_about_half_of_the_training_images_are_mirrored():
    ramp = Image.fromarray(np.repeat(np.broadcast_to(np.arange(64) * 3, (64, 64))[:, :, None], 3, 2).astype(np.uint8))
    views = [np.asarray(TrainingCrop(0, 0, 8)(ramp, i), dtype=int) for i in range(400)]
    mirrored = np.mean([view[0, -1, 0] < view[0, 0, 0] for view in views])
    assert abs(mirrored - 0.5) < 4 * 0.5 / 20  # four standard errors


def test_reading_works_ahead_and_no_further(folder):
    train, _ = load_imagenet(folder)
    taken = []

    def batches():
        for i in range(12):
            taken.append(i)
            yield torch.tensor([i])

    reader = read_batches(train, batches(), CenterCrop(8, 8), num_threads=1, num_ahead=3)
    next(reader)
    assert taken == [0, 1, 2, 3]
    next(reader)
    assert taken == [0, 1, 2, 3, 4]
    reader.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("read_batches")]


@pytest.mark.parametrize("content", [b"", b"not an image", "cut"])
def test_a_file_that_is_not_an_image_is_named(folder, content):
    path = folder / "train" / CLASSES[1] / f"{CLASSES[1]}_2.JPEG"
    path.write_bytes(path.read_bytes()[:400] if content == "cut" else content)
    train, _ = load_imagenet(folder)
    with pytest.raises(ValueError, match=rf"{path.name} must be an image, got one that cannot be decoded"):
        list(read_batches(train, [torch.arange(12)], CenterCrop(8, 8), num_threads=2))


def test_grey_and_transparent_images_are_read_as_colours(tmp_path):
    for mode in ("L", "RGBA", "P", "CMYK"):
        path = tmp_path / ("x.jpg" if mode == "CMYK" else "x.png")
        Image.new(mode, (10, 12)).save(path)
        assert read_image(path, CenterCrop(8, 8), 0).shape == (3, 8, 8)


@pytest.mark.parametrize(("width", "height"), [(8000, 1), (1, 8000), (9000, 8000)])
def test_a_small_file_of_a_huge_image_is_refused(tmp_path, width, height):
    Image.new("1", (width, height)).save(tmp_path / "x.png")
    need = "at most 64 megapixels whose sides differ by at most a factor of 100"
    with pytest.raises(ValueError, match=rf"x\.png must be an image of {need}, got {width} × {height}"):
        read_image(tmp_path / "x.png", CenterCrop(), 0)


def test_folders_that_do_not_fit_are_refused_by_name(folder):
    with pytest.raises(FileNotFoundError, match="nowhere/train is missing"):
        load_imagenet(folder / "nowhere")
    (folder / "val" / "n09999999").mkdir()
    with pytest.raises(ValueError, match=r"images for every class, got '.*n09999999'. It has none"):
        load_imagenet(folder)
    Image.new("RGB", (9, 9)).save(folder / "val" / "n09999999" / "a.JPEG")
    with pytest.raises(ValueError, match=r"have the same classes, got \['n09999999'\]"):
        load_imagenet(folder)
    (folder / "train" / CLASSES[0] / "notes.txt").write_text("x")
    with pytest.raises(ValueError, match=r"one of images only, got '.*notes.txt'"):
        load_imagenet(folder)
    (folder / "empty" / "train").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"a folder of class folders, got '.*train'"):
        load_imagenet(folder / "empty")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TrainingCrop(0, 0, size=0), "TrainingCrop: 'size' must be >= 1"),
        (lambda: TrainingCrop(-1, 0), "TrainingCrop: 'seed' must be >= 0"),
        (lambda: CenterCrop(size=300), "CenterCrop: 'size' must be <= shorter = 256"),
        (lambda: read_batches(None, [], None, num_threads=0), "'num_threads' must be >= 1"),
        (lambda: read_batches(None, [], None, num_ahead=0), "'num_ahead' must be >= 1"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
