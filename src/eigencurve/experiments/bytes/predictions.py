"""Predictions of held-back runs, committed before those runs were trained."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from eigencurve import _check

FILE = "predictions.json"


@dataclass(frozen=True)
class Predictions:
    """Predicted final validation losses.

    Attributes:
        made_by: How they were made: the method, and the runs that it was fitted to.
        losses: Loss in nats per byte, by schedule and peak rate.
    """

    made_by: str
    losses: Mapping[str, Mapping[float, float]]

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Predictions:
        """Predictions from plain values; JSON turns the rates into text.

        >>> Predictions.from_dict({"made_by": "a guess", "losses": {"Linear": {"0.003": 1.5}}}).losses["Linear"][0.003]
        1.5
        """
        losses = {
            schedule: {float(rate): _finite(loss) for rate, loss in rates.items()}
            for schedule, rates in fields["losses"].items()
        }
        return cls(str(fields["made_by"]), losses)


def committed_predictions(scale: str, path: Path | None = None) -> Predictions | None:
    """The committed predictions for a scale; None if there are none.

    Args:
        scale: Name of the scale.
        path: File to read instead of the one next to this module. It maps each scale to ``made_by`` and ``losses``.
    """
    source = files(__package__) / FILE if path is None else path
    if not source.is_file():
        return None
    fields = json.loads(source.read_text(encoding="utf-8")).get(scale)
    return None if fields is None else Predictions.from_dict(fields)


def _finite(loss: Any) -> float:
    number = float(loss)
    if not math.isfinite(number):
        _check.refuse("committed_predictions", "losses", "finite", loss)
    return number
