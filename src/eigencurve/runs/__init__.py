"""Finished training runs: a run and its outcome, the origin of its numbers, and the store that keeps them."""

from eigencurve.runs.origin import Origin, origin_here
from eigencurve.runs.store import DamagedStoreError, Outcome, Run, Store, StoreError, key_of

__all__ = ["DamagedStoreError", "Origin", "Outcome", "Run", "Store", "StoreError", "key_of", "origin_here"]
