"""Running grids of experiments: the search protocol, worker processes, progress, and the choice of winners."""
