"""Readers of the data sets, in the layouts that their authors publish."""
