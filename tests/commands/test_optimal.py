import json

import pytest
from tests.commands.running import LAW, run

import eigencurve as ec


def test_the_best_schedule_beats_the_others_and_can_be_used(here):
    found = json.loads(run("compare", *LAW, "--steps", "60", "--noise", "30", "--best", "--json").stdout)
    assert found["rows"][0]["name"] == "numerically best"
    best = json.loads(run("optimal", *LAW, "--steps", "60", "--noise", "30", "--json", "-o", "best.json").stdout)
    assert best["loss"] == pytest.approx(found["rows"][0]["loss"], rel=1e-6)
    assert best["lower_bound"] == pytest.approx(found["lower_bound"])
    schedule = ec.schedule_from_dict(best["schedule"])
    q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 5e-4, 5.0).spectrum(), noise=30.0)
    assert q.expected_loss(schedule) == pytest.approx(best["loss"])
    assert json.loads((here / "best.json").read_text()) == best["schedule"]
