"""Learning-rate schedules: pure functions of the step. NumPy and SciPy only."""
