"""How far a schedule from k Lanczos steps is from the full one: ``python -m benchmarks.sharpening``.

Cuts each published spectrum (under EIGENCURVE_DATA) to k steps, and prints the largest |ln(f/f_full)| at
T = 39,100 for raw Gauss nodes, for method (a), monotone interpolation of the distribution function, and for
``sharpen``; then the same with noise of 1e-6 in the tridiagonal, and the time taken. Then synthetic spectra, smooth
ones that resemble a network's and others that do not.
"""

import os
import time
from pathlib import Path

import numpy as np
from scipy.interpolate import PchipInterpolator
from tests.reference.lanczos import lanczos_of_spectrum

import eigencurve as ec
from eigencurve.spectrum.quadrature import gauss_quadrature, sharpen

DECAYS = {"resnet-18_cifar10": 5e-4, "googlenet_cifar10": 5e-4, "vgg16_cifar10": 5e-4, "resnet-18_imagenet": 1e-4}
STEPS = (75, 100, 150, 200, 250, 400)


def raw(alphas, betas, _scale):
    return ec.Spectrum(*gauss_quadrature(alphas, betas))


def interpolated(alphas, betas, scale):
    """The distribution function at the middle of its jumps, by PCHIP in asinh(λ/scale)."""
    nodes, weights = gauss_quadrature(alphas, betas)
    u, middle = np.arcsinh(nodes / scale), np.cumsum(weights) - weights / 2
    grid = np.linspace(u[0], u[-1], 4001)
    masses = np.maximum(np.diff(PchipInterpolator(u, middle)(grid)), 0)
    points = scale * np.sinh((grid[1:] + grid[:-1]) / 2)
    return ec.Spectrum(np.r_[nodes[0], points, nodes[-1]], np.r_[weights[0] / 2, masses, weights[-1] / 2])


def noisy(alphas, betas, scale):
    rng = np.random.default_rng(0)
    return sharpen(*(x * (1 + 1e-6 * rng.standard_normal(len(x))) for x in (alphas, betas)), scale)


def schedule(spectrum, decay):
    with_zero = ec.Spectrum(np.append(spectrum.eigenvalues, 0.0), np.append(spectrum.weights, 1e-12))
    return ec.eigencurve(ec.spectrum.prepare(with_zero, decay), 39_100, 0.1).values()


def log_normal(atom, median, rng, num=6000):
    """Both signs log-normal in |λ|, an atom at zero, thirty outliers."""
    bulk = median * np.exp(1.7 * rng.standard_normal(num)) * np.where(rng.random(num) < 0.45, -0.7, 1.0)
    outliers = np.geomspace(3, 60, 30) * np.abs(bulk).max()
    return np.r_[bulk, 0.0, outliers], np.r_[np.full(num, (1 - atom) / num), atom, np.full(30, 3e-6)]


def power(exponent, signs, rng, num=6000):
    """Density |λ|^-exponent from 1e-5 to 2, twenty outliers."""
    u = (np.arange(num) + 0.5) / num
    a = 1 - exponent
    size = 1e-5 * 2e5**u if a == 0 else (1e-5**a + u * (2.0**a - 1e-5**a)) ** (1 / a)
    return np.r_[size * rng.choice(signs, num), np.geomspace(4, 100, 20)], np.r_[
        np.full(num, 1 / num), np.full(20, 3e-6)
    ]


def semicircle(centre, num=6000):
    angle = np.pi * (np.arange(num) + 0.5) / num
    return centre + np.cos(angle), np.sin(angle) ** 2 / np.sum(np.sin(angle) ** 2)


def synthetic():
    """Smooth spectra with the noise of one probe in their weights, and, last, some that are no smooth density."""
    rng = np.random.default_rng(0)
    smooth = {f"log-normal, median {m:g}, atom {a}": log_normal(a, m, rng) for m in (1e-2, 5e-2) for a in (0, 0.3, 0.6)}
    smooth |= {f"power {p}, both signs": power(p, [-1, 1], rng) for p in (0.5, 1.0, 1.3)}
    smooth |= {f"power {p}, positive": power(p, [1], rng) for p in (0.5, 1.0, 1.3)}
    smooth |= {"semicircle at 0": semicircle(0.0)}
    for name, (eigenvalues, weights) in smooth.items():
        noise = 1 + 2e-3 / np.sqrt(np.maximum(weights, 1e-12)) * rng.standard_normal(len(weights))
        yield name, ec.Spectrum(eigenvalues, weights * np.maximum(noise, 0.01))
    clusters = np.repeat([0.01, 0.3, 5.0], 500) + rng.uniform(0, 1e-3, 1500)
    yield "no density: three clusters of width 1e-3", ec.Spectrum(clusters, np.ones(1500))
    gap = np.r_[np.linspace(-2, -1, 1500), np.linspace(1, 2, 1500)]
    yield "no density: [-2, -1] and [1, 2]", ec.Spectrum(gap, np.ones(3000))
    yield "no density at zero: semicircle at 3", ec.Spectrum(*semicircle(3.0))


def on_synthetic(decay=5e-4, steps=(30, 75, 100, 150, 250)):
    print("\nsynthetic spectra: sharpened (raw nodes)\n| spectrum | " + " | ".join(f"k = {k}" for k in steps) + " |")
    print("|" + " --- |" * (len(steps) + 1))
    for name, full in synthetic():
        alphas, betas = lanczos_of_spectrum(full.eigenvalues, full.weights, max(steps))
        target = schedule(full, decay)
        cells = []
        for k in steps:
            gaps = [
                np.abs(np.log(schedule(m(alphas[:k], betas[:k], decay), decay) / target)).max() for m in (sharpen, raw)
            ]
            cells.append(f"{gaps[0]:.3f} ({gaps[1]:.3f})")
        print(f"| {name} | " + " | ".join(cells) + " |")


def main(folder):
    full = {name: ec.load_spectrum(folder / "spectra" / f"{name}.txt") for name in DECAYS}
    tridiagonals = {name: lanczos_of_spectrum(s.eigenvalues, s.weights, max(STEPS)) for name, s in full.items()}
    for title, method in {
        "raw nodes": raw,
        "(a) PCHIP": interpolated,
        "sharpen": sharpen,
        "sharpen, noise 1e-6": noisy,
    }.items():
        print(f"\n{title}\n| k | " + " | ".join(DECAYS) + " | seconds |\n|" + " --- |" * 6)
        for k in STEPS:
            start = time.perf_counter()
            curves = {n: method(a[:k], b[:k], DECAYS[n]) for n, (a, b) in tridiagonals.items()}
            seconds = (time.perf_counter() - start) / len(curves)
            gaps = [
                np.abs(np.log(schedule(c, DECAYS[n]) / schedule(full[n], DECAYS[n]))).max() for n, c in curves.items()
            ]
            print(f"| {k} | " + " | ".join(f"{gap:.3f}" for gap in gaps) + f" | {seconds:.2f} |")


if __name__ == "__main__":
    on_synthetic()
    if "EIGENCURVE_DATA" in os.environ:
        main(Path(os.environ["EIGENCURVE_DATA"]))
    else:
        print("The published spectra are left out: EIGENCURVE_DATA names no folder that holds spectra/.")
