"""Logged training runs, and the noisy quadratic fitted to them. NumPy and SciPy only."""

from eigencurve.forecast.runs import LoggedRun

__all__ = ["LoggedRun"]
