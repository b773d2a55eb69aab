"""Image classification under a schedule: the paper's experiments on CIFAR-10, CIFAR-100 and ImageNet."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eigencurve._arrays import IntArray
from eigencurve.experiments.data.imagenet import CROP, SHORTER_SIDE, ImageFolder
from eigencurve.experiments.data.images import ImageSet
from eigencurve.experiments.images.task import CifarImages, ImageNetImages, Images, ImageTask, best_layout
from eigencurve.experiments.models.registry import build
from eigencurve.experiments.training.checkpoint import TrainingCheckpoint
from eigencurve.experiments.training.launch import in_processes, own_device
from eigencurve.experiments.training.loop import Recipe, Trained, train
from eigencurve.experiments.training.schedules import make_schedule
from eigencurve.runs.store import Outcome, Run, key_of
from eigencurve.spectrum.spectrum import Spectrum

SPLIT_SEED = 0
Labelled = ImageSet | ImageFolder


@dataclass(frozen=True, eq=False)
class ImageData:
    """The images of an experiment, and the part of the training images that is for validation.

    Attributes:
        train: all training images.
        test: to report on.
        num_validation: how many of the training images settings are chosen by.
        crop: of images in files: the part's size, and the shorter side of the image that a middle is cut from.
    """

    train: Labelled
    test: Labelled
    num_validation: int
    crop: tuple[int, int] = (CROP, SHORTER_SIDE)

    @classmethod
    def chosen(
        cls, train: Labelled, test: Labelled, num_train: int | None, num_validation: int, num_test: int | None,
        crop: tuple[int, int] = (CROP, SHORTER_SIDE),
    ) -> ImageData:  # fmt: skip
        """So many of the images, at random but always the same; None for all."""
        return cls(_some(train, num_train), _some(test, num_test), num_validation, crop)

    @cached_property
    def digest(self) -> str:
        """Equal for equal images and split only."""
        text = f"{self.train.digest} {self.test.digest} {self.num_validation}"
        if isinstance(self.train, ImageFolder):
            text += f" {self.crop}"
        return hashlib.sha256(text.encode()).hexdigest()

    def split(self, name: str) -> tuple[Images, Images]:
        """``"validation"``: the training images without those for validation, and these. ``"test"``: all, and test."""
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
    """The images at these places, in the order that they had."""
    return images.subset(torch.from_numpy(np.sort(places)))


@dataclass(frozen=True, eq=False)
class ImageExperiment:
    """Training runs on images; the winner of a grid has the best accuracy.

    Settings are ``model``, ``divisor`` of its widths, ``split``, ``epochs``, ``batch_size``, ``momentum``,
    ``weight_decay``, ``ema_decay``, ``evaluate_every``, and the schedule's own (see ``make_schedule``).

    Attributes:
        data: the images.
        spectra: measured ones by the name that settings call them.
        folder: for the checkpoints of runs under way; None keeps none.
        num_threads: of a run; results are the same bit for bit with the same number of them.
        num_processes: that share each run, its batches divided among them.
        log: a folder for TensorBoard, in it one for each run; None writes nothing.
        metric: what the winner has most of.
        minimise: not.
    """

    data: ImageData
    spectra: Mapping[str, Spectrum] = field(default_factory=dict)
    folder: Path | None = None
    num_threads: int = 1
    num_processes: int = 1
    log: Path | None = None
    metric: str = "accuracy"
    minimise: bool = False

    @cached_property
    def name(self) -> str:
        """``images``, the data's name, and a hash of its pixels: other data are other runs."""
        return f"images/{self.data.train.name}/{self.data.digest[:12]}"

    def batches(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Every run by itself, the longest first."""
        return [[run] for run in sorted(runs, key=lambda run: -run.settings["epochs"])]

    def run(self, batch: Sequence[Run]) -> list[Outcome]:
        """Train; a run that was killed goes on from its checkpoint."""
        if self.num_processes > 1:
            return [in_processes(self.num_processes, self.run_one, run) for run in batch]
        return [self.run_one(run) for run in batch]

    def run_one(self, run: Run) -> Outcome:
        """One run, or this process's part of it."""
        key = key_of(self.name, run)
        path = None if self.folder is None else self.folder / f"{key}.pt"
        with threads(self.num_threads):
            log = None if self.log is None else self.log / key
            _, trained = train_images(self.data, run.settings, run.seed, self.spectra, key, path, log)
        if path is not None:
            TrainingCheckpoint(path, key).discard()
        return outcome_of(trained)


def train_images(
    data: ImageData,
    settings: Mapping[str, Any],
    seed: int,
    spectra: Mapping[str, Spectrum],
    run: str = "",
    checkpoint: Path | None = None,
    log: Path | None = None,
    progress: bool = False,
) -> tuple[torch.nn.Module, Trained]:
    """Build a network and train it as ``settings`` say, on a GPU where there is one; the network and its history."""
    device = own_device()
    model = build(settings["model"], data.train.num_classes, settings["divisor"], seed)
    layout = best_layout(model)
    model = model.to(device=device, memory_format=layout)  # type: ignore[call-overload]
    task = ImageTask(*data.split(settings["split"]), settings["batch_size"], seed, device, layout)
    schedule = make_schedule(settings, settings["epochs"] * task.steps_per_epoch, spectra)
    recipe = Recipe(
        schedule, settings["epochs"], settings["momentum"], settings["weight_decay"], settings.get("ema_decay"),
        evaluate_every=settings["evaluate_every"],
    )  # fmt: skip
    return model, train(model, task, recipe, seed, run, checkpoint, log=log, progress=progress)


def outcome_of(trained: Trained) -> Outcome:
    """Final training loss, accuracy in percent, and the curves of all that was measured."""
    if trained.diverged:
        return Outcome({"num_steps": trained.num_steps}, diverged=True, curves=trained.history)
    last = trained.last
    metrics = {"loss": last["train_loss"], "accuracy": 100 * last["accuracy"], "top5": 100 * last["top5"],
               "test_loss": last["test_loss"]}  # fmt: skip
    return Outcome(metrics, curves=trained.history)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads for PyTorch while the block lasts."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
