"""Figures. Needs matplotlib: ``pip install eigencurve[plot]``."""
