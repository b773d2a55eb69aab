"""Does a measured noisy quadratic predict real training? Ridge and softmax regression, and a small network."""
