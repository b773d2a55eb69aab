import json
import math
import re

import pytest
import torch

import eigencurve as ec
from eigencurve.demo import run

pytestmark = pytest.mark.slow


SMALL = {"EARLIER_STEPS": 40, "TOTAL_STEPS": 30, "NUM_PROBED": 64, "NUM_SAMPLES": 1, "NUM_TUNED": 1, "NUM_RACED": 2,
         "RATES": (0.05, 0.2, 0.8), "SEED": 3}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _small():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(run, name, value)
        yield


@pytest.fixture(scope="module")
def result():
    return run.run_demo()


def test_the_same_seed_gives_the_same_race(result, capsys):
    before = torch.get_num_threads()
    again = run.run_demo(progress=True)
    assert (str(again), again.to_dict()) == (str(result), result.to_dict())
    assert torch.get_num_threads() == before
    assert [line[:2] for line in capsys.readouterr().err.splitlines()] == ["1.", "2.", "3.", "4."]


def test_the_summary_has_the_verdict_the_race_and_its_outcome(result):
    text = str(result)
    names = [run.RECOMMENDATION, "step decay", "inverse time", *(row.label for row in result.plan.table.rows)]
    assert all(name in text for name in names)
    assert all(sentence in text for sentence in result.sentences)
    assert result.plan.verdict.split(":")[0] in text
    assert len(text.splitlines()) < 40


def test_the_page_has_everything_in_one_file(result):
    text = result.to_html()
    parts = ("rank correlation", "Based on:", "steepest descent", "share per octave", "noise per octave", "<svg")
    assert all(part in text for part in parts)
    assert "http" not in text


def test_the_values_are_json(result):
    values = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert values["plan"]["verdict"] == result.plan.verdict
    assert [row["name"] for row in values["race"]] == [racer.name for racer in result.racers]
    assert all(len(row["losses"]) == SMALL["NUM_RACED"] for row in values["race"])


def test_a_terminal_shows_the_time_left(terminal):
    run.run_demo(progress=True)
    assert re.search(r"training .* 100% 0:00:00", terminal())


def test_predicted_loss_is_that_of_the_quadratic(result):
    measured = result.measured
    spectrum = ec.spectrum.prepare(measured.spectrum.spectrum, run.WEIGHT_DECAY)
    quadratic = ec.NoisyQuadratic(spectrum, measured.noise, measured.start, run.MOMENTUM)
    schedule = ec.cosine(30, 0.1)
    excess = measured.predicted_loss(schedule) - measured.floor
    assert excess == pytest.approx(spectrum.dim * quadratic.expected_loss(schedule))
    assert math.isinf(measured.predicted_loss(ec.constant(10_000, 1e3)))


def test_contestants_have_one_rate_and_one_length(result):
    schedules = run.contestants(result.plan).values()
    assert {schedule.total_steps for schedule in schedules} == {run.TOTAL_STEPS}
    assert all(schedule.values().max() == pytest.approx(run.EARLIER_LR) for schedule in schedules)
