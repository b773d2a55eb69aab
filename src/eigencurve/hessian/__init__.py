"""Hessian and Gauss-Newton products of PyTorch models, and the spectra that Lanczos finds with them."""
