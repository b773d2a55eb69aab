"""Sizes of the CIFAR experiments: the paper's, one for a desk, one for a laptop, a smoke test; and their grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

from eigencurve.schedules.units import TYPICAL_STEPS

Grid = list[dict[str, Any]]

INITIAL_RATES = (1.0, 0.6, 0.3, 0.2, 0.1)
LAST_RATES = (0.01, 0.001, 0.0001, 0.0, None)  # None is the paper's "UNRESTRICTED"
INTERVALS = (3, 4, 5, "log T", "log T + 1")
FACTORS = (2.0, 5.0, 10.0)
SHRINKAGES = (0.5, 2**-0.5)
EMA_DECAYS = (0.9, 0.95, 0.99, 0.995, 0.999)
NETWORKS = ("resnet18", "googlenet", "vgg16")
TITLES = {"resnet18": "ResNet-18", "googlenet": "GoogLeNet", "vgg16": "VGG16"}


class Sizes(NamedTuple):
    """Numbers of images."""

    train: int | None  # number of training images, including those for validation; None for all
    validation: int  # number of training images that are held out to choose settings
    test: int | None  # number of test images; None for all


@dataclass(frozen=True)
class SpectrumScale:
    """How spectra are measured."""

    divisors: Mapping[str, int]  # divisor of each network's widths
    # For each network, the number of epochs (momentum 0.9, initial rate 0.1) and the epochs at which the rate is
    # divided by 10.
    training: Mapping[str, tuple[int, tuple[int, ...]]]
    num_images: int  # number of images on which the Hessian is taken
    num_products: int  # largest number of Hessian products
    settle: float | None  # tolerance at which `estimate_spectrum` stops early
    microbatch: int | None = None  # largest number of images in memory at a time; None for all


@dataclass(frozen=True)
class Scale:
    """The size of the CIFAR experiments."""

    name: str  # name of the scale
    images: Sizes  # numbers of images
    divisors: Mapping[str, int]  # divisor of each network's widths
    epochs: tuple[int, ...]  # budgets
    ema_epochs: int  # budget of the comparison with averaged weights
    num_trials: int  # number of fresh trials of each winner
    evaluate_every: int  # number of epochs between evaluations
    spectrum: SpectrumScale  # how spectra are measured
    few_images: Sizes  # numbers of images for measuring and for reusing spectra
    num_tries: int | None  # number of settings to try, the same for every schedule; None for the paper's whole grids
    networks: tuple[str, ...] = NETWORKS  # networks of the tables with all schedules
    reuse_networks: tuple[str, ...] = NETWORKS[1:]  # networks that are trained with ResNet-18's spectrum
    reuse_schedules: tuple[str, ...] = ()  # schedules of the table on reuse; empty for all
    # Settings that differ for the spectrum of a ResNet-18 of full width.
    unshrunk: Mapping[str, Any] = field(default_factory=lambda: {"divisor": 1})
    batch_size: int = 128  # batch size of every run
    weight_decay: float = 5e-4  # weight decay of every run, and of the schedules made from spectra
    precision: str = "auto"  # precision of the training (see TrainingSettings)


_ALL = Sizes(None, 5_000, None)
PAPER_SCALE = Scale(
    "paper", _ALL, dict.fromkeys(NETWORKS, 1), (10, 100), 100, 5, 1,
    SpectrumScale(
        {"resnet18": 16, "googlenet": 4, "vgg16": 8}, dict.fromkeys(NETWORKS, (180, (80, 120))), 200, 5_000, None
    ), _ALL, num_tries=None,
)  # fmt: skip
_NARROW = {"resnet18": 8, "googlenet": 16, "vgg16": 8}
# Multiples of the batch size 128, with and without the validation images. At a high rate, one update on a small last
# batch just before the evaluation costs tens of percentage points (see benchmarks/last_batch.py).
LAPTOP_SCALE = Scale(
    "laptop", Sizes(5_120, 1_024, 4_000), _NARROW, (10,), 10, 3, 2,
    SpectrumScale(
        _NARROW, {"resnet18": (15, (8, 12)), "googlenet": (15, (8, 12)), "vgg16": (40, (21, 32))}, 200, 120, 0.02
    ), Sizes(2_560, 512, 2_000), num_tries=4, networks=("resnet18",),
    reuse_schedules=("Cosine Decay", "Eigencurve", "Eigencurve, reused"),
    # A network of full width is slow: two epochs, 32 images, half as many products. At lr 0.1 it does not learn.
    unshrunk={"divisor": 1, "epochs": 2, "lr": 0.02, "milestones": [], "evaluate_every": 2, "num_images": 32,
              "num_products": 60, "microbatch": 16},
)  # fmt: skip
# 200 steps per epoch, or 160 without the validation images.
_DESK_SIZES = Sizes(25_600, 5_120, None)
DESK_SCALE = Scale(
    "desk", _DESK_SIZES, _NARROW, (10,), 10, 3, 2,
    SpectrumScale(_NARROW, dict.fromkeys(NETWORKS, (10, (5, 8))), 640, 120, 0.02, microbatch=128), _DESK_SIZES,
    num_tries=4, networks=("resnet18",), reuse_schedules=LAPTOP_SCALE.reuse_schedules, unshrunk=LAPTOP_SCALE.unshrunk,
    precision="bfloat16",
)  # fmt: skip
_TINY = dict.fromkeys(NETWORKS, 16)
SMOKE_SCALE = Scale(
    "smoke", Sizes(48, 16, 16), _TINY, (1,), 1, 2, 1,
    SpectrumScale(_TINY, dict.fromkeys(NETWORKS, (1, ())), 4, 12, None), Sizes(32, 16, 16), num_tries=2,
    networks=("resnet18",),
    reuse_schedules=("Cosine Decay", "Eigencurve", "Eigencurve, reused"), unshrunk={"num_products": 13}, batch_size=16,
)  # fmt: skip
SCALES = {scale.name: scale for scale in (PAPER_SCALE, DESK_SCALE, LAPTOP_SCALE, SMOKE_SCALE)}


def beta_for(epochs: int) -> float:
    """The paper's β: 2 for short runs, and 1.000005, which gives a smoother curve, for 100 epochs."""
    return 2.0 if epochs < 100 else 1.000005


