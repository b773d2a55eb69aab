"""Two logged runs of a made-up network: its loss follows a power law, plus noise that is proportional to the rate."""

import numpy as np

from eigencurve import constant, cosine, warmup
from eigencurve.forecast import LoggedRun

STEPS, RISE, LR = 2000, 100, 0.01
CONSTANT, COSINE = warmup(constant(STEPS - RISE, LR), RISE), warmup(cosine(STEPS - RISE, LR), RISE)


def losses_of(schedule, at):
    """Loss after ``at`` steps: what is left of the start, and the noise of the rates, which it forgets slowly."""
    rates = schedule.values() / LR
    travel = np.concatenate(([0.0], np.cumsum(rates)))
    noise, level = [0.0], 0.0
    for rate in rates:
        level += 0.02 * rate * (0.12 * rate - level)
        noise.append(level)
    return 2.0 + 3.0 * (1 + travel[at] / 20) ** -0.5 + np.array(noise)[at]


def logged(schedule, name, every=40):
    steps = np.arange(every, schedule.total_steps + 1, every)
    return LoggedRun(steps, losses_of(schedule, steps).round(6), schedule, name, "val_loss")


def runs():
    return [logged(CONSTANT, "constant"), logged(COSINE, "cosine")]


def log_text(schedule, every=20):
    """The log of a run as CSV: the rate of the next step, and the loss."""
    steps = np.arange(0, schedule.total_steps, every)
    rates, losses = schedule(steps), losses_of(schedule, steps)
    rows = [f"{step},{rate:.9g},{loss:.6f}" for step, rate, loss in zip(steps, rates, losses, strict=True)]
    return "\n".join(["step,lr,val_loss", *rows]) + "\n"


def write_logs(folder):
    (folder / "constant.csv").write_text(log_text(CONSTANT))
    (folder / "cosine.csv").write_text(log_text(COSINE))
    return [folder / "constant.csv", folder / "cosine.csv"]
