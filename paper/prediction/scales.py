"""Sizes of the study: how long, how often and at which rates each problem is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eigencurve import Schedule, Spectrum
from eigencurve.schedules.kinds import schedule_of_kind, usual_settings
from paper.prediction.problems import NetworkSize

KINDS = ("constant", "cosine", "linear", "wsd", "eigencurve")


@dataclass(frozen=True)
class Plan:
    """The runs of one problem."""

    total_steps: int  # number of steps T of every run; for ridge regression, a multiple of the number of rows
    rates: tuple[float, ...]  # initial rates that every schedule is run with
    shown_rate: float  # the one that is shown in detail
    num_seeds: int  # number of runs that are averaged
    seeds_together: int  # number of seeds that run at once
    # Number of sign vectors that the noise is measured with. Octaves of a small problem have few eigenvalues, so they
    # need more of them.
    num_samples: int = 8
    num_products: int = 100  # number of Hessian products for a spectrum
    num_steps: int = 60  # number of Lanczos steps for the noise and for the start


@dataclass(frozen=True)
class PredictionScale:
    """Size of the whole study."""

    plans: Mapping[str, Plan]  # plan of each problem, by name
    num_rows: int | None = None  # number of rows of a4a; None uses all
    num_images: int | None = None  # number of images for the last layer; None uses all
    network: NetworkSize = field(default_factory=NetworkSize)  # size of the network


@dataclass(frozen=True)
class Pair:
    """A schedule at a rate."""

    kind: str  # kind of the schedule
    rate: float  # its initial rate
    schedule: Schedule  # the schedule


FULL = PredictionScale({
    "ridge": Plan(4781, (0.1, 0.03, 0.01, 0.003), 0.03, num_seeds=100, seeds_together=10),
    "logistic": Plan(2000, (1.0, 0.3, 0.1, 0.03), 0.3, num_seeds=24, seeds_together=24),
    "last-layer": Plan(2000, (3.0, 1.0, 0.3, 0.1), 1.0, num_seeds=8, seeds_together=8),
    "network": Plan(600, (0.3, 0.1, 0.03, 0.01), 0.1, num_seeds=3, seeds_together=3, num_samples=2),
})  # fmt: skip
SMOKE = PredictionScale(
    {
        "ridge": Plan(100, (0.1, 0.03), 0.03, 4, 2, num_samples=2, num_products=12, num_steps=8),
        "logistic": Plan(40, (1.0, 0.3), 0.3, 3, 2, num_samples=1, num_products=12, num_steps=8),
        "last-layer": Plan(30, (3.0, 1.0), 1.0, 2, 2, num_samples=1, num_products=12, num_steps=8),
        "network": Plan(20, (0.3, 0.1), 0.1, 2, 1, num_samples=1, num_products=12, num_steps=8),
    },
    num_rows=100, num_images=200, network=NetworkSize(num_images=100, hidden=(8,), earlier_steps=30),
)  # fmt: skip
SCALES = {"paper": FULL, "desk": FULL, "laptop": FULL, "smoke": SMOKE}


def pairs_of(plan: Plan, spectrum: Spectrum) -> list[Pair]:
    """Every kind of schedule at every rate; Eigencurve is made for the given spectrum."""
    total = plan.total_steps
    return [
        Pair(kind, rate, schedule_of_kind(kind, total, rate, spectrum, **usual_settings(kind, rate)))
        for rate in plan.rates
        for kind in KINDS
    ]
