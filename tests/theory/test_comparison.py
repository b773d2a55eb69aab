import pytest

import eigencurve as ec

S = ec.Spectrum([0.01, 0.1, 0.5, 2.0], [5, 3, 1, 1])
Q = ec.NoisyQuadratic(S, 1.0, 1.0)
SCHEDULES = {"cosine": ec.cosine(200, 0.5), "eigencurve": ec.eigencurve(S, 200, 0.5), "linear": ec.linear(200, 0.1)}


def test_ranks_by_loss_with_the_gap_to_the_bound():
    table = Q.compare(SCHEDULES)
    assert table.max_lr == 2 / S.L
    assert table.lower_bound == Q.lower_bound(200, 1.0)
    losses = [row.loss for row in table.rows]
    assert losses == sorted(losses)
    for row in table.rows:
        assert row.loss == Q.expected_loss(SCHEDULES[row.name]) == pytest.approx(row.bias + row.variance)
        assert row.gap == pytest.approx(row.loss / table.lower_bound - 1)
        assert row.status == "finite"
        assert table[row.name] is row


def test_tuning_lowers_every_loss():
    plain, tuned = Q.compare(SCHEDULES), Q.compare(SCHEDULES, tune_lr=True)
    for row in plain.rows:
        assert tuned[row.name].loss <= row.loss * (1 + 1e-9)
        assert tuned[row.name].peak <= 2 / S.L
        assert tuned[row.name].schedule.kind == row.schedule.kind


def test_divergence_is_a_row_of_its_own():
    table = Q.compare({**SCHEDULES, "too high": ec.constant(200, 5.0)})
    row = table.rows[-1]
    assert (row.name, row.status, row.loss, row.gap) == ("too high", "diverged", None, None)
    assert table.max_lr == 5.0  # the bound must also hold for this one
    assert "diverged" in str(table)


def test_prints_a_table():
    lines = str(Q.compare(SCHEDULES)).splitlines()
    assert lines[0].split() == ["schedule", "peak", "lr", "loss", "bias", "variance", "x", "best", "gap"]
    assert len(lines) == 2 + len(SCHEDULES)
    assert lines[-1].startswith("lower bound")
    assert "1.000" in lines[1]


def test_with_momentum_there_is_no_bound():
    table = ec.NoisyQuadratic(S, 1.0, 1.0, momentum=0.9).compare(SCHEDULES, tune_lr=True)
    assert table.lower_bound is None
    assert all(row.gap is None and row.status == "finite" for row in table.rows)
    assert "no certificate with momentum" in str(table)