def base_settings(scale: Scale, network: str, epochs: int) -> dict[str, Any]:
    """Settings that all runs of a network share, on the validation split.

    The usual precision is left out, because stores have runs from before it could be set.
    """
    precision = {} if scale.precision == "auto" else {"precision": scale.precision}
    return {
        "model": network, "divisor": scale.divisors[network], "split": "validation", "epochs": epochs,
        "batch_size": scale.batch_size, "momentum": 0.0, "weight_decay": scale.weight_decay,
        "evaluate_every": scale.evaluate_every, **precision,
    }  # fmt: skip


def final_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a trial: train on all training images and measure on the test images."""
    return {**settings, "split": "test"}


def grids(scale: Scale, network: str, epochs: int, spectrum: str, reused: str | None = None) -> dict[str, Grid]:
    """The settings to try, by schedule; ``reused`` names another network's spectrum, for a second Eigencurve."""
    base = base_settings(scale, network, epochs)
    curve = {"schedule": "eigencurve", "beta": beta_for(epochs)}
    rates = _initial_rates(scale)
    found = {
        "Inverse Time Decay": _rates(scale, base | {"schedule": "inverse_time"}, LAST_RATES[:3], 0.01, 0.001),
        "Step Decay": [
            base | {"schedule": "step_decay", "lr": lr, "intervals": "log T", "factor": 2.0} for lr in rates
        ],
        "General Step Decay": _general_steps(scale, base),
        "Cosine Decay": _rates(scale, base | {"schedule": "cosine"}, LAST_RATES[:4], 0.0, 0.01),
        "Eigencurve": _rates(scale, base | curve | {"spectrum": spectrum}, LAST_RATES, None, 0.0),
        "Elastic Step Decay": elastic_grid(scale, base),
        "Numerically best": [base | {"schedule": "best", "lr": lr, "spectrum": spectrum} for lr in rates],
    }
    if reused is not None:
        found["Eigencurve, reused"] = _rates(scale, base | curve | {"spectrum": reused}, LAST_RATES, None, 0.0)
    return found


def elastic_grid(scale: Scale, base: Mapping[str, Any]) -> Grid:
    """Elastic Step Decay with several initial rates and shrinkages r."""
    tries = _tries(scale, SHRINKAGES, *SHRINKAGES)
    return [{**base, "schedule": "elastic_step", "lr": lr, "r": r} for lr, r in tries]


def three_steps_grid(scale: Scale, base: Mapping[str, Any]) -> Grid:
    """The step decay that Elastic Step Decay is compared with: three equal intervals, factor 10."""
    rates = _initial_rates(scale)
    return [{**base, "schedule": "step_decay", "lr": lr, "intervals": 3, "factor": 10.0} for lr in rates]


def ema_grid(scale: Scale, base: Mapping[str, Any]) -> Grid:
    """Constant rates with several decays of the weight average."""
    tries = _tries(scale, EMA_DECAYS, 0.95, 0.99)
    return [{**base, "schedule": "constant", "lr": lr, "ema_decay": decay} for lr, decay in tries]


def _tries(scale: Scale, every: Sequence[Any], usual: Any, other: Any) -> list[tuple[float, Any]]:
    """All initial rates with all settings; or three rates with the usual setting, and the middle one with another."""
    few = [(0.6, usual), (0.3, usual), (0.1, usual), (0.3, other)]
    return [*product(INITIAL_RATES, every)] if scale.num_tries is None else few[: scale.num_tries]


def _initial_rates(scale: Scale) -> tuple[float, ...]:
    """Initial rates of a schedule that has nothing else to choose."""
    return INITIAL_RATES if scale.num_tries is None else (0.6, 0.3, 0.2, 0.1)[: scale.num_tries]


def _rates(scale: Scale, base: Mapping[str, Any], last: Sequence[float | None], usual: Any, other: Any) -> Grid:
    return [{**base, "lr": lr, "min_lr": final} for lr, final in _tries(scale, last, usual, other)]


def _general_steps(scale: Scale, base: Mapping[str, Any]) -> Grid:
    tries = _tries(scale, list(product(INTERVALS, FACTORS)), (3, 10.0), (5, 2.0))
    return [
        {**base, "schedule": "step_decay", "lr": lr, "intervals": count, "factor": factor}
        for lr, (count, factor) in tries
    ]


def spectrum_settings(scale: Scale, network: str) -> dict[str, Any]:
    """Settings of a network's training run and of the estimate of its spectrum afterwards."""
    how = scale.spectrum
    epochs, milestones = how.training[network]
    return {
        **base_settings(scale, network, epochs), "divisor": how.divisors[network], "split": "test",
        "momentum": 0.9, "schedule": "multistep", "lr": 0.1, "milestones": list(milestones), "factor": 10.0,
        "evaluate_every": epochs, **estimate_settings(how, TYPICAL_STEPS),
    }  # fmt: skip


def estimate_settings(how: SpectrumScale, total_steps: int) -> dict[str, Any]:
    """Settings of the estimate of a spectrum, for a schedule of ``total_steps``."""
    return {
        "num_images": how.num_images, "num_products": how.num_products, "settle": how.settle,
        "microbatch": how.microbatch, "schedule_steps": total_steps,
    }  # fmt: skip
