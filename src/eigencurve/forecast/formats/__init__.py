"""Readers of training logs, one file format per module. Each turns the bytes of a file into a :class:`Log`."""
