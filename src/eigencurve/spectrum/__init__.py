"""Eigenvalue spectra: the Spectrum class, files, groups, power laws and quadrature. NumPy and SciPy only."""
