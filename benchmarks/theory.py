"""The speed of the theory's functions, as ratios measured in one run: ``python -m benchmarks.theory``.

The reference is NumPy with one vector operation per step: what you would write without a compiler.
"""

import time

import numpy as np
from benchmarks.core import best_of, row

import eigencurve as ec
from eigencurve.schedules.allocation import optimal_allocation

T = 10**6
Q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 1e-4, 1.0).spectrum(256), noise=1.0, initial_error=1.0)


def numpy_loop(rates):
    lam, e = Q.spectrum.eigenvalues, np.array(Q.initial_error)
    for eta in rates:
        x = eta * lam
        e = (1 - x) ** 2 * e + x**2 * Q.noise
    return 0.5 * float(Q.spectrum.weights @ e)


def losses():
    part = best_of(lambda: numpy_loop(ec.cosine(10**4, 1.0).values()), repeat=2) * T / 10**4
    heavy = ec.NoisyQuadratic(Q.spectrum, 1.0, 1.0, momentum=0.9)
    cases = {
        "cosine": (Q, ec.cosine(T, 1.0)),
        "eigencurve": (Q, ec.eigencurve(Q.spectrum, T, 1.0)),
        "step decay, closed form": (Q, ec.step_decay(T, 1.0)),
        "cosine with momentum": (heavy, ec.cosine(T, 1.0)),
    }
    for name, (problem, f) in cases.items():
        problem.expected_loss(ec.cosine(10, 1.0))  # compile
        ours = best_of(lambda problem=problem, f=f: problem.expected_loss(f), repeat=3)
        row(f"expected loss, 10^6 steps x 256, {name}", ours, part, "NumPy (a hundredth of the steps, scaled)")


def search():
    spectrum = ec.PowerLaw(1.5, 5e-4, 180.0).spectrum(128)
    for noise, momentum in ((1.0, 0.0), (1e4, 0.0), (1e4, 0.9)):
        q = ec.NoisyQuadratic(spectrum, noise, 1.0, momentum)
        q.search_best(10, q.stable_rate)  # compile
        start = time.perf_counter()
        found = q.search_best(39_100, q.stable_rate)
        seconds = time.perf_counter() - start
        case = f"noise {noise:g}, momentum {momentum:g}"
        print(f"best schedule, 39,100 steps x 128, {case:<26} {seconds:>20.2f} s    {found.status}")


def lengths():
    spectrum = ec.PowerLaw(1.5, 5e-4, 180.0).spectrum(5000)
    for beta in (2.0, 1.1, 1.0001):
        groups = ec.spectrum.group(spectrum, beta)
        ours = best_of(lambda groups=groups: optimal_allocation(groups.share, groups.lower / spectrum.L, 39_100))
        print(f"optimal interval lengths, beta = {beta:<8g} {len(groups):>6} groups {ours * 1e3:>20.2f} ms")


def main():
    losses()
    search()
    lengths()


if __name__ == "__main__":
    main()
