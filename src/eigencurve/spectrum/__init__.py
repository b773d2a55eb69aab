"""Eigenvalue spectra: values, files, groups, power laws and quadrature. NumPy and SciPy only."""
