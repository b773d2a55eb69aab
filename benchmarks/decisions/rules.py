"""The rules that decide: ``plan``, fixed shapes, and what people do by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.decisions.knowledge import Knowledge
from benchmarks.decisions.shapes import SHAPES, schedule_of, with_warmup

import eigencurve as ec

Rule = Callable[[Knowledge], ec.Schedule]


def plan(known: Knowledge) -> ec.Schedule:
    """What ``ec.plan`` recommends."""
    task = known.task
    settings = {"total_steps": task.total_steps, "warmup_steps": task.warmup_steps}
    optimizer = {"muon": "adamw"}.get(task.optimizer, task.optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if known.spectrum is not None:
            more = {"momentum": task.momentum, "nesterov": task.nesterov} if task.optimizer == "sgd" else {}
            return ec.plan(known.spectrum, lr=known.lr, **settings, **more).schedule
        return ec.plan(*known.runs, lr=known.lr, optimizer=optimizer, **settings).schedule


def fixed(shape: str, known: Knowledge) -> ec.Schedule:
    """One shape, at the rate in use or at that of the run that ended lowest."""
    lr = best_log(known)[1] if known.lr is None else known.lr
    return schedule_of(known.task, shape, known.task.total_steps, lr)


def again(known: Knowledge) -> ec.Schedule:
    """The known run that ended lowest, in twice the time."""
    shape, lr = best_log(known)
    return schedule_of(known.task, shape, known.task.total_steps, lr)


def eigencurve(known: Knowledge) -> ec.Schedule:
    """The paper's schedule from the measured spectrum, ended at a hundredth of the peak rate."""
    task = known.task
    prepared = ec.spectrum.prepare(ec.load_spectrum(known.spectrum), weight_decay=task.weight_decay or 5e-4)
    steps = task.total_steps - task.warmup_steps
    return with_warmup(task, ec.eigencurve(prepared, steps, known.lr, min_lr=known.lr / 100))


def best_log(known: Knowledge) -> tuple[str, float]:
    """Shape and rate of the known run with the lowest final validation loss."""
    return min(known.logs, key=lambda log: known.final_loss(*log))


FIXED = {shape: partial(fixed, shape) for shape in SHAPES if shape != "constant"}
RULES: Mapping[str, Mapping[str, Rule]] = {
    "rate": FIXED,
    "one log": {"plan": plan, **FIXED},
    "two logs": {"plan": plan, "again": again, **FIXED},
    "several rates": {"plan": plan, "again": again, **FIXED},
    "spectrum": {"plan": plan, "eigencurve": eigencurve, **FIXED},
    "spectrum and log": {"eigencurve": eigencurve, **FIXED},
}
