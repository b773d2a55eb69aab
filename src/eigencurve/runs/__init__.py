"""Finished training runs: what a run is, where its numbers come from, and the store that keeps them."""
