import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.paper.forecasts.curves_folder import entries, write_curves

import eigencurve as ec
from paper.data.curves import described_schedule, published_runs


def entry(kind, **fields):
    return {"schedule": kind, "total_steps": 100, "warmup_steps": 10, "peak_lr": 1.0, "file": "run.csv", **fields}


def test_every_schedule_is_what_its_name_says():
    t = np.arange(10, 100)
    fall = np.clip((t - 80) / 20, 0, 1)
    cases = {
        "stable": np.ones(90),
        "cos0": (1 + np.cos(np.pi * (t - 10) / 90)) / 2,
        "cos10": 0.1 + 0.9 * (1 + np.cos(np.pi * (t - 10) / 90)) / 2,
        "lin0.2": 1 - fall,
        "sqr0.2": 1 - np.sqrt(fall),
    }
    for kind, rates in cases.items():
        assert_allclose(described_schedule(entry(kind)).values()[10:], rates, atol=1e-12, err_msg=kind)


def test_a_change_of_the_rate_is_at_its_step():
    two = described_schedule(entry("two constants", change_at=40, final_lr=0.3)).values()
    assert_allclose(two[10:], [1.0] * 30 + [0.3] * 60)
    for kind in ("constant, then linear", "constant, then exponential"):
        rates = described_schedule(entry(kind, change_at=80, final_lr=0.1)).values()
        assert_allclose(rates[10:81], 1.0)
        assert (np.diff(rates[80:]) < 0).all()
        assert rates[-1] == pytest.approx(0.1, abs=0.05)


def test_schedules_start_at_step_0_also_if_the_log_begins_late(tmp_path):
    runs = published_runs(write_curves(tmp_path))
    assert len(runs) == len(entries())
    late = next(one for one in runs if one.kind == "lin0.1")
    assert late.run.steps[0] == 640
    assert (np.diff(late.run.steps) > 0).all()
    assert late.run.rates[0] == pytest.approx(0.01 / 11)
    assert late.run.total_steps == 800
    assert (late.model, late.split, late.peak_lr) == ("llama_124m", "", 0.01)


@pytest.mark.parametrize("fields", [{}, {"change_at": 40, "final_lr": 0.1}])
def test_an_unknown_schedule_is_named(fields):
    with pytest.raises(ValueError, match=r"the schedule 'sawtooth' of run.csv is not known"):
        described_schedule(entry("sawtooth", **fields))


def test_a_missing_folder_or_index_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    with pytest.raises(ValueError, match=r"'data' must be the folder that holds curves/index.json"):
        published_runs(None)
    with pytest.raises(FileNotFoundError, match=r"index.json is missing"):
        published_runs(tmp_path)


def test_the_published_rates(data_path):
    """The logged rates are those of the schedule, up to the last steps of decays, where one step matters."""
    folder = data_path("curves/index.json").parent
    listed = json.loads((folder / "index.json").read_text())
    for one, found in zip(listed, published_runs(folder.parent), strict=True):
        table = np.genfromtxt(folder / one["file"], delimiter=",", names=True)
        steps = table["step"].astype(int)
        after = steps >= one["warmup_steps"]
        rates = found.run.schedule(steps[after]) / one["peak_lr"]
        assert_allclose(rates, table["lr"][after] / one["peak_lr"], atol=3e-3, err_msg=one["file"])
        assert isinstance(found.run.schedule, ec.Schedule)
