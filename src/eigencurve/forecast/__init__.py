"""Logged training runs, and the noisy quadratic fitted to them. NumPy and SciPy only."""

from eigencurve.forecast.best import BestSchedule
from eigencurve.forecast.fit import fit_runs
from eigencurve.forecast.forecast import Forecast, ForecastRow, ForecastTable, Prediction
from eigencurve.forecast.logs import load_run
from eigencurve.forecast.runs import LoggedRun

__all__ = [
    "BestSchedule", "Forecast", "ForecastRow", "ForecastTable", "LoggedRun", "Prediction", "fit_runs", "load_run",
]  # fmt: skip
