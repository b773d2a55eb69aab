"""The paper's experiments, each behind one command."""
