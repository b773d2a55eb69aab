"""Learning-rate schedules: pure functions of the step, with units for their lengths. Only NumPy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
