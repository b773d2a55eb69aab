"""How times grow with the number of steps and of eigenvalues: ``python -m benchmarks.growth``.

Expected loss, search for the best schedule and forecast for 10^4 to 10^7 steps, and with up to 10^5 eigenvalues; the
fit of logs with 100 to 10,000 losses per run. Each time is also a ratio to that of the smallest case. The expected loss
follows every eigenvalue through every step, so its time is proportional to both, and the forecast follows every step.
The search works on groups of eigenvalues and, for more than 50,000 steps, on blocks of steps; it computes the losses of
about ten schedules exactly. Times below two seconds are the shortest of three.
"""

import numpy as np
from benchmarks.core import best_of

import eigencurve as ec
from eigencurve.forecast import LoggedRun, fit_runs

LAW = ec.PowerLaw(1.5, 1e-3, 10.0)


def show(what, cases):
    """One line per case; ``cases`` is a list of labels and calls. The first call compiles and is not timed."""
    cases[0][1]()
    first = None
    for label, call in cases:
        spent = best_of(call, repeat=1)
        if spent < 2:
            spent = min(spent, best_of(call, repeat=2))
        first = first or spent
        print(f"{what:<18} {label:<32} {spent:>9.3f} s   {spent / first:>8.1f} x the first")


def quadratic(num_nodes):
    return ec.NoisyQuadratic(LAW.spectrum(num_nodes), noise=100.0, initial_error=1.0)


def runs(num_losses, total_steps=10**5):
    """Two runs of a quadratic, with a constant rate and a linear decay."""
    steps = np.unique(np.linspace(1, total_steps, num_losses).astype(int))
    rng, problem = np.random.default_rng(0), quadratic(64)
    for f in (ec.constant(total_steps, 0.05), ec.linear(total_steps, 0.05)):
        losses = 2 + problem.loss_curve(f, steps.tolist()).loss / 100
        yield LoggedRun(steps, losses + 0.002 * rng.standard_normal(len(steps)), f)


def main():
    q = quadratic(256)
    lengths = [10**k for k in (4, 5, 6, 7)]
    sizes = [10**k for k in (2, 3, 4, 5)]
    show("expected loss", [(f"{n:,} steps", lambda n=n: q.expected_loss(ec.cosine(n, 0.1))) for n in lengths])
    many = [(f"{k:,} eigenvalues", quadratic(k)) for k in sizes]
    show("expected loss", [(label, lambda p=p: p.expected_loss(ec.cosine(10**5, 0.1))) for label, p in many])
    show("best schedule", [(f"{n:,} steps", lambda n=n: q.search_best(n, q.stable_rate)) for n in lengths])
    show("best schedule", [(label, lambda p=p: p.search_best(10**5, p.stable_rate)) for label, p in many])
    logs = {n: list(runs(n)) for n in (100, 1000, 10_000)}
    show("fit", [(f"2 runs, {n:,} losses each", lambda n=n: fit_runs(logs[n])) for n in logs])
    fitted = fit_runs(logs[100])
    show("forecast", [(f"{n:,} steps", lambda n=n: fitted.predict(ec.cosine(n, 0.05))) for n in lengths])


if __name__ == "__main__":
    main()
