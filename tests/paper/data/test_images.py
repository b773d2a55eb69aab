import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paper.data.images import ImageSet, crop_and_flip, normalise, random_words


def images(num=10, num_classes=3):
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (num, 3, 4, 4), dtype=torch.uint8, generator=generator)
    return ImageSet(pixels, torch.arange(num) % num_classes, num_classes, "random")


def test_subsets_keep_the_order_asked_for():
    part = images().subset([4, 1])
    assert part.labels.tolist() == [1, 1]
    assert torch.equal(part.images[1], images().images[1])


def test_the_digest_is_that_of_the_content():
    whole = images()
    assert ImageSet(whole.images, whole.labels, 3, "another name").digest == whole.digest
    assert ImageSet(whole.images, whole.labels.flip(0), 3, "random").digest != whole.digest
    changed = whole.images.clone()
    changed[0, 0, 0, 0] ^= 1
    assert ImageSet(changed, whole.labels, 3, "random").digest != whole.digest
    assert ImageSet(whole.images.reshape(10, 3, 2, 8), whole.labels, 3, "random").digest != whole.digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": torch.zeros(10, 3, 4, 4)}, r"'images' must be uint8 of shape .* got 'torch.float32"),
        ({"images": torch.zeros(10, 1, 4, 4, dtype=torch.uint8)}, r"'images' must be uint8"),
        ({"labels": torch.zeros(9, dtype=torch.int64)}, r"'labels' must be int64 of shape \(10,\)"),
        ({"labels": torch.arange(10)}, r"'labels' must be in 0 … 2, got 3. It is the label of image 3"),
    ],
)
def test_sets_that_do_not_fit_are_refused(change, message):
    whole = images()
    fields = {"images": whole.images, "labels": whole.labels, "num_classes": 3, "name": "x"} | change
    with pytest.raises(ValueError, match=message):
        ImageSet(**fields)


def random_images(num, height=32, width=32):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(1, 256, (num, 3, height, width), dtype=torch.uint8, generator=generator)


def all_versions(image, padding):
    """Every crop of the padded image and its mirror image, one after the other."""
    _, height, width = image.shape
    padded = np.zeros((3, height + 2 * padding, width + 2 * padding), dtype=np.uint8)
    padded[:, padding : padding + height, padding : padding + width] = image
    for top in range(2 * padding + 1):
        for left in range(2 * padding + 1):
            cut = padded[:, top : top + height, left : left + width]
            yield (top, left, False), cut
            yield (top, left, True), cut[:, :, ::-1]


def choices(images, found, padding):
    return [
        next(k for k, v in all_versions(a.numpy(), padding) if np.array_equal(v, b))
        for a, b in zip(images, found, strict=True)
    ]


@pytest.mark.parametrize(("height", "width"), [(32, 32), (5, 9)])
def test_every_image_is_a_crop_of_its_own_padded_image(height, width):
    images = random_images(12, height, width)
    found = crop_and_flip(images, torch.arange(12), seed=0, epoch=0, padding=2)
    assert len(set(choices(images, found, 2))) > 6


def test_all_places_are_as_likely_and_independent():
    image = random_images(1, 4, 4).expand(9000, -1, -1, -1)
    found = crop_and_flip(image, torch.arange(9000), seed=3, epoch=2, padding=1)
    versions = {v.tobytes(): k for k, v in all_versions(image[0].numpy(), 1)}
    counts = dict.fromkeys(versions.values(), 0)
    for cut in found.numpy():
        counts[versions[cut.tobytes()]] += 1
    chi_squared = sum((n - 500) ** 2 / 500 for n in counts.values())
    assert len(counts) == 18
    assert chi_squared < 40.8  # exceeded by 1 in 1,000 fair draws with 17 degrees of freedom


@given(st.permutations(range(8)), st.integers(1, 8), st.integers(0, 2**31), st.integers(0, 1000))
def test_an_example_does_not_depend_on_its_batch(order, cut, seed, epoch):
    images = random_images(8, 4, 4)
    whole = crop_and_flip(images, torch.arange(8), seed, epoch)
    for part in (order[:cut], order[cut:]):
        indices = torch.tensor(part, dtype=torch.int64)
        assert torch.equal(crop_and_flip(images[indices], indices, seed, epoch), whole[indices])


def test_seeds_and_epochs_draw_anew():
    indices = torch.arange(1000)
    words = [random_words(seed, epoch, indices) for seed, epoch in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert len(np.unique(np.concatenate(words))) == 4000
    bits = np.unpackbits(np.concatenate(words).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 4 * 0.5 / bits.size**0.5  # four standard errors


def test_normalisation_is_its_formula():
    images = random_images(2)
    found = normalise(images).double()
    mean, std = np.array([0.4914, 0.4822, 0.4465]), np.array([0.2023, 0.1994, 0.2010])
    expected = (images.numpy().transpose(0, 2, 3, 1) / 255 - mean) / std
    assert np.allclose(found.numpy().transpose(0, 2, 3, 1), expected, atol=1e-6)  # float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": -1}, "'seed' must be >= 0"),
        ({"epoch": -1}, "'epoch' must be >= 0"),
        ({"padding": -1}, "'padding' must be >= 0"),
        ({"indices": torch.arange(3)}, r"'indices' must be one for each of 2 images, got '3 indices'"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    arguments = {"images": random_images(2), "indices": torch.arange(2), "seed": 0, "epoch": 0} | change
    with pytest.raises(ValueError, match=message):
        crop_and_flip(**arguments)
