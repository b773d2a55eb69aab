"""Eigenvalue spectra: what they are, how they are measured, read and summarised. Only NumPy and SciPy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
