import json

import pytest
from tests.cli.running import LAW, run

import eigencurve as ec


def test_losses_are_those_of_the_theory():
    found = json.loads(run("compare", *LAW, "--steps", "80", "--noise", "9", "--lr", "0.1", "--json").stdout)
    q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 5e-4, 5.0).spectrum(), noise=9.0)
    losses = {row["name"]: row["loss"] for row in found["rows"]}
    assert losses["cosine_0"] == pytest.approx(q.expected_loss(ec.cosine(80, 0.1)), rel=1e-12)
    assert found["lower_bound"] == pytest.approx(q.lower_bound(80, 0.4), rel=1e-12)
    assert all(row["gap"] >= 0 for row in found["rows"])
