"""The speed of forecasts, for three runs of 50,000 steps with 250 losses each: ``python -m benchmarks.forecast``.

Prints the time of a fit as a ratio to that of one forecast, and the time of the search for the best schedule as a ratio
to 10,000 gradient steps on the rates of all steps, which is how the multi-power law (arXiv:2503.12811) optimises a
schedule. The gradient is ours, in the same fitted model; one is timed and scaled. Functions are compiled beforehand.
The first lines are the times to fit and to read logs of ten thousand and of a million rows.
"""

import tempfile
from pathlib import Path

import numpy as np
from benchmarks.core import best_of
from tests.reference.forecast import three_runs

import eigencurve as ec
from eigencurve.forecast import LoggedRun, fit_runs, load_run
from eigencurve.forecast.best import fitted_quadratic
from eigencurve.theory.recursion import loss_gradient

T, PEAK, EVERY = 50_000, 0.01, 10
NUM_ITERATIONS = 10_000


def thinned(run):
    """Every tenth loss of a run, as people log them."""
    return LoggedRun(run.steps[::EVERY], run.losses[::EVERY], run.schedule, name=run.name)


def fitting(runs):
    """Time the fit, relative to the forecast of one schedule; return the fit."""
    forecast = fit_runs(runs)
    fit = best_of(lambda: fit_runs(runs), repeat=3)
    one = best_of(lambda: forecast.predict(ec.wsd(T, PEAK, T // 5), [T]))
    points = ", ".join(str(len(run)) for run in runs)
    print(f"fit of 3 runs with {points} losses     {fit:>8.2f} s, {fit / one:>7.0f} times one forecast ({one:.4f} s)")
    return forecast


def searching(forecast):
    """Time the search for the best schedule, relative to gradient steps on all rates."""
    best = forecast.best_schedule(T)
    search = best_of(lambda: forecast.best_schedule(T), repeat=3)
    nodes = fitted_quadratic(forecast.fitted, forecast.fitted.likeliest, PEAK).nodes
    rates = np.array(ec.wsd(T, 1.0, T // 5).values())
    loss_gradient(nodes, rates)
    gradient = best_of(lambda: loss_gradient(nodes, rates))
    whole = gradient * NUM_ITERATIONS
    print(f"best schedule for {T:,} steps               {search:>8.2f} s, within {best.gap:.4f} of the optimum")
    print(
        f"{NUM_ITERATIONS:,} gradients in all rates (scaled)  {whole:>8.0f} s, {whole / search:>7.0f} times the search"
    )


def long_run(num_rows):
    """A cosine whose noisy loss is logged at every step."""
    schedule, steps = ec.cosine(num_rows, PEAK), np.arange(1, num_rows + 1)
    travel = np.cumsum(schedule.values()) / PEAK
    noise = 0.05 * np.random.default_rng(0).standard_normal(num_rows)
    return LoggedRun(steps, 2 + 0.4 * (travel / num_rows + 0.02) ** -0.5 + noise, schedule)


def reading(run, path):
    """Time the reading of a log."""
    rates = run.rates.tolist()
    rows = zip(run.steps.tolist(), run.losses.tolist(), strict=True)
    path.write_text("step,lr,loss\n" + "".join(f"{s},{rates[s - 1]:.6g},{v:.5f}\n" for s, v in rows))
    return best_of(lambda: load_run(path), repeat=2)


def long_logs():
    """Time the reading and the fit of a short and a long log."""
    with tempfile.TemporaryDirectory() as folder:
        for num_rows in (10_000, 1_000_000):
            run = long_run(num_rows)
            fit, read = best_of(lambda run=run: fit_runs(run), repeat=2), reading(run, Path(folder, "run.csv"))
            print(f"a log of {num_rows:>9,} rows                    {fit:>8.2f} s to fit, {read:.2f} s to read")


def main():
    long_logs()
    runs = [thinned(run) for run in three_runs(deviation=0.003, total_steps=T, lr=PEAK)]
    searching(fitting(runs))


if __name__ == "__main__":
    main()
