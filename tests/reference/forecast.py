"""Literal loops over steps and curvatures, and logs drawn from a known model."""

import numpy as np

import eigencurve as ec
from eigencurve.forecast import LoggedRun


def responses(lam, relative, gamma, marks):
    """What a unit initial error and a unit noise at every λ contribute to the loss, step by step."""
    error, noise, rows = np.ones(len(lam)), np.zeros(len(lam)), []
    for t in range(len(relative) + 1):
        if t in marks:
            rows.append((error.copy(), noise.copy()))
        if t < len(relative):
            keep = (1 - relative[t] ** (1 - gamma) * lam) ** 2
            error = keep * error
            noise = keep * noise + relative[t] ** (2 - 1.5 * gamma) * lam
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


def true_losses(rates, steps, peak=0.01, gamma=0.3, floor=2.0, amplitude=0.4, alpha=0.5, noise=0.15):
    """A power law in the sum of the effective rates, plus noise in two directions."""
    relative = rates / peak
    lam = np.array([0.003, 0.05])
    _, variance = responses(lam, relative, gamma, set(steps.tolist()))
    progress = np.concatenate(([0.0], np.cumsum(relative ** (1 - gamma))))[steps]
    return floor + amplitude * (progress / 1000 + 0.02) ** -alpha + noise * variance @ np.ones(2)


def logged(schedule, every=20, deviation=0.0, seed=0, name="", **model):
    """A run of ``schedule`` with the losses of the model and independent errors."""
    steps = np.arange(every, schedule.total_steps + 1, every)
    errors = deviation * np.random.default_rng(seed).standard_normal(len(steps))
    return LoggedRun(steps, true_losses(schedule.values(), steps, **model) + errors, schedule, name=name)


def two_peaks():
    """Runs at two peak rates whose losses have little in common, by peak rate."""
    shapes = (lambda lr: ec.constant(2000, lr), lambda lr: ec.linear(2000, lr))
    low = [logged(shape(0.005), floor=2.3, noise=0.02, name=f"low {i}") for i, shape in enumerate(shapes)]
    return {0.005: low, 0.01: [logged(shape(0.01), name=f"high {i}") for i, shape in enumerate(shapes)]}


def three_runs(deviation=0.0, total_steps=2000, lr=0.01):
    """A constant rate, a cosine and a drop, as people log them."""
    half = total_steps // 2
    drop = ec.schedules.join([ec.constant(half, lr), ec.constant(total_steps - half, 0.3 * lr)])
    shapes = {"constant": ec.constant(total_steps, lr), "cosine": ec.cosine(total_steps, lr), "drop": drop}
    return [logged(f, deviation=deviation, seed=i, name=name) for i, (name, f) in enumerate(shapes.items())]
