"""Time spent waiting for images, relative to the time spent training on them: ``python -m benchmarks.reading``.

CIFAR images are in memory; each batch is selected, cropped, flipped and normalised on the core that trains. ImageNet
images are JPEG files (generated here, 500 × 375 pixels) that another thread decodes. One thread trains.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

from paper.data.imagenet import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    TrainingCrop,
    list_images,
    read_batches,
)
from paper.data.images import ImageSet, crop_and_flip, normalise
from paper.models.registry import build

NUM_BATCHES = 12
CIFAR = (("resnet18", 16), ("resnet18", 8), ("resnet20", 1))
IMAGENET = (("imagenet_resnet18", 8), ("imagenet_resnet18", 4))


def training_step(name, num_classes, divisor):
    """A function that does one SGD step on a batch."""
    model = build(name, num_classes, divisor)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=5e-4)

    def step(images, labels):
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def waiting_and_training(batches, step):
    """Seconds spent waiting for the next batch, and seconds spent training; the first batch is a warm-up."""
    waiting = training = 0.0
    for number in range(NUM_BATCHES):
        begun = time.perf_counter()
        images, labels = next(batches)
        read = time.perf_counter()
        step(images, labels)
        if number:
            waiting, training = waiting + read - begun, training + time.perf_counter() - read
    return waiting, training


def from_memory(data, batch_size=128):
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(data)))
    for indices in order.split(batch_size):
        yield normalise(crop_and_flip(data.images[indices], indices, seed=0, epoch=0)), data.labels[indices]


def from_files(folder, batch_size=32):
    images = list_images(folder)
    order = torch.from_numpy(np.random.default_rng(0).integers(0, len(images), NUM_BATCHES * batch_size))
    view = TrainingCrop(seed=0, epoch=0)
    for batch, labels in read_batches(images, order.split(batch_size), view, num_threads=1):
        yield normalise(batch, IMAGENET_MEAN, IMAGENET_STD), labels


def write_files(folder, num=64):
    """Write JPEG files with about the size and detail of photographs."""
    rng = np.random.default_rng(0)
    for i in range(num):
        kind = Path(folder) / f"class{i % 8}"
        kind.mkdir(exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (94, 125, 3), dtype=np.uint8))
        coarse.resize((500, 375), Image.Resampling.BICUBIC).save(kind / f"{i}.JPEG", quality=90)


def show(title, waiting, training):
    times = (
        f"{waiting / (NUM_BATCHES - 1) * 1e3:6.1f} ms waiting, {training / (NUM_BATCHES - 1) * 1e3:7.1f} ms training"
    )
    print(f"{title:34s} {times}: {waiting / training:6.2%}")


def main():
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (10_000, 3, 32, 32), dtype=torch.uint8, generator=generator)
    data = ImageSet(pixels, torch.arange(10_000) % 10, 10, "random")
    print("32 × 32 images in memory, batches of 128, per batch:")
    for name, divisor in CIFAR:
        times = waiting_and_training(from_memory(data), training_step(name, 10, divisor))
        show(f"{name}, widths // {divisor}", *times)
    print("JPEG files of 500 × 375 pixels, batches of 32 at 224 × 224, one thread decodes, per batch:")
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        for name, divisor in IMAGENET:
            times = waiting_and_training(from_files(folder), training_step(name, 8, divisor))
            show(f"{name}, widths // {divisor}", *times)


if __name__ == "__main__":
    main()
