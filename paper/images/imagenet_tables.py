"""The paper's two tables on ImageNet: Elastic Step Decay for ResNet-50, Cosine-power for ResNet-18."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paper.data.folder import require_folder
from paper.data.imagenet import load_imagenet
from paper.engine.claims import ranked
from paper.engine.request import Request
from paper.engine.winners import GridSearch, Winner
from paper.images import paper
from paper.images.experiment import ImageData, image_experiment
from paper.images.report import REPORTED, ResultTable, image_page
from paper.images.scales import SHRINKAGES, Grid, final_settings
from paper.page import ResultsPage, epochs_text
from paper.training.devices import num_gpus

SELECTION_SEEDS = (100,)
ALPHAS = (0.5, 1.0, 2.0)
METRICS = ("loss", "accuracy", "top5")


@dataclass(frozen=True)
class ImageNetScale:
    """The size of the ImageNet experiments."""

    name: str  # name of the scale
    num_train: int | None  # number of training images, including those for validation; None for all
    num_validation: int  # number of training images that are held out to choose r
    num_test: int | None  # number of test images; None for all
    divisor: int  # divisor of the networks' widths
    crop: tuple[int, int]  # size of the images, and the shorter side before the centre crop
    elastic_epochs: int  # budget of the table on Elastic Step Decay
    power_epochs: tuple[int, ...]  # budgets of the table on Cosine-power
    num_trials: int  # number of trials per row
    single_from: int  # budget in epochs from which Cosine-power has a single trial per row
    batch_size: int  # batch size of every run


SCALES = {
    scale.name: scale
    for scale in (
        ImageNetScale("paper", None, 50_000, None, 1, (224, 256), 90, (1, 5, 30, 90, 270), 3, 90, 256),
        ImageNetScale("laptop", 5_000, 1_000, 2_000, 8, (64, 73), 9, (1, 3, 9), 3, 90, 64),
        ImageNetScale("smoke", 12, 4, 6, 16, (32, 36), 4, (1, 2), 2, 2, 6),
    )
}


def make_elastic(request: Request) -> ResultsPage:
    """ResNet-50 with two step decays, cosine decay, and Elastic Step Decay with r from a grid of two."""
    scale, data = _setup(request)
    budgets = request.budgets([scale.elastic_epochs], minimum=4)
    tables = []
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
        winners = _winners(request, data, every, scale.num_trials)
        published = paper.IMAGENET_ELASTIC if epochs == 90 else {}
        tables.append(ResultTable(f"ResNet-50, {epochs_text(epochs)}", winners, published, METRICS))
    other = "[30-60] and [30-60-80] are epochs of 90; at other budgets the rate drops at the same fractions of the run."
    notes = [] if budgets == [90] else [other]
    return image_page("imagenet-elastic", "ImageNet: Elastic Step Decay", _description(scale, data), tables, notes)


def make_cosine_power(request: Request) -> ResultsPage:
    """ResNet-18 with the square root, the first and the second power of cosine decay."""
    scale, data = _setup(request)
    tables = []
    for epochs in request.budgets(scale.power_epochs):
        base = _base(scale, "imagenet_resnet18", epochs) | {"schedule": "cosine_power", "min_lr": 0.0}
        every = {_power(alpha): [base | {"alpha": alpha}] for alpha in ALPHAS}
        winners = _winners(request, data, every, 1 if epochs >= scale.single_from else scale.num_trials)
        published = {_power(alpha): numbers for alpha, numbers in paper.COSINE_POWER.get(epochs, {}).items()}
        tables.append(ResultTable(f"ResNet-18, {epochs_text(epochs)}", winners, published, METRICS))
    title = "ImageNet: powers of cosine decay"
    return image_page("imagenet-cosine-power", title, _description(scale, data), tables, [_tendency(tables)])


def _setup(request: Request) -> tuple[ImageNetScale, ImageData]:
    scale = request.scale_of(SCALES)
    train, val = load_imagenet(require_folder(request.data, "ImageNet's train/ and val/"))
    return scale, ImageData.chosen(train, val, scale.num_train, scale.num_validation, scale.num_test, scale.crop)


def _base(scale: ImageNetScale, model: str, epochs: int) -> dict[str, Any]:
    return {
        "model": model, "divisor": scale.divisor, "split": "validation", "epochs": epochs, "lr": 1.0,
        "batch_size": scale.batch_size, "momentum": 0.0, "weight_decay": 1e-4, "evaluate_every": 1,
    }  # fmt: skip


def _winners(request: Request, data: ImageData, every: Mapping[str, Grid], num_trials: int) -> list[Winner]:
    experiment = image_experiment(data, {}, request.checkpoints, num_processes=num_gpus(), log=request.tensorboard)
    seeds = range(num_trials)
    return GridSearch(experiment, every, SELECTION_SEEDS, seeds, request, REPORTED, final_settings).winners()


def _description(scale: ImageNetScale, data: ImageData) -> list[str]:
    widths = "full widths" if scale.divisor == 1 else f"widths divided by {scale.divisor}"
    return [
        f"Scale: {scale.name}. {len(data.train):,} training and {len(data.test):,} test images of"
        f" {data.train.num_classes:,} classes at {scale.crop[0]} × {scale.crop[0]} pixels, networks with {widths}. SGD"
        f" without momentum, batch size {scale.batch_size}, weight decay 1e-4, initial rate 1.0. If a schedule has"
        f" several settings, they are chosen by the accuracy on {data.num_validation:,} of the training images; trials"
        " train on all of them. The tables show mean ± standard deviation over the trials. Training loss is the mean"
        " cross entropy over the last epoch."
    ]


def _power(alpha: float) -> str:
    return f"Cosine to the power {alpha:g}"


def _tendency(tables: Sequence[ResultTable]) -> str:
    """The best power at each budget, in a sentence."""
    best = {table.heading: ranked(table.trials("accuracy"), minimise=False) for table in tables}
    words = [f"{heading}: {names[0] if names else 'all diverged'}" for heading, names in best.items()]
    return f"Best by accuracy: {'; '.join(words)}. In the paper, small powers win short runs and larger ones long runs."
