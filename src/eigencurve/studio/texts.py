"""The texts of the page, for readers who have not read the paper."""

from __future__ import annotations

SPECTRUM_TITLE = "Schedules from a spectrum"
FORECAST_TITLE = "Forecasts from your logs"
INTRODUCTION = (
    "Choose a spectrum, which says how the loss curves, and a training budget. The page says which learning-rate "
    "schedule to use, and shows why."
)
VERDICT = "Which schedule to use"
PLANNING = "Computing the verdict …"
USE_IT = "Use one of these schedules"
LOAD_IT = "The code loads the schedule from the JSON file above."
HELP = {
    "source": "Where the eigenvalues of the loss's Hessian come from. They measure how strongly the loss curves, and "
    "in how many directions.",
    "zoo": "Spectra that this project measured and ships.",
    "file": "A spectrum written by `eigencurve estimate` or `save_spectrum` (.npz, .json), or a text file with "
    "“eigenvalue density” on each line. The server reads it in memory and stores nothing.",
    "alpha": "How quickly large eigenvalues become rare: their density is proportional to λ^−α.",
    "kappa": "The condition number κ: the largest eigenvalue divided by the smallest. The smallest is the weight "
    "decay.",
    "weight_decay": "Weight decay of your training run. It is added to every eigenvalue, so it sets the curvature of "
    "the flattest direction.",
    "total_steps": "Number of optimizer steps of your run: epochs × training examples ÷ batch size.",
    "lr": "Peak rate of your run. If it is empty, the rate is part of the answer.",
    "momentum": "Momentum of SGD, or β₁ of Adam. There is no certificate with momentum.",
    "nesterov": "Use Nesterov momentum, as in PyTorch, instead of heavy ball.",
    "noise": "Gradient noise σ² of the quadratic on which schedules are compared. A file from "
    "`eigencurve estimate --noise` contains the measured noise of every octave; otherwise σ² is an assumption. Without "
    "noise only the speed matters; with strong noise the end of the schedule matters.",
    "json": "The schedule's settings. Load them with `schedule_from_dict`.",
    "csv": "The learning rate of every step. Available for runs of up to a million steps.",
    "logs": "Logs of runs of the same model on the same data, with the same loss. Do not smooth them. The server reads "
    "them and keeps them in memory for at most an hour.",
    "loss": "Name of the column with the loss. By default the only one, or that of the validation.",
    "lr_column": "Name of the column with the learning rate, if a log has several.",
    "warmup_steps": "Length of the linear warmup, if the logs begin after it.",
    "last_step": "Ignore everything after this step, such as the end of a run that diverged.",
    "resumed": "A run was resumed from a checkpoint, and its later rows replace earlier ones.",
    "peak": "Peak rate of the schedules. If it is empty, it is the logged rate with the lowest forecast. Other rates "
    "than the logged ones are uncertain.",
    "own": "Another schedule to forecast, saved as JSON.",
    "shown": "Schedules whose forecasts are drawn.",
}
SPECTRUM = (
    "Each bar is an **octave**: all eigenvalues between one value and twice that value. Its height, on a logarithmic "
    "axis, is the share of directions with that curvature. Flat directions (small eigenvalues) need many steps; steep "
    "directions only need a low learning rate at the end."
)
RATES = "The schedules of the table, each at the peak rate that the table shows."
BOUND = (
    "On a quadratic loss with this spectrum, the expected loss of any schedule can be computed. The grey area is a "
    "**certificate**: no schedule with stable learning rates can reach it, and this is proven. The gap between a curve "
    "and the grey area is the most that a better schedule could gain."
)
NO_BOUND = (
    "On a quadratic loss with this spectrum, the expected loss of any schedule can be computed. There is no "
    "certificate with momentum, so nothing is proven about how much a better schedule could gain."
)
NO_FILE = "Upload a spectrum in the sidebar (on a phone, tap the arrows at the top left), or choose another source."
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
FIT = "Dots are logged losses; lines are the fit. The first losses, at the top, are outside the figure."
BANDS = (
    "Lines are forecasts; bands are their 80 % intervals. Differences between schedules are more certain than the "
    "losses, because most errors of the fit are common to all schedules."
)
