"""The paper's theory in code: exact expected loss, bounds, the best schedule and its certificate."""
