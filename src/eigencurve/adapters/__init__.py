"""Schedules for existing trainers, one framework per file."""
