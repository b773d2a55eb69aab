"""Image classification under a schedule: the paper's experiments on CIFAR-10, CIFAR-100 and ImageNet."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eigencurve import Spectrum
from eigencurve.runs import Outcome, Run
from paper.arrays import IntArray
from paper.data.imagenet import CROP, SHORTER_SIDE, ImageFolder
from paper.data.images import ImageSet
from paper.images.task import CifarImages, ImageNetImages, Images, ImageTask, best_layout
from paper.models.registry import build
from paper.training.devices import own_device
from paper.training.loop import Trained, train
from paper.training.runs import TrainingRuns
from paper.training.settings import TrainingSettings, make_schedule

SPLIT_SEED = 0
Labelled = ImageSet | ImageFolder


@dataclass(frozen=True, eq=False)
class ImageData:
    """The images of an experiment."""

    train: Labelled  # all training images, including those for validation
    test: Labelled  # test images, on which results are reported
    num_validation: int  # number of training images that are held out to choose settings
    # For images in files: size of the crop, and shorter side of the image before the centre crop.
    crop: tuple[int, int] = (CROP, SHORTER_SIDE)

    @classmethod
    def chosen(
        cls, train: Labelled, test: Labelled, num_train: int | None, num_validation: int, num_test: int | None,
        crop: tuple[int, int] = (CROP, SHORTER_SIDE),
    ) -> ImageData:  # fmt: skip
        """A fixed random subset of the images; None takes all of them."""
        return cls(_some(train, num_train), _some(test, num_test), num_validation, crop)

    @cached_property
    def digest(self) -> str:
        """A hash of the images and the split."""
        text = f"{self.train.digest} {self.test.digest} {self.num_validation}"
        if isinstance(self.train, ImageFolder):
            text += f" {self.crop}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def name(self) -> str:
        """Name of the data and a hash of the pixels."""
        return f"{self.train.name}/{self.digest[:12]}"

    def split(self, name: str) -> tuple[Images, Images]:
        """Images to train on, and images to measure on.

        Args:
            name: ``"validation"`` holds out some of the training images to measure on; ``"test"`` trains on all of
                them and measures on the test images.
        """
        if name == "test":
            return self._images(self.train), self._images(self.test)
        order = np.random.default_rng(SPLIT_SEED).permutation(len(self.train))
        held_out, kept = order[: self.num_validation], order[self.num_validation :]
        return self._images(_part(self.train, kept)), self._images(_part(self.train, held_out))

    def _images(self, part: Labelled) -> Images:
        return CifarImages(part) if isinstance(part, ImageSet) else ImageNetImages(part, *self.crop)


def _some(images: Labelled, count: int | None) -> Labelled:
    if count is None or count >= len(images):
        return images
    return _part(images, np.random.default_rng(SPLIT_SEED).permutation(len(images))[:count])


def _part(images: Labelled, places: IntArray) -> Labelled:
    """The images at ``places``, in their original order."""
    return images.subset(torch.from_numpy(np.sort(places)))


def image_experiment(
    data: ImageData, spectra: Mapping[str, Spectrum] | None = None, folder: Path | None = None, num_processes: int = 1,
    log: Path | None = None,
) -> TrainingRuns:  # fmt: skip
    """Training runs on images; settings are chosen by accuracy.

    The settings of a run are ``model``, ``divisor`` of its widths, ``split``, ``epochs``, ``batch_size``,
    ``momentum``, ``weight_decay``, ``ema_decay``, ``evaluate_every``, ``precision``, and the schedule's own (see
    ``make_schedule``). With ``log``, each run writes to its own TensorBoard folder there.
    """
    train_one = partial(_train_one, data, spectra or {}, log)
    name = f"images/{data.name}"
    return TrainingRuns(name, train_one, "accuracy", minimise=False, folder=folder, num_processes=num_processes)


def _train_one(
    data: ImageData, spectra: Mapping[str, Spectrum], log: Path | None, run: Run, key: str, checkpoint: Path | None
) -> Outcome:
    own_log = None if log is None else log / key
    return outcome_of(train_images(data, run.settings, run.seed, spectra, key, checkpoint, own_log)[1])


def train_images(
    data: ImageData, settings: Mapping[str, Any], seed: int, spectra: Mapping[str, Spectrum], run: str = "",
    checkpoint: Path | None = None, log: Path | None = None,
) -> tuple[torch.nn.Module, Trained]:  # fmt: skip
    """Build the network that ``settings`` describe and train it, on a GPU if there is one."""
    device = own_device()
    model = build(settings["model"], data.train.num_classes, settings["divisor"], seed)
    layout = best_layout(model)
    model = model.to(device=device, memory_format=layout)  # type: ignore[call-overload]
    task = ImageTask(*data.split(settings["split"]), settings["batch_size"], seed, device, layout)
    schedule = make_schedule(settings, settings["epochs"] * task.steps_per_epoch, spectra)
    how = TrainingSettings(
        schedule, settings["epochs"], settings["momentum"], settings["weight_decay"], settings.get("ema_decay"),
        evaluate_every=settings["evaluate_every"], precision=settings.get("precision", "auto"),
    )  # fmt: skip
    return model, train(model, task, how, seed, run, checkpoint, log=log)


def outcome_of(trained: Trained) -> Outcome:
    """Final losses, accuracies in percent, and the curves of all measurements."""
    if trained.diverged:
        return Outcome({"num_steps": trained.num_steps}, diverged=True, curves=trained.history)
    last = trained.last
    metrics = {"loss": last["train_loss"], "accuracy": 100 * last["accuracy"], "top5": 100 * last["top5"],
               "test_loss": last["test_loss"]}  # fmt: skip
    return Outcome(metrics, curves=trained.history)
