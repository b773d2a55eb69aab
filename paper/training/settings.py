"""How to train: the optimizer, and the schedule, from plain settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import nn

from eigencurve import NoisyQuadratic, Schedule, Spectrum, piecewise
from eigencurve.schedules.base import require_schedule
from eigencurve.schedules.kinds import own_settings, schedule_of_kind
from eigencurve.spectrum import prepare
from eigencurve.theory.optimal import knots_for
from paper import checks

OPTIMIZERS = ("sgd", "adamw")
# Each precision in the words of a results page.
PRECISION_WORDS = {
    "auto": "float32, or mixed precision on a GPU",
    "float32": "float32",
    "bfloat16": "bfloat16 mixed precision",
}
NUM_KNOTS = 512
NUM_POINTS = 128


@dataclass(frozen=True)
class TrainingSettings:
    r"""How to train: :math:`v \leftarrow mv + g + \delta w`, :math:`w \leftarrow w - f(t) v`, or by AdamW.

    AdamW decouples its weight decay: with the bias-corrected moments m and v of the gradient,
    :math:`w \leftarrow w - f(t) (m / (\sqrt v + 10^{-8}) + \delta w)`.
    """

    schedule: Schedule  # learning-rate schedule f, with one rate per step of the run
    epochs: int  # number of epochs
    momentum: float = 0.0  # momentum m of SGD
    weight_decay: float = 0.0  # weight decay δ
    # Decay α of the averaged weights w̄ ← α w̄ + (1 - α) w, which are then evaluated; None evaluates the weights.
    ema_decay: float | None = None
    # Largest norm of the gradient; a larger gradient is scaled down. None disables clipping.
    max_norm: float | None = None
    # Precision of the forward and backward pass. `"float32"` is full precision; `"bfloat16"` is mixed precision on
    # any device, with weights, updates and evaluations in float32; `"auto"` is mixed precision on a CUDA device and
    # float32 elsewhere.
    precision: str = "auto"
    evaluate_every: int = 1  # number of epochs between evaluations; the last epoch is always evaluated
    optimizer: str = "sgd"  # `"sgd"` or `"adamw"`
    betas: tuple[float, float] = (0.9, 0.999)  # decay rates of AdamW's first and second moment

    def __post_init__(self) -> None:
        checks.choice("TrainingSettings", "optimizer", self.optimizer, OPTIMIZERS)
        checks.choice("TrainingSettings", "precision", self.precision, tuple(PRECISION_WORDS))
        checks.whole("TrainingSettings", "epochs", self.epochs, minimum=1)
        checks.whole("TrainingSettings", "evaluate_every", self.evaluate_every, minimum=1)
        require_schedule("TrainingSettings", self.schedule)
        for name in ("momentum", "weight_decay"):
            checks.at_least("TrainingSettings", name, getattr(self, name), 0.0)
        if self.ema_decay is not None and not 0 <= self.ema_decay < 1:
            checks.refuse("TrainingSettings", "ema_decay", "at least 0 and below 1", self.ema_decay)
        if self.max_norm is not None:
            checks.positive("TrainingSettings", "max_norm", self.max_norm)
        if self.optimizer == "adamw" and self.momentum:
            remedy = "Its first moment has the decay rate betas[0]."
            checks.refuse("TrainingSettings", "momentum", "0 for AdamW", self.momentum, remedy)

    def make_optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """A new optimizer of ``parameters``, at the first rate of the schedule."""
        rate = self.schedule(0)
        if self.optimizer == "adamw":
            return torch.optim.AdamW(parameters, lr=rate, betas=self.betas, weight_decay=self.weight_decay)
        return torch.optim.SGD(parameters, lr=rate, momentum=self.momentum, weight_decay=self.weight_decay)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.__dict__, "schedule": self.schedule.to_dict()}


def make_schedule(settings: Mapping[str, Any], total_steps: int, spectra: Mapping[str, Spectrum]) -> Schedule:
    """The schedule that ``settings`` name, over ``total_steps``.

    Args:
        settings: ``schedule``, ``lr``, and the schedule's own settings. ``spectrum`` names one of ``spectra``;
            ``points`` are those of :func:`through_points`, whose kind is ``"points"``; ``decay_share`` is the share of
            the steps that the decay of ``"wsd"`` takes. With ``warmup_steps``, a linear warmup precedes the schedule.
        total_steps: Total number of steps T.
        spectra: Measured spectra, signed, by name.
    """
    kind, lr = settings["schedule"], settings["lr"]
    if kind == "best":
        return best_schedule(_prepared(settings, spectra), total_steps, lr)
    if kind == "points":
        return through_points(settings["points"], total_steps, lr)
    spectrum = _prepared(settings, spectra) if kind == "eigencurve" else None
    own = own_settings(kind, settings)
    if kind == "step_decay":
        own["num_intervals"] = num_intervals(settings["intervals"], total_steps)
    if kind == "wsd":
        own["decay_steps"] = max(1, round(settings["decay_share"] * total_steps))
        own.update({"tail": settings["tail"]} if "tail" in settings else {})
    if kind == "multistep":
        per_epoch = total_steps // settings["epochs"]
        own["milestones"] = [epoch * per_epoch for epoch in settings["milestones"] if epoch < settings["epochs"]]
    return schedule_of_kind(kind, total_steps, lr, spectrum, settings.get("warmup_steps", 0), **own)


def num_intervals(intervals: int | str, total_steps: int) -> int:
    """The number of intervals: ``"log T"`` means ⌊log2 T⌋ (at least 1), ``"log T + 1"`` one more.

    >>> num_intervals("log T + 1", 39_100)
    16
    """
    base = max(1, math.floor(math.log2(total_steps)))
    return {"log T": base, "log T + 1": base + 1}[intervals] if isinstance(intervals, str) else intervals


def through_points(points: Sequence[Sequence[float]], total_steps: int, lr: float) -> Schedule:
    """Straight lines through points (fraction of the run, share of ``lr``), for a schedule that settings spell out.

    >>> through_points([(0.0, 1.0), (0.5, 1.0), (1.0, 0.0)], 5, lr=0.2).values()
    array([0.2, 0.2, 0.2, 0.1, 0. ])
    """
    places, shares = zip(*points, strict=True)
    steps = np.arange(total_steps, dtype=np.float64)
    return piecewise(total_steps, steps, lr * np.interp(steps / max(1, total_steps - 1), places, shares))


def points_of(schedule: Schedule) -> list[tuple[float, float]]:
    """A schedule as points for :func:`through_points`, as many as describe it well.

    >>> from eigencurve import linear
    >>> points_of(linear(5, 0.1, 0.02))
    [(0.0, 1.0), (0.25, 0.84), (0.5, 0.68), (0.75, 0.52), (1.0, 0.36)]
    """
    steps = schedule.total_steps
    knots = knots_for(steps, NUM_POINTS)
    rates = schedule(knots)
    last = max(1, steps - 1)
    shares = rates / rates.max()
    return [(round(float(k) / last, 6), round(float(s), 6)) for k, s in zip(knots, shares, strict=True)]


def best_schedule(prepared: Spectrum, total_steps: int, lr: float) -> Schedule:
    """The numerically best schedule for the quadratic loss with this spectrum, scaled to the largest rate ``lr``.

    The search assumes noise σ² = 1 and initial error 1 in every direction, and rates up to 1/L.
    """
    knots, rates = _best_curve(prepared, total_steps)
    largest = max(rates)
    return piecewise(total_steps, knots, [lr * rate / largest for rate in rates])


def _prepared(settings: Mapping[str, Any], spectra: Mapping[str, Spectrum]) -> Spectrum:
    return prepare(spectra[settings["spectrum"]], settings["weight_decay"])


@lru_cache(maxsize=8)
def _best_curve(prepared: Spectrum, total_steps: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    found = NoisyQuadratic(prepared).search_best(total_steps, max_lr=1 / prepared.L)
    knots = knots_for(total_steps, NUM_KNOTS)
    return tuple(knots.astype(float).tolist()), tuple(found.schedule(knots).tolist())
