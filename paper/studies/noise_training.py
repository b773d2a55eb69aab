"""The networks of the noise study: their data, and their states at the start, after a tenth, a half and at the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.swa_utils import update_bn

from eigencurve import Schedule, cosine, warmup
from paper.byte_text.task import EpochTask
from paper.data.cifar import CIFAR10, load_cifar
from paper.data.folder import data_file
from paper.data.ptb import read_bytes, windows_at
from paper.images.experiment import ImageData
from paper.images.task import ImageTask, best_layout
from paper.models.registry import build
from paper.models.resnet import CHECKPOINT, cifar_batch, load_npz
from paper.models.transformer import CONTEXT, NUM_BYTES, next_byte_loss
from paper.training.loop import train
from paper.training.settings import TrainingSettings
from paper.training.task import Part, Task

SEED = 0
START, TENTH, HALF, END = MOMENTS = ("start", "a tenth", "a half", "end")
# Batches whose mean gives the batch norm statistics of a network that has not been trained.
NUM_CALIBRATING = 4


@dataclass(frozen=True)
class Subject:
    """A network and how it is trained and measured."""

    name: str  # name of its files, and of its spectrum in the zoo
    title: str  # name on the page
    network: str  # name of the network, a key of `MODELS`
    divisor: int  # divisor of its widths
    lr: float  # peak learning rate of a cosine decay to zero
    weight_decay: float  # weight decay of the training, and of the schedules made from the spectrum
    batch_size: int  # number of examples per step
    num_train: int  # number of training images, or of windows of the training text; 0 takes the whole text
    num_curved: int  # number of examples of the Hessian and of the gradient noise
    num_noisy: int  # number of examples of the noise in the comparison with more of them
    epochs: int = 10  # number of epochs, a multiple of 10; 0 for weights from a file, which were trained elsewhere
    optimizer: str = "sgd"  # `"sgd"`, with momentum 0.9, or `"adamw"`
    rise: float = 0.0  # share of the steps in which the rate rises
    max_norm: float | None = None  # largest norm of the gradient in training; None disables clipping
    num_test: int = 2000  # number of test examples

    @property
    def moments(self) -> tuple[str, ...]:
        """The moments at which there are weights."""
        return MOMENTS if self.epochs else (START, END)

    def key(self, data: str) -> str:
        """Hash of the training settings and of the data; the files of other settings have other names."""
        measuring = ("title", "num_curved", "num_noisy")
        settings = {name: value for name, value in asdict(self).items() if name not in measuring}
        return hashlib.sha256(json.dumps([settings, data, SEED], sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, eq=False)
class Problem:
    """What a network is trained and measured on."""

    digest: str  # hash of the data
    loss: Callable[[Tensor, Tensor], Tensor]  # `loss(model(x), y)`, the mean over a batch
    # Function that returns the first n training examples (x, y), without augmentation.
    examples: Callable[[int], tuple[Tensor, Tensor]]
    task: Task | None = None  # training task; None for weights from a file
    weights: Path | None = None  # file of trained weights, instead


@dataclass(frozen=True, eq=False)
class State:
    """A network at one moment of its training."""

    moment: str  # one of `MOMENTS`
    step: int  # number of steps taken; -1 if unknown
    model: nn.Module  # the network, in eval mode
    optimizer: torch.optim.Optimizer | None  # the optimizer with its state; None for weights from a file
    metrics: Mapping[str, float]  # last measurements of the training run, such as `accuracy`


def problem_of(subject: Subject, data: Path | None) -> Problem:
    """The data of a subject.

    Raises:
        FileNotFoundError: A file is missing.
    """
    if subject.network == "transformer":
        return _text_problem(subject, data)
    return _image_problem(subject, data) if subject.epochs else _checkpoint_problem(data)


def _image_problem(subject: Subject, data: Path | None) -> Problem:
    folder = data_file(CIFAR10.folder, data).parent
    chosen = ImageData.chosen(*load_cifar(folder), subject.num_train, 0, subject.num_test)
    train_images, test_images = chosen.split("test")
    layout = best_layout(build(subject.network, 10, subject.divisor))

    def examples(count: int) -> tuple[Tensor, Tensor]:
        images, labels = next(iter(train_images.plain([torch.arange(count)])))
        return images.to(memory_format=layout), labels

    task = ImageTask(train_images, test_images, subject.batch_size, SEED, layout=layout)
    return Problem(chosen.digest, F.cross_entropy, examples, task)


def _checkpoint_problem(data: Path | None) -> Problem:
    weights = data_file(CHECKPOINT, data)
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    return Problem(digest, F.cross_entropy, partial(cifar_batch, data), weights=weights)


def _text_problem(subject: Subject, data: Path | None) -> Problem:
    files = [data_file(f"ptb/ptb.{part}.txt", data) for part in ("valid", "test")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    training, other = (read_bytes(file) for file in files)
    training = training[: subject.num_train * CONTEXT or None]
    task = EpochTask(training, other, CONTEXT, subject.batch_size, SEED, num_test=subject.num_test)

    def examples(count: int) -> tuple[Tensor, Tensor]:
        starts = torch.linspace(0, len(training) - CONTEXT - 1, subject.num_noisy).long()
        order = torch.randperm(len(starts), generator=torch.Generator().manual_seed(SEED))
        return windows_at(training, starts[order[:count]], CONTEXT)

    return Problem(digest, next_byte_loss, examples, task)


def schedule_for(subject: Subject, total_steps: int) -> Schedule:
    """The schedule of the training run: cosine decay to zero, after a linear rise."""
    rise = round(subject.rise * total_steps)
    return warmup(cosine(total_steps - rise, subject.lr), rise)


def settings_for(subject: Subject, total_steps: int) -> TrainingSettings:
    """The settings of the training run."""
    return TrainingSettings(
        schedule_for(subject, total_steps), subject.epochs, momentum=0.9 if subject.optimizer == "sgd" else 0.0,
        weight_decay=subject.weight_decay, max_norm=subject.max_norm, optimizer=subject.optimizer,
    )  # fmt: skip


def train_subject(subject: Subject, problem: Problem, folder: Path, progress: bool = False) -> dict[str, Path]:
    """Train a network unless that was done before, and return the files of its states, by moment.

    A run that was killed resumes from its checkpoint.
    """
    stem = f"{subject.name}_{subject.key(problem.digest)}"
    epochs = {0: START, subject.epochs // 10: TENTH, subject.epochs // 2: HALF, subject.epochs: END}
    files = {moment: folder / f"{stem}_{moment.replace(' ', '_')}.pt" for moment in epochs.values()}
    if all(file.exists() for file in files.values()):
        return files
    assert problem.task is not None
    checkpoint = folder / f"{stem}.pt"
    snapshots = {epoch: files[moment] for epoch, moment in epochs.items()}
    how = settings_for(subject, subject.epochs * problem.task.steps_per_epoch)
    model = fresh_model(subject)
    train(model, problem.task, how, SEED, stem, checkpoint, progress=progress, snapshots=snapshots)
    checkpoint.unlink()
    return files


def fresh_model(subject: Subject) -> nn.Module:
    """The network with new weights, in the memory layout of its data."""
    classes = NUM_BYTES if subject.network == "transformer" else 10
    model = build(subject.network, classes, subject.divisor, SEED)
    placed: nn.Module = model.to(memory_format=best_layout(model))  # type: ignore[call-overload]
    return placed


def state_at(subject: Subject, problem: Problem, files: Mapping[str, Path], moment: str) -> State:
    """The network at ``moment``; before training, batch norm gets the statistics of a few training batches.

    A new network has means 0 and variances 1, with which the layers do not normalise in eval mode.
    """
    model = fresh_model(subject).eval()
    if problem.weights is not None:
        if moment == END:
            load_npz(model, problem.weights)
        else:
            update_bn([problem.examples(NUM_CALIBRATING * subject.batch_size)[0]], model)
        return State(moment, 0 if moment == START else -1, model, None, {})
    assert problem.task is not None
    saved = torch.load(files[moment], map_location="cpu", weights_only=True)
    model.load_state_dict(saved["model"])
    how = settings_for(subject, subject.epochs * problem.task.steps_per_epoch)
    optimizer = how.make_optimizer(model.parameters())
    optimizer.load_state_dict(saved["optimizer"])
    history = json.loads(saved["history"])
    if moment == START:
        batches = islice(problem.task.batches(0, 0, Part()), NUM_CALIBRATING)
        update_bn([batch.content[0] for batch in batches], model)
    return State(moment, saved["step"], model, optimizer, {name: pairs[-1][1] for name, pairs in history.items()})


@dataclass(frozen=True)
class NoiseScale:
    """The size of the study."""

    subjects: tuple[Subject, ...]  # the networks
    num_products: int  # number of products of a spectrum
    num_noise_steps: int  # number of products for each vector of the noise
    num_samples: int  # number of sign vectors
    fewer: tuple[str, ...]  # names of the subjects that are measured again at the end with a quarter of the examples
    # Names of the subjects that are measured again at the end with more examples for the noise alone.
    noisier: tuple[str, ...]


DESK = NoiseScale(
    (
        Subject("resnet18_cifar10_narrow8", "ResNet-18, 1/8 of its widths", "resnet18", 8, lr=0.1, weight_decay=5e-4,
                batch_size=128, num_train=25_600, num_curved=128, num_noisy=1024),
        Subject("vgg16_cifar10_narrow8", "VGG16, 1/8 of its widths", "vgg16", 8, lr=0.05, weight_decay=5e-4,
                batch_size=128, num_train=25_600, num_curved=256, num_noisy=1024),
        Subject("googlenet_cifar10_narrow16", "GoogLeNet, 1/16 of its widths", "googlenet", 16, lr=0.1,
                weight_decay=5e-4, batch_size=128, num_train=12_800, num_curved=64, num_noisy=1024),
        Subject("resnet20_cifar10", "ResNet-20, trained elsewhere", "resnet20", 1, lr=0.1, weight_decay=5e-4,
                batch_size=128, num_train=0, num_curved=256, num_noisy=1024, epochs=0),
        Subject("transformer_ptb_adamw", "Transformer, AdamW", "transformer", 1, lr=3e-3, weight_decay=0.1,
                batch_size=16, num_train=0, num_curved=16, num_noisy=256, optimizer="adamw", rise=0.05, max_norm=1.0,
                num_test=256),
        Subject("transformer_ptb_sgd", "Transformer, SGD", "transformer", 1, lr=0.2, weight_decay=5e-4,
                batch_size=16, num_train=0, num_curved=16, num_noisy=256, rise=0.05, max_norm=1.0, num_test=256),
    ),
    num_products=100, num_noise_steps=40, num_samples=2,
    fewer=("resnet18_cifar10_narrow8", "vgg16_cifar10_narrow8", "resnet20_cifar10"),
    noisier=("resnet18_cifar10_narrow8", "vgg16_cifar10_narrow8", "resnet20_cifar10"),
)  # fmt: skip
_SMALL = {"resnet18": 16, "vgg16": 64, "googlenet": 16, "resnet20": 1, "transformer": 5}
SMOKE = NoiseScale(
    tuple(
        replace(
            subject, divisor=_SMALL[subject.network], batch_size=8, num_train=16, num_curved=4, num_noisy=8, num_test=4
        )
        for subject in DESK.subjects
    ),
    num_products=6, num_noise_steps=6, num_samples=2, fewer=("resnet18_cifar10_narrow8",),
    noisier=("resnet18_cifar10_narrow8",),
)  # fmt: skip


def noise_scale(name: str) -> NoiseScale:
    """The smoke test, or the desk machine's scale for every other name: the paper has no such study."""
    return SMOKE if name == "smoke" else DESK
