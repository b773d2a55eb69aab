"""The texts of the page, for readers who have not read the paper."""

from __future__ import annotations

import re

SCHEDULES_TITLE = "Schedules from a spectrum"
FORECAST_TITLE = "Forecasts from your logs"
INTRODUCTION = (
    "Choose a spectrum, which says how the loss curves, and a training budget. The page says which learning-rate "
    "schedule to use, and shows why."
)
VERDICT = "Which schedule to use"
PLANNING = "Computing the verdict …"
USE_RECOMMENDED = "Use it: {name}"
HELP = {
    "source": "Where the eigenvalues of the loss's Hessian come from. They measure how strongly the loss curves, and "
    "in how many directions.",
    "zoo": "Spectra that this project measured and ships.",
    "upload": "A spectrum written by `eigencurve estimate` or `save_spectrum` (.npz, .json), or a text file with "
    "“eigenvalue density” on each line. The server reads it in memory and stores nothing.",
    "alpha": "How quickly large eigenvalues become rare: their density is proportional to λ^−α.",
    "kappa": "The condition number κ: the largest eigenvalue divided by the smallest. The smallest is the weight "
    "decay.",
    "weight_decay": "Weight decay of your training run. It is added to every eigenvalue, so it sets the curvature of "
    "the flattest direction.",
    "epochs": "Number of passes over the data.",
    "steps_per_epoch": "Number of optimizer steps per epoch: training examples ÷ batch size.",
    "lr": "Peak rate of your run. All schedules are drawn at this rate.",
    "free": "Keep the final rate that each schedule has by default. Uncheck to set the final rate yourself.",
    "min_lr": "Learning rate of the last step.",
    "beta": "How finely eigenvalues are grouped: each group spans a factor of β. 2 gives octaves; 1 is the limit of "
    "infinitely fine groups, which gives a smooth curve.",
    "allocation": "How the steps are divided among the groups. “sqrt”: in proportion to the square root of the group's "
    "size, as in the paper. “optimal”: the division that minimises the paper's bound on the noise.",
    "noise": "Gradient noise σ² of the quadratic on which schedules are compared. A file from "
    "`eigencurve estimate --noise` contains the measured noise of every octave; otherwise σ² is an assumption. Without "
    "noise only the speed matters; with strong noise the end of the schedule matters.",
    "momentum": "Momentum of SGD, on the quadratic and in the generated code. There is no certificate with momentum.",
    "nesterov": "Use Nesterov momentum, as in PyTorch, instead of heavy ball.",
    "scale": "A quadratic is stable only up to a learning rate of 2/L, where L is the largest eigenvalue; momentum "
    "changes this limit. Networks often train at higher rates. You can therefore compare the shapes at the best rate "
    "of each schedule, at half the limit (the theory's 1/L), or at your own rate.",
    "schedules": "Schedules to draw and compare.",
    "best": "Search numerically for the schedule with the lowest expected loss. It takes about a second, and you can "
    "keep using the page meanwhile.",
    "axis": "A logarithmic axis shows the first steps in detail.",
    "json": "The schedule's settings. Load them with `schedule_from_dict`.",
    "csv": "The learning rate of every step. Available for runs of up to a million steps.",
    "take": "The schedule to download or to show code for.",
}
SPECTRUM = (
    "Each bar is an **octave**: all eigenvalues between one value and twice that value. Its height, on a logarithmic "
    "axis, is the share of directions with that curvature. Flat directions (small eigenvalues) need many steps; steep "
    "directions only need a low learning rate at the end. Eigenvalues that were measured negative are shown "
    "separately; the schedule uses their absolute value."
)
RATES = (
    "Eigencurve gives each group of eigenvalues its own interval of the run. Flat directions come first, and the rate "
    "falls slowly; steep directions come last, and the rate falls quickly."
)
BOUND = (
    "On a quadratic loss with this spectrum, the expected loss of any schedule can be computed. The grey area is a "
    "**certificate**: no schedule with learning rates up to {max_lr:.3g} can reach it, and this is proven. The gap "
    "between a curve and the grey area is the most that a better schedule could gain. The bound is exact."
)
NO_BOUND = (
    "On a quadratic loss with this spectrum, the expected loss of any schedule can be computed. There is no "
    "certificate with momentum, so nothing is proven about how much a better schedule could gain. The numerically best "
    "schedule is the best one that a search finds."
)
EXTRA_TERM = (
    "For long runs, the theory guarantees that Eigencurve's loss is at most about this many times the best possible "
    "one. It is 1 if all eigenvalues are in one octave, and at most the number of octaves."
)
ERROR = (
    "Losses are computed in blocks of steps on a coarsened spectrum, at two resolutions that differ by at most "
    "{error:.2g} %; the finer one is shown."
)
DIVERGES = (
    "“diverges”: at this learning rate the quadratic is unstable (the limit is {formula} = {limit:.3g}). Networks "
    "often train well at such rates; to compare the shapes, use the best rate of each schedule."
)
COMPARED_AT = {
    "best": "Each schedule runs at its own best peak rate, up to {rate:.3g}; the table lists them ({limit}).",
    "theory": "All schedules run at the peak rate {half:.3g}, half of the {limit}.",
}
NO_FILE = "Upload a spectrum in the sidebar (on a phone, tap the arrows at the top left), or choose another source."
NO_SCHEDULE = "No schedule selected; Eigencurve is shown."
SCALED = "Scaled so that its highest rate is your learning rate."
SEARCHING = "Searching for the numerically best schedule …"
SHARED = "The address of this page contains all settings. Copy it to share them."
SHARED_WITHOUT_FILE = SHARED + " It does not contain the uploaded file."
FORECAST_INTRODUCTION = (
    "Upload the logs of two or three finished runs of one network. A model of the loss is fitted to them. It forecasts "
    "the final loss of other schedules, with 80 % intervals, and finds the best one."
)
NO_LOGS = (
    "Upload logs in the sidebar (on a phone, tap the arrows at the top left): CSV files with columns such as step, lr "
    "and loss, the metrics.csv of Lightning, exports of Weights & Biases, trainer_state.json, or TensorBoard event "
    "files. Two runs with different schedules, such as a constant and a decaying rate, are enough."
)
FORECAST_HELP = {
    "logs": "Logs of runs of the same model on the same data, with the same loss. Do not smooth them. The server reads "
    "them and keeps them in memory for at most an hour.",
    "loss": "Name of the column with the loss. By default the only one, or that of the validation.",
    "lr": "Name of the column with the learning rate, if a log has several.",
    "warmup": "Length of the linear warmup, if the logs begin after it. Otherwise leave it at 0.",
    "last_step": "Ignore everything after this step, such as the end of a run that diverged. 0 means the whole run.",
    "resumed": "A run was resumed from a checkpoint, and its later rows replace earlier ones.",
    "steps": "Number of steps of the schedules, including the warmup.",
    "peak": "Peak rate of the schedules, and the highest rate of the best one. Other rates than the logged ones are "
    "uncertain.",
    "best": "Search for the schedule with the lowest forecast loss. It takes a few seconds.",
    "shown": "Schedules whose forecasts are drawn.",
    "own": "Another schedule to forecast: a constant rate with a linear decay at the end, or any schedule that was "
    "saved as JSON.",
    "tail": "Part of the run over which the rate decays.",
    "final": "Final rate, in percent of the peak rate.",
}
LOGGED_RATES = "Logged peak rates: {span}. Others are uncertain: the logs do not tell where training becomes unstable."
OTHER_RATE = "{rate:.4g} is outside the logged peak rates, {span}: the logs do not tell whether training is stable."
FORECAST_RATE = "Peak rate {rate:.4g}."
FIT = "Dots are logged losses; lines are the fit. The first losses, at the top, are outside the figure."
BANDS = (
    "Lines are forecasts; bands are their 80 % intervals. Differences between schedules are known better than the "
    "losses, because most errors of the fit are common to all schedules."
)


def with_commands(text: str) -> str:
    r"""Escape ``text`` like :func:`plain`, except for what is in backticks, which stays code.

    >>> with_commands("Run `make_it` - now")
    'Run `make_it` \\- now'
    """
    return "`".join(part if place % 2 else plain(part) for place, part in enumerate(text.split("`")))


def plain(text: str) -> str:
    r"""Escape ``text`` so that Markdown shows it literally.

    >>> plain("see [here](http://a.b)")
    'see \\[here\\]\\(http\\://a\\.b\\)'
    """
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~$:&])", r"\\\1", text)
