"""No deadline for hypothesis here: the first example of a run may wait for the compiler."""

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
