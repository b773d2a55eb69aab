"""The paper's experiments and further studies; ``python -m paper NAME`` runs them."""
