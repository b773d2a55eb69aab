"""Running grids of experiments: protocol, workers, progress, and the choice of winners."""
