"""Schedules in the trainers that people already have, one framework a file."""
