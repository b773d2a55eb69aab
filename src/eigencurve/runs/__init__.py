"""What a training run is, and the store that keeps finished runs."""
