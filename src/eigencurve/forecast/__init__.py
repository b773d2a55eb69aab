"""Logged training runs, and the noisy quadratic fitted to them. NumPy and SciPy only."""

from eigencurve.forecast.logs import load_run
from eigencurve.forecast.runs import LoggedRun

__all__ = ["LoggedRun", "load_run"]
