"""What every adapter promises, and the driver through which the promise is tested.

A driver runs a REAL training loop of its framework and tells the rates that its optimizer really used, one per
update. It lives in ``drivers/<framework>.py``, begins with ``pytest.importorskip("<framework>")`` and ends with
``DRIVER = ...``. ``test_contract.py`` finds it there and holds it to every schedule.
"""

import importlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

import eigencurve as ec

Rates = list[float]
SPECTRUM = ec.prepare(ec.Spectrum([-0.1, 0.0, 0.02, 0.5, 30.0], [3, 40, 30, 5, 1]), weight_decay=1e-3)
LR = 0.25
# Every kind of schedule, some in several forms, for T steps in all.
SCHEDULES: dict[str, Callable[[int], ec.Schedule]] = {
    "constant": lambda T: ec.constant(T, LR),
    "inverse_time": lambda T: ec.inverse_time(T, LR, LR / 100),
    "exponential": lambda T: ec.exponential(T, LR, LR / 100),
    "cosine": lambda T: ec.cosine(T, LR, min_lr=LR / 50),
    "linear": lambda T: ec.linear(T, LR),
    "step_decay": lambda T: ec.step_decay(T, LR),
    "multistep": lambda T: ec.multistep(T, LR, [2, T - 1]),
    "hold_then_decay": lambda T: ec.hold_then_decay(T, LR, hold=3, every=2, factor=1.15),
    "cosine_power": lambda T: ec.cosine_power(T, LR, alpha=0.5),
    "elastic_step": lambda T: ec.elastic_step(T, LR),
    "piecewise": lambda T: ec.piecewise(T, [0, T / 2, T], [LR, LR / 2, LR / 30]),
    "eigencurve": lambda T: ec.eigencurve(SPECTRUM, T, LR),
    "eigencurve, last rate": lambda T: ec.eigencurve(SPECTRUM, T, LR, min_lr=LR / 1000),
    "eigencurve, limit": lambda T: ec.eigencurve(SPECTRUM, T, LR, beta=1),
    "warmup": lambda T: ec.warmup(ec.cosine(T - 3, LR), 3),
    "warmup, eigencurve": lambda T: ec.warmup(ec.eigencurve(SPECTRUM, T - 2, LR), 2),
    "join": lambda T: ec.join([ec.constant(2, LR), ec.linear(T - 2, LR / 2)]),
    "wsd": lambda T: ec.wsd(T, LR, decay_steps=3, warmup_steps=2),
}
# For what does not depend on the kind: a curve, a curve that rises first, and one that jumps.
FEW = ("eigencurve", "warmup, eigencurve", "join")


class Driver(ABC):
    """One framework's training loop, of any tiny model, on the CPU.

    Attributes:
        name: the adapter's name in the table of docs/adapters.md.
        rtol: by how much a rate may differ from f(t), relative: 0, or one rounding where rates are float32.
        skip: what a skipped mixed-precision step does to time: "goes on" (the next update has the rate of its own
            number among all tries) or "waits" (it has the rate that the skipped one would have had).
        not_applicable: name of a method -> why the framework has no such thing, in words of its row in
            docs/adapters.md.
    """

    name: ClassVar[str]
    rtol: ClassVar[float] = 0.0
    skip: ClassVar[str] = "goes on"
    not_applicable: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def rates(self, schedule: ec.Schedule, num_steps: int) -> Rates:
        """The rate of each of ``num_steps`` updates, some of them perhaps beyond the schedule's end."""

    @abstractmethod
    def rates_resumed(self, schedule: ec.Schedule, num_steps: int, stop_at: int) -> Rates:
        """The same, but saved to files after ``stop_at`` updates, everything built anew, loaded, and gone on."""

    @abstractmethod
    def rates_accumulating(self, schedule: ec.Schedule, num_updates: int, accumulation: int) -> Rates:
        """The rate of each update, every one of them from ``accumulation`` microbatches."""

    @abstractmethod
    def rates_groups(self, schedule: ec.Schedule, num_steps: int, ratios: Sequence[float]) -> list[Rates]:
        """The rates of all groups at each update; the groups' own initial rates have ``ratios`` to the first one's."""

    @abstractmethod
    def rates_skipping(self, schedule: ec.Schedule, num_steps: int, skipped: Sequence[int]) -> Rates:
        """The rates of the updates that happened out of ``num_steps`` tries, those in ``skipped`` having overflowed."""

    @abstractmethod
    def rates_extended(self, schedule: ec.Schedule, longer: ec.Schedule, num_steps: int, at: int) -> Rates:
        """Saved under ``schedule`` after ``at`` updates, resumed and, on purpose, gone on with ``longer``."""


def driver_names() -> list[str]:
    """The modules in drivers/, installed or not."""
    return sorted(path.stem for path in (Path(__file__).parent / "drivers").glob("[a-z]*.py"))


def load_driver(name: str) -> Driver:
    """The driver of one module; skips the test, saying so, where its framework is missing."""
    return importlib.import_module(f"tests.adapters.drivers.{name}").DRIVER


def drawn(*seed: str) -> np.random.Generator:
    """Random numbers that depend on the case's own names alone."""
    return np.random.default_rng(zlib.crc32(" ".join(seed).encode()))


def expected_when_skipping(driver: Driver, schedule: ec.Schedule, num_steps: int, skipped: Sequence[int]) -> Rates:
    """f at the number of each try that counted, or at the number of updates before it."""
    tries = [t for t in range(num_steps) if t not in skipped]
    return [schedule(t if driver.skip == "goes on" else k) for k, t in enumerate(tries)]
