"""The contract of all adapters, and the driver interface that tests it.

A driver runs a real training loop of its framework and returns the rates that the optimizer used, one per update. It
is in ``drivers/<framework>.py``, which begins with ``pytest.importorskip("<framework>")`` and ends with
``DRIVER = ...``. ``test_contract.py`` finds it there and tests it with every schedule.
"""

import importlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import eigencurve as ec

Rates = list[float]
SPECTRUM = ec.spectrum.prepare(ec.Spectrum([-0.1, 0.0, 0.02, 0.5, 30.0], [3, 40, 30, 5, 1]), weight_decay=1e-3)
LR = 0.25
# Every kind of schedule, some in several forms, for T steps in total.
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
    "join": lambda T: ec.schedules.join([ec.constant(2, LR), ec.linear(T - 2, LR / 2)]),
    "wsd": lambda T: ec.wsd(T, LR, decay_steps=3, warmup_steps=2),
    "wsd_cycles": lambda T: ec.wsd_cycles(T, LR, num_cycles=2, tail="1-sqrt"),
    "one_cycle": lambda T: ec.one_cycle(T, LR),
    "cooldown": lambda T: ec.cooldown(ec.constant(2, LR), T - 4, 4, shape="1-sqrt"),
    "over_tokens": lambda T: ec.over_tokens(ec.linear(2 * T - 4, LR), 2 * T - 4, [(0, 1), (4, 2)]),
    "polynomial": lambda T: ec.polynomial(T, LR, power=2.0),
    "inverse_sqrt": lambda T: ec.inverse_sqrt(T, LR, timescale=3),
    "rex": lambda T: ec.warmup(ec.rex(T - 2, LR), 2, shape="cosine"),
}
# For tests that do not depend on the kind: a curve, a curve with a warmup, and one with a jump.
FEW = ("eigencurve", "warmup, eigencurve", "join")


class Driver(ABC):
    """Training loop of one framework, with any tiny model, on the CPU.

    Attributes:
        name: Name of the adapter in the table of docs/adapters.md.
        rtol: Relative tolerance of a rate: 0, or one rounding if rates are float32.
        skip: Whether a step that mixed precision skips is "counted" (the next update gets the rate of the next step) or
            "not counted" (the next update gets the rate of the skipped step).
        not_applicable: Methods that the framework does not support, with the reason as in its row of docs/adapters.md.
    """

    name: ClassVar[str]
    rtol: ClassVar[float] = 0.0
    skip: ClassVar[str] = "counted"
    not_applicable: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def rates(self, schedule: ec.Schedule, num_steps: int) -> Rates:
        """Rate of each of ``num_steps`` updates, possibly beyond the end of the schedule."""

    def rates_resumed(self, schedule: ec.Schedule, num_steps: int, stop_at: int) -> Rates:
        """The same rates, but saved to files after ``stop_at`` updates, rebuilt from scratch, loaded and continued."""
        return self.resumed(schedule, schedule, num_steps, stop_at, "refuse")

    @abstractmethod
    def rates_accumulating(self, schedule: ec.Schedule, num_updates: int, accumulation: int) -> Rates:
        """Rate of each update, with ``accumulation`` microbatches per update."""

    @abstractmethod
    def rates_groups(self, schedule: ec.Schedule, num_steps: int, ratios: Sequence[float]) -> list[Rates]:
        """Rates of all groups at each update; the initial rates have ``ratios`` to that of the first group."""

    @abstractmethod
    def rates_skipping(self, schedule: ec.Schedule, num_steps: int, skipped: Sequence[int]) -> Rates:
        """Rates of the updates that happened in ``num_steps`` tries, if those in ``skipped`` overflow."""

    def rates_extended(self, schedule: ec.Schedule, longer: ec.Schedule, num_steps: int, at: int) -> Rates:
        """Rates of a run that is saved after ``at`` updates of ``schedule``, resumed and extended with ``longer``."""
        return self.resumed(schedule, longer, num_steps, at, "extend")

    def resumed(self, schedule: ec.Schedule, later: ec.Schedule, num_steps: int, stop_at: int, on_resume: str) -> Rates:
        """Rates of a run that is saved after ``stop_at`` updates of ``schedule`` and resumed with ``later``."""
        raise NotImplementedError


def driver_names() -> list[str]:
    """Names of the modules in drivers/, whether or not their framework is installed."""
    return sorted(path.stem for path in (Path(__file__).parent / "drivers").glob("[a-z]*.py"))


def load_driver(name: str) -> Driver:
    """Driver of one module; skips the test if its framework, or one that the framework needs, is missing."""
    try:
        return importlib.import_module(f"tests.adapters.drivers.{name}").DRIVER
    except ImportError as error:
        missing = _missing_package(error)
        if missing in (None, "eigencurve", "tests"):
            raise
        pytest.skip(f"{missing} is not installed")


def _missing_package(error: BaseException | None) -> str | None:
    """The package that could not be found, if that is why an import failed."""
    while error is not None and not (isinstance(error, ModuleNotFoundError) and error.name):
        error = error.__cause__ or error.__context__
    return None if error is None else error.name.partition(".")[0]


def drawn(*seed: str) -> np.random.Generator:
    """Random generator that depends only on the names of the case."""
    return np.random.default_rng(zlib.crc32(" ".join(seed).encode()))


def expected_when_skipping(driver: Driver, schedule: ec.Schedule, num_steps: int, skipped: Sequence[int]) -> Rates:
    """Rates of the updates that happen: f at the number of the try, or at the number of updates before it."""
    tries = [t for t in range(num_steps) if t not in skipped]
    return [schedule(t if driver.skip == "counted" else k) for k, t in enumerate(tries)]
