"""Forecasts of published training runs."""
