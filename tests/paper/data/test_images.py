import pytest
import torch

from paper.data.images import ImageSet


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
