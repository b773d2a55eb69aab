"""Logged training runs, and the noisy quadratic fitted to them. NumPy and SciPy only."""

from typing import Any

from eigencurve._moved import moved
from eigencurve.forecast.best import BestSchedule
from eigencurve.forecast.fit import fit_runs
from eigencurve.forecast.forecast import Forecast, Prediction
from eigencurve.forecast.logs import load_run
from eigencurve.forecast.runs import LoggedRun

__all__ = ["BestSchedule", "Forecast", "LoggedRun", "Prediction", "fit_runs", "load_run"]


def __getattr__(name: str) -> Any:
    if name in ("ForecastRow", "ForecastTable"):
        new = name.replace("Forecast", "Comparison")
        return moved(f"eigencurve.forecast.{name}", f"eigencurve.schedules.comparison.{new}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
