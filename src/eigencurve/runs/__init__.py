"""Finished training runs: what a run is, where its numbers come from, and the store that keeps them."""

from eigencurve.runs.exchange import add_runs, write_runs
from eigencurve.runs.origin import Origin, origin_here
from eigencurve.runs.store import DamagedStoreError, Outcome, Run, Store, StoreError, key_of

__all__ = [
    "DamagedStoreError", "Origin", "Outcome", "Run", "Store", "StoreError", "add_runs", "key_of", "origin_here",
    "write_runs",
]  # fmt: skip
