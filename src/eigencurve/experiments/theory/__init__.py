"""Tables and figures that need no training."""
