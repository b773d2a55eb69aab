import math
import re

import pytest
import torch

import eigencurve as ec
from eigencurve.demo import run
from eigencurve.demo.race import RECOMMENDATION

SMALL = {"EARLIER_STEPS": 40, "TOTAL_STEPS": 30, "NUM_PROBED": 64, "NUM_SAMPLES": 1, "NUM_TUNED": 1, "NUM_RACED": 2,
         "RATES": (0.05, 0.2, 0.8), "SEED": 3}  # fmt: skip


@pytest.fixture
def small(monkeypatch):
    for name, value in SMALL.items():
        monkeypatch.setattr(run, name, value)


@pytest.mark.usefixtures("small")
def test_the_same_seed_gives_the_same_page(capsys):
    before = torch.get_num_threads()
    first, second = (run.run_demo(progress=shown) for shown in (True, False))
    # the durations of the measurements are part of the details only
    assert (first.summary, first.values) == (second.summary, second.values)
    assert torch.get_num_threads() == before
    assert [line[:2] for line in capsys.readouterr().err.splitlines()] == ["1.", "2.", "3.", "4."]
    names = ("eigencurve", "cosine to 0", "linear to 0", "WSD", "elastic step", "step decay", "inverse time")
    assert all(part in first.summary for part in (RECOMMENDATION, *names, "rank correlation", "±"))
    assert len(first.summary.splitlines()) < 40
    assert all(part in first.html.decode() for part in ("share per octave", "noise per octave", "Based on"))


@pytest.mark.usefixtures("small")
def test_a_terminal_shows_the_time_left(terminal):
    run.run_demo(progress=True)
    assert re.search(r"training .* 100% 0:00:00", terminal())


def test_predicted_loss_is_that_of_the_quadratic():
    quadratic = ec.NoisyQuadratic(ec.Spectrum([1.0], [1.0]), noise=0.0, initial_error=2.0)
    model = run.Model(quadratic, dim=3, floor=0.5)
    # one step at rate ½ leaves a quarter of the error: ½ · 2 / 4 per dimension
    assert model.loss(ec.constant(1, 0.5)) == pytest.approx(0.5 + 3 * 0.25)
    assert math.isinf(model.loss(ec.constant(10_000, 10.0)))


@pytest.mark.usefixtures("small")
def test_contestants_have_one_rate_and_one_length():
    answer = ec.plan(ec.PowerLaw(1.5, 1e-3, 1.0), total_steps=run.TOTAL_STEPS)
    found = run.contestants(answer)
    assert {row.name for row in answer.table} | {"step decay", "inverse time"} == set(found)
    assert {schedule.total_steps for schedule in found.values()} == {run.TOTAL_STEPS}
    assert all(schedule.values().max() == pytest.approx(run.EARLIER_LR) for schedule in found.values())
