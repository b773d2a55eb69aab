"""Predictions of held-back runs by a forecast, committed before those runs were trained."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from eigencurve import Schedule, Spectrum, plan
from eigencurve.forecast import Forecast
from paper import checks
from paper.byte_text.experiment import schedule_of
from paper.byte_text.scales import RECOMMENDATION, ByteScale
from paper.engine.protocol import Settings
from paper.training.settings import points_of, through_points

FILE = "predictions.json"


class PredictedLoss(NamedTuple):
    """A predicted final validation loss in nats per byte, and the ends of its 80 % interval."""

    loss: float
    low: float
    high: float


@dataclass(frozen=True)
class Predictions:
    """Predicted losses, and the recommended schedule that the same forecast led to."""

    made_by: str  # how they were made: the method, and the runs that it was fitted to
    losses: Mapping[str, Mapping[float, PredictedLoss]]  # predicted final validation loss, by schedule and peak rate
    # Points of the recommended schedule, by peak rate; see `through_points`.
    recommended: Mapping[float, Sequence[Sequence[float]]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        losses = {name: {f"{r:g}": list(loss) for r, loss in rates.items()} for name, rates in self.losses.items()}
        recommended = {f"{rate:g}": [list(p) for p in points] for rate, points in self.recommended.items()}
        return {"made_by": self.made_by, "losses": losses, "recommended": recommended}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Predictions:
        """Predictions from plain values."""
        losses = {
            name: {float(rate): PredictedLoss(*map(_finite, loss)) for rate, loss in rates.items()}
            for name, rates in fields["losses"].items()
        }
        recommended = {float(rate): points for rate, points in fields["recommended"].items()}
        return cls(str(fields["made_by"]), losses, recommended)

    def file(self, scale: str) -> bytes:
        """The content of a file for :func:`committed_predictions`."""
        return (json.dumps({scale: self.to_dict()}, indent=1) + "\n").encode()


def committed_predictions(scale: str, path: Path | None = None) -> Predictions | None:
    """The committed predictions for a scale, by default from the file next to this module; None if there are none."""
    source = files(__package__) / FILE if path is None else path
    if not source.is_file():
        return None
    fields = json.loads(source.read_text(encoding="utf-8")).get(scale)
    return None if fields is None else Predictions.from_dict(fields)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        checks.refuse("committed_predictions", "losses", "finite", value)
    return number


def predict(
    forecast: Forecast, grids: Mapping[str, Sequence[Settings]], scale: ByteScale, spectra: Mapping[str, Spectrum],
    made_by: str,
) -> Predictions:  # fmt: skip
    """Predict the final losses of schedules, and of the plan that the forecast leads to."""
    losses = {
        name: {settings["lr"]: final_loss(forecast, schedule_of(settings, spectra)) for settings in grid}
        for name, grid in grids.items()
    }
    recommended = {rate: points_of(_planned(forecast, scale, rate)) for rate in scale.rates}
    losses[RECOMMENDATION] = {
        rate: final_loss(forecast, through_points(points, scale.total_steps, rate))
        for rate, points in recommended.items()
    }
    return Predictions(made_by, losses, recommended)


def final_loss(forecast: Forecast, schedule: Schedule) -> PredictedLoss:
    """The predicted loss at the end of a schedule."""
    prediction = forecast.predict(schedule, at=[schedule.total_steps])
    ends = (prediction.loss, prediction.low, prediction.high)
    return PredictedLoss(*(round(float(values[-1]), 6) for values in ends))


def _planned(forecast: Forecast, scale: ByteScale, rate: float) -> Schedule:
    planned = plan(forecast, total_steps=scale.total_steps, optimizer="adamw", lr=rate, warmup_steps=scale.warmup_steps)
    return planned.schedule
