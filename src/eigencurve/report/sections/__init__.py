"""The parts of a report, one a module: each explains what it shows before it shows it."""
