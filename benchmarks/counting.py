"""How far the schedules of different random probes are from the exact one: ``python -m benchmarks.counting``.

For diagonal matrices with 20,000 known eigenvalues, prints the largest |ln(f/f_exact)| over four probes of k Lanczos
steps, with every eigenvalue weighted by the probe and with converged eigenvalues counted. The last column is the error
across probes that a single estimate predicts, next to the one observed between pairs of probes.
"""

from itertools import combinations

import numpy as np
from tests.reference.lanczos import lanczos_of_spectrum

import eigencurve as ec
from eigencurve.hessian.probe_error import probe_error
from eigencurve.spectrum.quadrature import sharpen, sharpen_and_count

DIM, WEIGHT_DECAY, TOTAL_STEPS = 20_000, 5e-4, 39_100
NUM_PROBES = 4


def outliers(num, low, high, rng):
    return np.geomspace(low, high, num) * np.exp(rng.normal(0, 0.05, num))


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
    }


def log_curve(spectrum):
    return np.log(ec.eigencurve(ec.prepare(spectrum, WEIGHT_DECAY), TOTAL_STEPS, lr=1.0).values())


def row(eigenvalues, num_steps):
    dim = len(eigenvalues)
    exact = log_curve(ec.Spectrum(eigenvalues, np.ones(dim)))
    runs = [
        lanczos_of_spectrum(eigenvalues, np.random.default_rng(1000 + seed).chisquare(1, dim), num_steps)
        for seed in range(NUM_PROBES)
    ]
    plain = [log_curve(sharpen(*run, WEIGHT_DECAY)) for run in runs]
    probes = [sharpen_and_count(*run, WEIGHT_DECAY, dim=dim) for run in runs]
    counted = [log_curve(probe.spectrum) for probe in probes]
    errors = [max(np.abs(curve - exact).max() for curve in curves) for curves in (plain, counted)]
    pairs = np.median([np.abs(first - second).max() for first, second in combinations(counted, 2)])
    predicted = np.median([probe_error([probe], WEIGHT_DECAY, TOTAL_STEPS, dim) for probe in probes])
    number = f"{np.median([len(probe.counted) for probe in probes]):.0f}"
    return [*(f"{error:.3f}" for error in errors), number, f"{pairs:.3f}", f"{predicted:.3f}"]


def main():
    columns = ["spectrum", "k", "weighted by the probe", "counted", "number counted", "between probes", "predicted"]
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for name, eigenvalues in matrices(np.random.default_rng(0)).items():
        for num_steps in (60, 100, 150):
            print("| " + " | ".join([name, str(num_steps), *row(eigenvalues, num_steps)]) + " |", flush=True)


if __name__ == "__main__":
    main()
