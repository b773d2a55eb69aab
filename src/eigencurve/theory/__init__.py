"""The paper's theory as numbers: exact expected loss, bounds, the best schedule and its certificate."""
