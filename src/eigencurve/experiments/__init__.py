"""The paper's experiments and further studies; ``eigencurve reproduce NAME`` runs them."""
