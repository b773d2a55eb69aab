"""The published runs under EIGENCURVE_DATA, with the schedules that their index describes."""

import json

import numpy as np

from eigencurve.forecast import load_run


def _entries(data_path, model):
    index = json.loads(data_path("curves/index.json").read_text())
    return [entry for entry in index if entry["model"] == model]


def _read(data_path, entry):
    return load_run(data_path(f"curves/{entry['file']}"), schedule=_rates(data_path, entry), name=entry["file"])


def gpt_runs(data_path, model):
    """The runs marked "fit" and those marked "predict"."""
    entries = _entries(data_path, model)
    return tuple([_read(data_path, e) for e in entries if e["split"] == split] for split in ("fit", "predict"))


def llama_runs(data_path, peak):
    """All schedules at one peak rate, by name."""
    return {e["schedule"]: _read(data_path, e) for e in _entries(data_path, "llama_124m") if e["peak_lr"] == peak}


def _rates(data_path, entry):
    total, rise, peak, name = entry["total_steps"], entry["warmup_steps"], entry["peak_lr"], entry["schedule"]
    t = np.arange(total)
    if entry["model"] == "llama_124m":
        rates = peak * _llama_shape(name, t, total, rise)
    elif name == "two constants":
        rates = np.where(t < entry["change_at"], peak, entry["final_lr"])
    else:
        table = np.genfromtxt(data_path(f"curves/{entry['file']}"), delimiter=",", names=True)
        rates = np.interp(t, table["step"], table["lr"])
        if entry.get("change_at"):
            late = table["step"] >= entry["change_at"]
            knots = np.concatenate(([entry["change_at"]], table["step"][late]))
            tail = np.interp(t, knots, np.concatenate(([peak], table["lr"][late])))
            rates = np.where(t < entry["change_at"], peak, tail)
    return np.where(t < rise, peak * (t + 1) / rise, rates)


def _llama_shape(name, t, total, rise):
    if name == "stable":
        return np.ones(total)
    if name.startswith("cos"):
        wave = 0.5 * (1 + np.cos(np.pi * (t - rise) / (total - rise)))
        return wave if name == "cos0" else 0.1 + 0.9 * wave
    part = float(name[3:])
    done = np.clip((t / total - (1 - part)) / part, 0, 1)
    return 1 - done if name.startswith("lin") else 1 - np.sqrt(done)
