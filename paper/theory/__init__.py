"""Tables and figures of the theory, which need no training."""
