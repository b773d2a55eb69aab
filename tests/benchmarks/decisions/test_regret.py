import numpy as np
import pytest
from benchmarks.decisions.knowledge import cases
from benchmarks.decisions.regret import Decision, best_loss, decide, mean_loss
from benchmarks.decisions.rules import RULES, again, best_log
from benchmarks.decisions.shapes import SHAPES, grid, schedule_of
from benchmarks.decisions.tables import Table

from benchmarks.decisions import knowledge, regret

from .toy import toy_task


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The whole grid of a toy, with one seed."""
    table = Table(toy_task("sgd", batch_size=2), tmp_path_factory.mktemp("tables"))
    table.complete(grid(table.task), [0])
    return table


@pytest.fixture(autouse=True)
def one_seed(monkeypatch):
    monkeypatch.setattr(knowledge, "NUM_SEEDS", 1)
    monkeypatch.setattr(regret, "SEEDS", (0,))


def test_fixed_shapes_at_one_rate_are_never_below_the_best(table):
    decisions = decide(table, ["rate"])
    assert {decision.rule for decision in decisions} == set(RULES["rate"])
    by_rate = {}
    for decision in decisions:
        assert decision.regret() >= 0
        by_rate.setdefault(decision.known.lr, []).append(decision.regret())
    constant = [mean_loss(table, schedule_of(table.task, "constant", 128, lr), "final_valid") for lr in by_rate]
    best = [best_loss(table, lr, "final_valid") for lr in by_rate]
    assert all(min(each) == 0 or loss == low for each, loss, low in zip(by_rate.values(), constant, best, strict=True))


def test_logs_are_those_of_the_shorter_runs(table):
    known = next(case for case in cases(table) if case.kind == "two logs")
    for run, (shape, lr) in zip(known.runs, known.logs, strict=True):
        assert run.total_steps == run.steps[-1] == 64
        assert run.losses[-1] == pytest.approx(known.final_loss(shape, lr))


def test_repeating_the_best_run_takes_its_shape_and_rate(table):
    known = next(case for case in cases(table) if case.kind == "several rates")
    shape, lr = best_log(known)
    assert known.final_loss(shape, lr) == min(known.final_loss(*log) for log in known.logs)
    assert again(known).to_dict() == schedule_of(table.task, shape, 128, lr).to_dict()
    assert Decision(known, "again", again(known)).regret() >= 0
    everything = [
        mean_loss(table, schedule_of(table.task, s, 128, r), "final_valid") for s in SHAPES for r in table.task.rates
    ]
    assert best_loss(table, None, "final_valid") == np.nanmin(everything)


def test_a_refusal_has_no_regret(table, monkeypatch):
    def refuse(_):
        raise ValueError("no")

    monkeypatch.setitem(RULES["rate"], "cosine", refuse)
    refused = [decision for decision in decide(table, ["rate"]) if decision.rule == "cosine"]
    assert all(decision.refusal == "no" and np.isnan(decision.regret()) for decision in refused)
