"""What the page says to somebody who has never read the paper."""

from __future__ import annotations

import re

INTRODUCTION = (
    "Which learning-rate schedule suits a loss depends on how that loss curves. Choose a spectrum and a training "
    "budget; see the schedule that theory calls best for them, and how it does against the usual ones."
)
LABELS = {
    "eigencurve": "Eigencurve",
    "cosine": "Cosine",
    "linear": "Linear",
    "step_decay": "Step decay",
    "elastic_step": "Elastic step decay",
    "cosine_power": "Cosine-power",
    "exponential": "Exponential",
    "inverse_time": "Inverse time",
    "wsd": "Stable, then decay",
    "constant": "Constant",
    "best": "Numerically best",
}
HELP = {
    "source": "Where the eigenvalues of the loss's Hessian come from: how strongly the loss curves, and in how many "
    "directions.",
    "zoo": "Spectra that this project measured itself.",
    "upload": "A spectrum that `eigencurve estimate` or `save_spectrum` wrote (.npz, .json), or a text file with "
    "“eigenvalue density” on each line. Read in this process only; nothing is stored.",
    "alpha": "How fast eigenvalues thin out as they grow: their density is proportional to λ^−α.",
    "kappa": "The condition number κ: the largest eigenvalue over the smallest, which is the weight decay.",
    "weight_decay": "Of your training run. It adds to every eigenvalue, so it decides how flat the flattest direction "
    "is.",
    "epochs": "Passes over the data.",
    "steps_per_epoch": "Optimizer steps in one of them: data over batch size.",
    "lr": "The learning rate of the first step.",
    "free": "Leave the curve as the theory has it. Otherwise it is stretched so that it ends at the rate below.",
    "min_lr": "The learning rate of the last step.",
    "beta": "How finely eigenvalues are grouped: a group spans a factor of β. 2 gives octaves; 1 is the limit of ever "
    "finer groups, a smooth curve.",
    "allocation": "How the steps are shared out among the groups. “sqrt”: in proportion to the square root of a "
    "group's size, as in the paper. “optimal”: so that the paper's bound on the noise is least.",
    "noise": "How noisy the gradients are (σ²) on the quadratic that schedules are compared on, where every initial "
    "error is 1. At 0 only speed counts; when it is high, the end of the schedule does.",
    "scale": "A quadratic is stable up to a rate of 2/L only, L the largest eigenvalue, while networks often train "
    "above that. So each shape can be compared at the rate that suits it best, at the theory's own 1/L, or at yours.",
    "schedules": "The curves to draw.",
    "best": "Search the rates step by step for the least expected loss. Takes a second or so; the page goes on.",
    "axis": "The logarithmic one shows the first steps.",
    "json": "The settings of the schedule; `schedule_from_dict` gives it back.",
    "csv": "The learning rate of every step, for runs of up to a million steps.",
    "take": "Which schedule to download or to copy the code for.",
}
SPECTRUM = (
    "Each bar is an **octave**: all eigenvalues between one number and twice that number. Its height, on a logarithmic "
    "axis, is the share of all directions that curve that strongly. Flat directions (small eigenvalues) need many "
    "steps; steep ones only a low rate at the end. Eigenvalues that were measured negative are shown apart; the "
    "schedule takes their size."
)
RATES = (
    "Eigencurve gives each group of eigenvalues its own stretch of the run. The flat directions come first: for them "
    "the rate falls slowly; for the steep ones at the end it falls fast."
)
BOUND = (
    "On a quadratic loss with this spectrum the expected loss of any schedule can be computed. The grey area is a "
    "**certificate**: it is proven that no schedule whatsoever, with rates up to {max_lr:.3g}, gets into it. The gap "
    "between a curve and the grey is the most that could still be won."
)
EXTRA_TERM = (
    "How many times the best possible rate the theory lets Eigencurve end at, for long runs: 1 if all eigenvalues "
    "share one octave, at most the number of octaves."
)
ERROR = (
    "Computed in blocks of steps on a coarsened spectrum, at two resolutions that differ by at most {error:.2g} %; the "
    "finer one is shown. The bound is exact."
)
DIVERGES = (
    "“diverges”: at this learning rate a quadratic of this curvature is unstable (the limit is 2/L = {limit:.3g}). "
    "Networks often train well there all the same; compare the shapes at their best rates instead."
)
NO_FILE = "Upload a spectrum in the sidebar (on a phone: behind the arrows at the top left), or choose another source."
NO_SCHEDULE = "None chosen: Eigencurve is shown."
SCALED = "Scaled so that its highest rate is your learning rate."
SEARCHING = "Searching for the numerically best schedule …"
SHARED = "The address of this page holds all settings: copy it to share them."
SHARED_WITHOUT_FILE = SHARED + " It does not hold the uploaded file."


def plain(text: str) -> str:
    r"""``text`` with nothing in it that Markdown would take for more than text.

    >>> plain("see [here](http://a.b)")
    'see \\[here\\]\\(http\\://a\\.b\\)'
    """
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~$:&])", r"\\\1", text)
