"""The texts of the page, for readers who have not read the paper."""

from __future__ import annotations

import re

INTRODUCTION = (
    "The best learning-rate schedule depends on the curvature of the loss. Choose a spectrum and a training budget to "
    "see the schedule that theory recommends for them, and how it compares with common schedules."
)
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
    "lr": "Learning rate of the first step.",
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
NO_FILE = "Upload a spectrum in the sidebar (on a phone, tap the arrows at the top left), or choose another source."
NO_SCHEDULE = "No schedule selected; Eigencurve is shown."
SCALED = "Scaled so that its highest rate is your learning rate."
SEARCHING = "Searching for the numerically best schedule …"
SHARED = "The address of this page contains all settings. Copy it to share them."
SHARED_WITHOUT_FILE = SHARED + " It does not contain the uploaded file."


def plain(text: str) -> str:
    r"""Escape ``text`` so that Markdown shows it literally.

    >>> plain("see [here](http://a.b)")
    'see \\[here\\]\\(http\\://a\\.b\\)'
    """
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~$:&])", r"\\\1", text)
