import numpy as np
import pytest
from benchmarks.decisions.tables import Table, key_of

import eigencurve as ec
from benchmarks.decisions import shapes, tables

from .toy import toy_task

T = 128


def test_the_table_trains_each_run_once(tmp_path, monkeypatch):
    task, schedules = toy_task(), [ec.linear(T, 0.05), ec.constant(T // 2, 0.05)]
    table = Table(task, tmp_path)
    table.complete(schedules, [0, 1])
    monkeypatch.setattr(tables, "train_together", lambda *_: pytest.fail("trained again"))
    again = Table(task, tmp_path)
    again.complete(schedules, [0, 1])
    assert len(again) == 4
    for schedule in schedules:
        before, after = table.row(schedule, 1), again.row(schedule, 1)
        assert after.final_valid == pytest.approx(before.final_valid, rel=1e-6)  # kept in float32
        assert np.allclose(before.train, after.train, equal_nan=True)


def test_curves_end_with_their_run(tmp_path):
    table = Table(toy_task(), tmp_path)
    schedules = [ec.linear(T, 0.05), ec.linear(T // 2, 0.05)]
    table.complete(schedules, [0])
    long, short = (table.row(schedule, 0) for schedule in schedules)
    assert np.isfinite(long.valid[:64]).all()
    assert np.isfinite(short.valid[:32]).all()
    assert np.isnan(short.valid[32:]).all()
    assert long.valid[63] == pytest.approx(long.final_valid, rel=1e-6)


def test_rounded_schedules_are_the_same_run():
    assert key_of(ec.wsd(T, 0.1 + 1e-9, decay=0.2)) == key_of(ec.wsd(T, 0.1, decay=0.2))
    assert key_of(ec.wsd(T, 0.101, decay=0.2)) != key_of(ec.wsd(T, 0.1, decay=0.2))


def test_the_grid_has_every_horizon_rate_and_shape():
    task = toy_task(warmup_steps=8)
    grid = shapes.grid(task)
    assert len({key_of(schedule) for schedule in grid}) == 2 * 7 * 8
    assert {schedule.total_steps for schedule in grid} == set(task.horizons)
    assert all(schedule(0) < schedule(20) for schedule in grid)
