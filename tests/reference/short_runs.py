"""Random short runs, and the lowest loss that SciPy finds for them from many random starts.

Nothing is shared with the library's search except the gradient of the loss, which has its own tests.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

import eigencurve as ec
from eigencurve.theory.recursion import loss_gradient

# Losses below this fraction of the initial one count as zero. Some schedules reach zero if there is no noise.
ZERO = 1e-9
# With momentum, a loss from the moments counts if it agrees with the sum of squares to this fraction.
AGREEMENT = 1e-6
OPTIONS = {"ftol": 1e-13, "gtol": 1e-10, "maxiter": 500}
DIVERGED = 1e6


@dataclass(frozen=True)
class ShortRun:
    """A noisy quadratic, the number of steps, and the largest rate."""

    quadratic: ec.NoisyQuadratic
    total_steps: int
    max_lr: float

    @property
    def initial_loss(self):
        return 0.5 * float(self.quadratic.spectrum.weights @ self.quadratic.initial_error)


def short_run(rng, shortest, longest, momentum=0.0, nesterov=False):
    """1 to 6 eigenvalues with κ up to 1e4, noise 0 or 1e-3 to 1e4, and rates up to 1/L, 2/L or 4/L."""
    count = int(rng.integers(1, 7))
    eigenvalues = 10 ** (-rng.uniform(0, 4) * rng.random(count))
    noise = 0.0 if rng.random() < 0.1 else 10 ** rng.uniform(-3, 4)
    spectrum = ec.Spectrum(eigenvalues, rng.dirichlet(np.ones(count)) + 1e-6)
    quadratic = ec.NoisyQuadratic(spectrum, noise, 1.0, momentum, nesterov)
    return ShortRun(
        quadratic, int(rng.integers(shortest, longest + 1)), float(rng.choice([1.0, 2.0, 4.0])) / spectrum.L
    )


def exact_loss(quadratic, rates):
    """The loss as a sum of squares: the bias and the noise of every step, mapped through the later steps."""
    m, nesterov, loss = quadratic.momentum, quadratic.nesterov, 0.0
    spectrum = quadratic.spectrum
    for lam, weight, sigma2, e in zip(
        spectrum.eigenvalues.tolist(), spectrum.weights.tolist(), quadratic.noise, quadratic.initial_error, strict=True
    ):
        row, squares = np.array([1.0, 0.0]), 0.0
        for eta in rates[::-1]:
            # in w and v / lam; the gradient is lam (w - n), as in momentum_loss
            x = eta * lam
            a = [[1 - x - x * m, -x * m * m], [1.0, m]] if nesterov else [[1 - x, -x * m], [1.0, m]]
            squares += float(row @ [x * (1 + m) if nesterov else x, -1.0]) ** 2
            row = row @ np.array(a)
        loss += weight * (e * float(row[0]) ** 2 + sigma2 * squares) / 2
    return loss


def lowest_loss(run, num_starts, seed):
    """The lowest loss that L-BFGS-B over the rates finds from random starts."""
    rng, nodes, scale = np.random.default_rng(seed), run.quadratic.nodes, run.initial_loss

    def objective(shares):
        loss, gradient = loss_gradient(nodes, run.max_lr * shares)
        if not 0 <= loss < DIVERGED * scale:  # a negative loss is a rounding error of the moments
            return DIVERGED, np.zeros(len(shares))
        return loss / scale, gradient * run.max_lr / scale

    limits, lowest = [(0.0, 1.0)] * run.total_steps, np.inf
    for i in range(num_starts):
        start = random_start(rng, run.total_steps, i)
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=limits, options=OPTIONS)
        if scale * found.fun < lowest:
            exact = exact_loss(run.quadratic, run.max_lr * found.x)
            if abs(exact - scale * found.fun) <= AGREEMENT * exact + ZERO * scale:
                lowest = min(lowest, exact)
    return lowest


def random_start(rng, total_steps, i):
    """Rates as fractions of the largest: uniform or log-uniform, falling or in any order, up to it or far below."""
    rates = rng.random(total_steps) if i % 2 else 10 ** rng.uniform(-3, 1, total_steps)
    rates = np.minimum(rates * rng.choice([1.0, 3.0]), 1.0) * (1.0 if i % 3 else 10 ** rng.uniform(-2, 0))
    return -np.sort(-rates) if i % 4 < 2 else rates


def excess(loss, lowest, run):
    """How far ``loss`` is above ``lowest``, relative to it."""
    return max(loss - lowest, 0.0) / max(lowest, ZERO * run.initial_loss)
