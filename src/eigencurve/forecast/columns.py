"""The columns of a training log: which one holds the step, which the learning rate, and which the loss."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# In order of preference. W&B's own "_step" and "Step" count calls of its logger, so the trainer's count goes first.
STEPS = (
    "trainer/global_step", "train/global_step", "global_step", "step", "steps", "iteration", "iterations", "iter",
    "it", "_step",
)  # fmt: skip
RATE = re.compile(r"(.*/)?(lr|learning_rate|learning rate|base_lr|lr-[a-z0-9_]+(-\d+)?(/[a-z0-9_]+)?)|lr/.*")
LOSS = re.compile(r"(.*[/_. -])?(loss|nll|cross_entropy|crossentropy)([/_. -](step|epoch|mean|avg))?|loss/.*")
TRAINING = re.compile(r"(^|[/_. -])(train|training)([/_. -]|$)")
VALIDATION = re.compile(r"(^|[/_. -])(val|valid|validation|eval|evaluation|test|dev)([/_. -]|$)")


def step_name(names: Sequence[str]) -> str | None:
    """The column of steps, or None.

    >>> step_name(["epoch", "Step", "loss"])
    'Step'
    >>> step_name(["_step", "trainer/global_step"])
    'trainer/global_step'
    """
    by_name = {name.lower(): name for name in reversed(names)}
    return next((by_name[name] for name in STEPS if name in by_name), None)


def is_rate(name: str) -> bool:
    """Whether a column holds a learning rate.

    >>> [is_rate(name) for name in ("lr", "train/learning_rate", "lr-AdamW/pg1", "lr-SGD-momentum")]
    [True, True, True, False]
    """
    return RATE.fullmatch(name.lower()) is not None


def is_loss(name: str) -> bool:
    """Whether a column holds a loss.

    >>> [is_loss(name) for name in ("loss", "val_loss", "train/loss", "train_loss_step", "loss_scale")]
    [True, True, True, True, False]
    """
    return LOSS.fullmatch(name.lower()) is not None


def split_of(metric: str) -> str:
    """``"training"`` or ``"validation"``, if the name of a loss says so, or ``""``.

    >>> split_of("eval/loss"), split_of("train_loss_step"), split_of("loss")
    ('validation', 'training', '')
    """
    if VALIDATION.search(metric.lower()):
        return "validation"
    return "training" if TRAINING.search(metric.lower()) else ""


def named(wanted: str, names: Iterable[str]) -> str | None:
    """The column that a user calls ``wanted``: the same name, or the only one that differs in case alone."""
    options = list(names)
    if wanted in options:
        return wanted
    similar = [name for name in options if name.lower() == wanted.lower()]
    return similar[0] if len(similar) == 1 else None
