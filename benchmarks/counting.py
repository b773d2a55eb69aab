"""How far the schedules of different random probes are from the exact one: ``python -m benchmarks.counting``.

For diagonal matrices with 20,000 known eigenvalues, prints the largest |ln(f/f_exact)| over four estimates of k Lanczos
steps from different probes, with every eigenvalue weighted by the probe and with converged eigenvalues counted. The
last columns are the errors that a single estimate reports, along its probe and across probes, and the median distance
between the schedules of two probes.
"""

from itertools import combinations

import numpy as np
from scipy import sparse

import eigencurve as ec
from eigencurve.hessian import estimate_spectrum
from eigencurve.spectrum.quadrature import sharpen

DIM, WEIGHT_DECAY, TOTAL_STEPS = 20_000, 5e-4, 39_100
NUM_PROBES = 4


def outliers(num, low, high, rng):
    return np.geomspace(low, high, num) * np.exp(rng.normal(0, 0.05, num))


def clusters(num, size, width, rng):
    """``num`` clusters of ``size`` eigenvalues each, with a relative standard deviation of ``width``."""
    return np.repeat(outliers(num, 0.05, 30, rng), size) * (1 + width * rng.standard_normal(num * size))


def matrices(rng):
    normal = 1e-3 * rng.standard_normal(DIM)
    log_normal = 1e-3 * np.exp(1.5 * rng.standard_normal(DIM))
    low = log_normal[log_normal < 0.04]
    return {
        "normal bulk, 40 outliers": np.concatenate((normal[40:], outliers(40, 0.01, 30, rng))),
        "the same, 10 of them negative": np.concatenate(
            (normal[40:], outliers(30, 0.01, 30, rng), -outliers(10, 0.01, 1, rng))
        ),
        "log-normal bulk, 40 outliers": np.concatenate((low, outliers(40, 0.06, 50, rng))),
        "power law 1.7, no gap": 1e-5 * (1 - rng.random(DIM)) ** (-1 / 0.7),
        "normal bulk and a second one": np.concatenate(
            (normal[2000:], rng.uniform(1, 2, 1960), outliers(40, 3, 60, rng))
        ),
        "20 outliers, each twice": np.concatenate((normal[40:], np.repeat(outliers(20, 0.01, 30, rng), 2))),
        "4 outliers, each ten times": np.concatenate((normal[40:], np.repeat(outliers(4, 0.05, 30, rng), 10))),
        "4 clusters of ten, 1e-4 wide": np.concatenate((normal[40:], clusters(4, 10, 1e-4, rng))),
        "4 clusters of ten, 1 % wide": np.concatenate((normal[40:], clusters(4, 10, 1e-2, rng))),
        "bulk with a hard edge, 40 outliers": np.concatenate(
            (rng.uniform(0, 0.05, DIM - 40), outliers(40, 0.1, 50, rng))
        ),
    }


def log_curve(spectrum):
    return np.log(ec.eigencurve(ec.spectrum.prepare(spectrum, WEIGHT_DECAY), TOTAL_STEPS, lr=1.0).values())


def row(eigenvalues, num_steps):
    exact = log_curve(ec.Spectrum(eigenvalues, np.ones(len(eigenvalues))))
    found = [
        estimate_spectrum(
            sparse.diags_array(eigenvalues), num_steps, seed=seed, settle=None, weight_decay=WEIGHT_DECAY,
            total_steps=TOTAL_STEPS, progress=False,
        )
        for seed in range(NUM_PROBES)
    ]  # fmt: skip
    plain = [log_curve(sharpen(estimate.alphas[0], estimate.betas[0], WEIGHT_DECAY)) for estimate in found]
    counted = [log_curve(estimate.spectrum) for estimate in found]
    errors = [max(np.abs(curve - exact).max() for curve in curves) for curves in (plain, counted)]
    pairs = np.median([np.abs(first - second).max() for first, second in combinations(counted, 2)])
    along, across = (
        np.median([getattr(estimate, name) for estimate in found])
        for name in ("schedule_change", "error_between_probes")
    )
    number = f"{np.median([len(estimate.counted) for estimate in found]):.0f}"
    return [*(f"{error:.3f}" for error in errors), number, *(f"{value:.3f}" for value in (along, pairs, across))]


def main():
    columns = [
        "spectrum", "k", "weighted by the probe", "counted", "number counted", "along one probe", "between probes",
        "across, predicted",
    ]  # fmt: skip
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for name, eigenvalues in matrices(np.random.default_rng(0)).items():
        for num_steps in (60, 100, 150):
            print("| " + " | ".join([name, str(num_steps), *row(eigenvalues, num_steps)]) + " |", flush=True)


if __name__ == "__main__":
    main()
