import json

import numpy as np
import pytest

from eigencurve.planning.evidence import RELATIVE_LOSSES, USUAL_RATES, evidence_schedules, usual_warmup

NAMES = {
    "WSD, last 40 %": "lin0.4", "WSD, last 60 %": "lin0.6", "WSD, last 90 %": "lin0.9",
    "WSD, last 20 %": "lin0.2", "cosine to 0": "cos0", "cosine to 10 %": "cos10", "constant": "stable",
}  # fmt: skip


def test_the_relative_losses_are_those_of_the_published_runs(data_path):
    index = json.loads(data_path("curves/index.json").read_text())
    for place, peak in enumerate((0.001, 0.0005)):
        finals = {}
        for entry in index:
            if entry["model"] == "llama_124m" and entry["peak_lr"] == peak:
                table = np.genfromtxt(data_path(f"curves/{entry['file']}"), delimiter=",", names=True)
                finals[entry["schedule"]] = table["loss"][np.argmax(table["step"])]
        for name, losses in RELATIVE_LOSSES.items():
            assert losses[place] == pytest.approx(finals[NAMES[name]] / finals["cos0"] - 1, abs=6e-5)


def test_every_schedule_with_evidence_can_be_made():
    schedules = evidence_schedules(1000, 0.1)
    assert set(schedules) == set(RELATIVE_LOSSES) == set(NAMES)
    assert all(f.total_steps == 1000 and f.values().max() == 0.1 for f in schedules.values())
    held = schedules["WSD, last 40 %"]
    assert held(599) == 0.1
    assert held(650) < 0.1


def test_usual_warmups_and_rates():
    assert usual_warmup(50_000, "adamw") == 1000
    assert usual_warmup(1_000_000, "adam") == 2000
    assert usual_warmup(50_000, "sgd") == 0
    assert all(rate.low < rate.best < rate.high for rate in USUAL_RATES.values())
