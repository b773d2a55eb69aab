"""Sizes of the transformer experiment, its schedules, and the parts of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The runs that a forecast is fitted to, those that it is tested on, and those of a second test.
FIRST, REST, AGAIN = "first", "rest", "again"
COSINE, EIGENCURVE, RECOMMENDATION = "Cosine to 0", "Eigencurve", "Recommendation"


@dataclass(frozen=True)
class ByteScale:
    """The network, the training, and what is compared."""

    name: str  # name of the scale
    divisor: int  # divisor of the widths of the heads
    context: int  # number of bytes per window
    batch_size: int  # number of windows per step
    epochs: int  # number of measurements of the validation loss
    steps_per_epoch: int  # number of steps between two measurements
    warmup_steps: int  # number of steps of linear warmup, before every schedule
    num_valid: int  # number of windows of each measurement
    rates: tuple[float, ...]  # peak rates, the usual one first
    num_seeds: int  # number of seeds of every schedule and rate
    num_rows: int  # number of windows on which the preconditioned Hessian is taken
    num_products: int  # largest number of Hessian products
    weight_decay: float = 0.1  # decoupled weight decay
    betas: tuple[float, float] = (0.9, 0.95)  # decay rates of AdamW's moments
    max_norm: float = 1.0  # largest norm of the gradient
    settle: float = 0.02  # tolerance at which the estimate of the spectrum stops early
    precision: str = "bfloat16"  # precision of the training (see TrainingSettings)

    @property
    def total_steps(self) -> int:
        """Number of steps of every run, including the warmup."""
        return self.epochs * self.steps_per_epoch


DESK_SCALE = ByteScale("desk", 1, 128, 12, 80, 25, 100, 128, (3e-3, 1e-3, 1e-2), 3, 96, 120)
SMOKE_SCALE = ByteScale("smoke", 20, 16, 4, 10, 2, 2, 4, (1e-2, 1e-3), 2, 4, 8)
SCALES = {scale.name: scale for scale in (DESK_SCALE, SMOKE_SCALE)}


def base_settings(scale: ByteScale) -> dict[str, Any]:
    """Settings that all runs share."""
    names = (
        "divisor", "context", "batch_size", "epochs", "steps_per_epoch", "warmup_steps", "num_valid", "weight_decay",
        "max_norm", "precision",
    )  # fmt: skip
    return {"model": "transformer", **{name: getattr(scale, name) for name in names}, "betas": list(scale.betas)}


def shapes(part: str, spectrum: str) -> dict[str, dict[str, Any]]:
    """The settings of each schedule of a part, besides the peak rate; a last rate is given as a share of the peak.

    A schedule that is added here adds its own runs; those in the store stay valid.
    """
    shares = (0.1, 0.2, 0.4)
    if part == FIRST:
        return {
            COSINE: {"schedule": "cosine", "last_share": 0.0},
            "Constant": {"schedule": "constant"},
            **{f"WSD, linear {share:.0%}": {"schedule": "wsd", "decay_share": share} for share in shares},
            "Cosine to 10%": {"schedule": "cosine", "last_share": 0.1},
            "Linear": {"schedule": "linear", "last_share": 0.0},
        }
    if part == AGAIN:
        return {
            "REX": {"schedule": "rex", "last_share": 0.0},
            "Polynomial, power 2": {"schedule": "polynomial", "last_share": 0.0, "power": 2.0},
            "WSD, linear 60%": {"schedule": "wsd", "decay_share": 0.6},
        }
    return {
        **{f"WSD, 1-sqrt {s:.0%}": {"schedule": "wsd", "decay_share": s, "tail": "1-sqrt"} for s in shares},
        "Elastic Step": {"schedule": "elastic_step", "r": 0.5},
        EIGENCURVE: {"schedule": "eigencurve", "last_share": 0.0, "spectrum": spectrum},
    }


def grids(scale: ByteScale, part: str, spectrum: str = "") -> dict[str, list[dict[str, Any]]]:
    """The settings of each schedule of a part, one per peak rate."""
    return {
        name: [_settings(scale, shape, rate) for rate in scale.rates] for name, shape in shapes(part, spectrum).items()
    }


def recommended_grid(scale: ByteScale, points: Mapping[float, Sequence[Sequence[float]]]) -> list[dict[str, Any]]:
    """The settings of the recommendation, whose points include its warmup, one per peak rate."""
    base = {**base_settings(scale), "warmup_steps": 0, "schedule": "points"}
    return [{**base, "points": [list(point) for point in points[rate]], "lr": rate} for rate in scale.rates]


def earlier_run_settings(scale: ByteScale) -> dict[str, Any]:
    """Settings of a run with cosine decay at the usual rate that ends with an estimate of the spectrum."""
    run = _settings(scale, shapes(FIRST, "")[COSINE], scale.rates[0])
    return {**run, "num_rows": scale.num_rows, "num_products": scale.num_products, "settle": scale.settle}


def _settings(scale: ByteScale, shape: dict[str, Any], rate: float) -> dict[str, Any]:
    own = {name: value for name, value in shape.items() if name != "last_share"}
    if "last_share" in shape:
        own["min_lr"] = rate * shape["last_share"]
    return {**base_settings(scale), **own, "lr": rate}
