"""A small folder of logs with the layout of the published ones, drawn from a known model."""

import json

import numpy as np
from tests.reference.forecast import true_losses

from paper.data.curves import described_schedule

PEAKS = (0.01, 0.005)


def entries():
    """The index: two GPT models with nine runs each, and ten Llama runs at two peak rates."""
    found = []
    for model in ("25M", "100M"):
        common = {"model": model, "warmup_steps": 20, "peak_lr": PEAKS[0]}
        for kind, split, total, change, final in (
            ("cosine", "fit", 600, None, 0.1),
            ("constant", "fit", 600, None, 1.0),
            ("two constants", "fit", 400, 200, 0.3),
            ("constant", "predict", 1200, None, 1.0),
            ("cosine", "predict", 1200, None, 0.1),
            ("constant, then exponential", "predict", 600, 480, 0.1),
            ("constant, then linear", "predict", 600, 480, 0.1),
            ("two constants", "predict", 400, 200, 0.1),
            ("two constants", "predict", 400, 200, 0.6),
        ):
            name = f"gpt_{model.lower()}/{kind.replace(',', '').replace(' ', '_')}_{total}_{final:g}.csv"
            change_at = {} if change is None else {"change_at": change}
            entry = {"schedule": kind, "split": split, "total_steps": total, "final_lr": final * PEAKS[0], "file": name}
            found.append({**common, **entry, **change_at})
    for peak in PEAKS:
        for kind in ("lin0.1", "lin0.2", "sqr0.2", "lin0.4", "lin0.6", "lin0.8", "lin0.9", "cos10", "cos0", "stable"):
            entry = {"model": "llama_124m", "schedule": kind, "total_steps": 800, "warmup_steps": 10, "peak_lr": peak}
            found.append({**entry, "file": f"llama_124m/{kind}_lr{peak:g}.csv"})
    return found


def write_curves(folder):
    """Write curves/index.json and every log below ``folder``; branches begin late and repeat their first row."""
    listed = entries()
    for i, entry in enumerate(listed):
        path = folder / "curves" / entry["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_log(entry, seed=i))
    (folder / "curves" / "index.json").write_text(json.dumps(listed))
    return folder


def _log(entry, seed):
    schedule = described_schedule(entry)
    total = schedule.total_steps
    branch = entry["schedule"] in ("lin0.1", "lin0.2", "sqr0.2")
    steps = np.arange(int(0.8 * total) if branch else entry["warmup_steps"], total, 8)
    losses = true_losses(schedule.values(), steps, peak=PEAKS[0])
    losses += 0.001 * np.random.default_rng(seed).standard_normal(len(steps))
    rows = [f"{s},{schedule(s):.8g},{loss:.5f}" for s, loss in zip(steps.tolist(), losses, strict=True)]
    return "\n".join(["step,lr,loss", *([rows[0]] if branch else []), *rows]) + "\n"
