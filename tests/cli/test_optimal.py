import json

import pytest
from tests.cli.running import LAW, run

import eigencurve as ec


def test_the_best_schedule_beats_the_others_and_can_be_used(here):
    found = json.loads(run("compare", *LAW, "--steps", "60", "--noise", "30", "--best", "--json").stdout)
    assert found["rows"][0]["name"] == "optimum"
    best = json.loads(run("optimal", *LAW, "--steps", "60", "--noise", "30", "--json", "-o", "best.json").stdout)
    assert best["loss"] == pytest.approx(found["rows"][0]["loss"], rel=1e-6)
    assert best["lower_bound"] == pytest.approx(found["lower_bound"])
    schedule = ec.schedule_from_dict(best["schedule"])
    q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 5e-4, 5.0).spectrum(), noise=30.0)
    assert q.expected_loss(schedule) == pytest.approx(best["loss"])
    assert json.loads((here / "best.json").read_text()) == best["schedule"]


@pytest.mark.parametrize("words", [("--momentum", "0.9"), ("--momentum", "0.9", "--nesterov")])
def test_with_momentum_it_beats_the_others_without_a_certificate(words):
    common = (*LAW, "--steps", "60", "--noise", "30", *words, "--json")
    rows = json.loads(run("compare", *common).stdout)["rows"]
    best = json.loads(run("optimal", *common).stdout)
    q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 5e-4, 5.0).spectrum(), 30.0, 1.0, 0.9, "--nesterov" in words)
    assert best["lower_bound"] is None
    assert best["max_lr"] == pytest.approx(q.stable_rate)
    assert best["loss"] == pytest.approx(q.expected_loss(ec.schedule_from_dict(best["schedule"])))
    assert all(best["loss"] <= row["loss"] * (1 + 1e-9) for row in rows)
