"""The paper's two tables on ImageNet: Elastic Step Decay for ResNet-50, Cosine-power for ResNet-18."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eigencurve import _check
from eigencurve.experiments.data.folder import VARIABLE, data_folder
from eigencurve.experiments.data.imagenet import load_imagenet
from eigencurve.experiments.engine.protocol import search
from eigencurve.experiments.engine.request import Report, Request
from eigencurve.experiments.engine.winners import Row
from eigencurve.experiments.images import paper
from eigencurve.experiments.images.experiment import ImageData, ImageExperiment
from eigencurve.experiments.images.report import SHOWN, ImageReport, Section
from eigencurve.experiments.images.scales import SHRINKAGES, Grid, final_settings
from eigencurve.experiments.images.tables import log_folder
from eigencurve.experiments.training.launch import num_gpus

SELECTION_SEEDS = (100,)
ALPHAS = (0.5, 1.0, 2.0)
METRICS = ("loss", "accuracy", "top5")


@dataclass(frozen=True)
class ImageNetScale:
    """How large the ImageNet experiments are.

    Attributes:
        name: of the scale.
        num_train: training images, None for all, those for validation included.
        num_validation: of them, that r is chosen by.
        num_test: images to report on, None for all.
        divisor: of the networks' widths.
        crop: size of the images, and the shorter side before the middle is cut out.
        elastic_epochs: budget of the first table.
        power_epochs: budgets of the second.
        num_trials: of each row; of budgets from ``single_from`` epochs on in the second table, one.
        single_from: see there.
        batch_size: of every run.
    """

    name: str
    num_train: int | None
    num_validation: int
    num_test: int | None
    divisor: int
    crop: tuple[int, int]
    elastic_epochs: int
    power_epochs: tuple[int, ...]
    num_trials: int
    single_from: int
    batch_size: int


SCALES = {
    scale.name: scale
    for scale in (
        ImageNetScale("paper", None, 50_000, None, 1, (224, 256), 90, (1, 5, 30, 90, 270), 3, 90, 256),
        ImageNetScale("laptop", 5_000, 1_000, 2_000, 8, (64, 73), 9, (1, 3, 9), 3, 90, 64),
        ImageNetScale("smoke", 12, 4, 6, 16, (32, 36), 4, (1, 2), 2, 2, 6),
    )
}


def make_imagenet_elastic(request: Request) -> ImageReport:
    """ResNet-50: two step decays, cosine and Elastic Step Decay with r from a grid of two."""
    scale = _scale(request)
    budgets = [_check.whole("reproduce", "epochs", e, minimum=4) for e in request.epochs] or [scale.elastic_epochs]
    sections = []
    for epochs in budgets:
        base = _base(scale, "imagenet_resnet50", epochs)
        thirds = [epochs // 3, 2 * epochs // 3]
        steps = {"schedule": "multistep", "factor": 10.0}
        every: dict[str, Grid] = {
            paper.MULTISTEP2: [base | steps | {"milestones": thirds}],
            paper.MULTISTEP3: [base | steps | {"milestones": [*thirds, 8 * epochs // 9]}],
            paper.COSINE: [base | {"schedule": "cosine", "min_lr": 0.0}],
            paper.ELASTIC: [base | {"schedule": "elastic_step", "r": r} for r in SHRINKAGES],
        }
        rows = _rows(request, scale, every, scale.num_trials)
        published = paper.IMAGENET_ELASTIC if epochs == 90 else {}
        sections.append(Section(f"ResNet-50, {epochs} epochs", rows, published, METRICS))
    title = "ImageNet: Elastic Step Decay"
    return ImageReport("imagenet-elastic", title, _description(request, scale), sections, _about_steps(budgets))


def make_imagenet_cosine_power(request: Request) -> ImageReport:
    """ResNet-18: the square root, the first and the second power of cosine decay."""
    scale = _scale(request)
    budgets = [_check.whole("reproduce", "epochs", e, minimum=1) for e in request.epochs] or list(scale.power_epochs)
    sections = []
    for epochs in budgets:
        base = _base(scale, "imagenet_resnet18", epochs) | {"schedule": "cosine_power", "min_lr": 0.0}
        every = {_power(alpha): [base | {"alpha": alpha}] for alpha in ALPHAS}
        rows = _rows(request, scale, every, 1 if epochs >= scale.single_from else scale.num_trials)
        published = {_power(alpha): numbers for alpha, numbers in paper.COSINE_POWER.get(epochs, {}).items()}
        heading = f"ResNet-18, {epochs} epoch" + ("s" if epochs > 1 else "")
        sections.append(Section(heading, rows, published, METRICS))
    title, description = "ImageNet: powers of cosine decay", _description(request, scale)
    return ImageReport("imagenet-cosine-power", title, description, sections, [_tendency(sections)])


def _scale(request: Request) -> ImageNetScale:
    return SCALES[_check.choice("reproduce", "scale", request.scale, tuple(SCALES))]


def _data(request: Request, scale: ImageNetScale) -> ImageData:
    folder = request.data or data_folder()
    if folder is None:
        remedy = f"Or set {VARIABLE}."
        _check.refuse("reproduce", "data", "the folder that holds ImageNet's train/ and val/", None, remedy)
    train, val = load_imagenet(folder)
    return ImageData.chosen(train, val, scale.num_train, scale.num_validation, scale.num_test, scale.crop)


def _base(scale: ImageNetScale, model: str, epochs: int) -> dict[str, Any]:
    return {
        "model": model, "divisor": scale.divisor, "split": "validation", "epochs": epochs, "lr": 1.0,
        "batch_size": scale.batch_size, "momentum": 0.0, "weight_decay": 1e-4, "evaluate_every": 1,
    }  # fmt: skip


def _rows(request: Request, scale: ImageNetScale, every: Mapping[str, Grid], num_trials: int) -> list[Row]:
    folder = request.store.path.with_suffix(".checkpoints")
    folder.mkdir(parents=True, exist_ok=True)
    log = log_folder(request.store, scale.name)
    experiment = ImageExperiment(_data(request, scale), {}, folder, num_processes=num_gpus(), log=log)
    fresh = range(num_trials)
    findings = search(
        experiment, every, SELECTION_SEEDS, fresh, request.store, request.workers, request.progress, final_settings
    )
    return SHOWN.rows(experiment, findings, {name: len(grid) for name, grid in every.items()}, fresh, request.store)


def _description(request: Request, scale: ImageNetScale) -> list[str]:
    data = _data(request, scale)
    widths = "full widths" if scale.divisor == 1 else f"widths divided by {scale.divisor}"
    return [
        f"Scale: {scale.name}. {len(data.train):,} training and {len(data.test):,} test images of"
        f" {data.train.num_classes:,} classes at {scale.crop[0]} × {scale.crop[0]} pixels, networks of {widths}; SGD"
        f" without momentum, batch size {scale.batch_size}, weight decay 1e-4, initial rate 1.0. Where a schedule has"
        f" more than one setting, it is chosen by the accuracy on {data.num_validation:,} of the training images;"
        " trials are on all of them. Mean ± standard deviation over the trials; training loss is the mean cross"
        " entropy over the last epoch."
    ]


def _about_steps(budgets: list[int]) -> list[str]:
    if budgets == [90]:
        return []
    return ["[30-60] and [30-60-80] are epochs of 90; in other budgets the rate falls at the same fractions."]


def _power(alpha: float) -> str:
    return f"Cosine to the power {alpha:g}"


def _tendency(sections: list[Section]) -> str:
    """Which power is best at each budget, in a sentence."""
    best = [(section.heading, section.ranked("accuracy")) for section in sections]
    words = [f"{heading}: {rows[0].schedule if rows else 'all diverged'}" for heading, rows in best]
    paper_says = "In the paper small powers win short runs, and larger ones long runs."
    return f"The best by accuracy: {'; '.join(words)}. {paper_says}"


MAKERS: dict[str, Callable[[Request], Report]] = {
    "imagenet-elastic": make_imagenet_elastic,
    "imagenet-cosine-power": make_imagenet_cosine_power,
}
