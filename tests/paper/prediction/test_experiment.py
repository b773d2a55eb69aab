import numpy as np
import pytest
from tests.paper.prediction.toys import small_logistic

import eigencurve as ec
from eigencurve.runs.store import Store
from paper.engine.protocol import execute
from paper.engine.request import Workers
from paper.prediction.experiment import PredictedRuns, run_of
from paper.prediction.replicas import curve_marks, excess_losses

SCHEDULES = [ec.cosine(20, 0.3), ec.constant(20, 0.1)]


@pytest.fixture(scope="module")
def experiment():
    return PredictedRuns(small_logistic(), seeds_together=2)


def all_runs(starts=("zero",), seeds=range(3)):
    return [run_of(start, schedule, seed) for start in starts for seed in seeds for schedule in SCHEDULES]


def test_groups_hold_all_schedules_of_a_few_seeds(experiment):
    groups = experiment.batches(all_runs(("zero", "10 % away")))
    assert [(g[0].settings["start"], [run.seed for run in g]) for g in groups] == [
        ("zero", [0, 0, 1, 1]), ("zero", [2, 2]), ("10 % away", [0, 0, 1, 1]), ("10 % away", [2, 2]),
    ]  # fmt: skip


def test_outcomes_are_those_of_the_runs_in_their_order(experiment, tmp_path):
    runs = all_runs()
    outcomes = execute(experiment, runs, Store(tmp_path / "s.sqlite"), Workers(1, "sequential"))
    problem = experiment.problem
    expected = excess_losses(problem, problem.starts["zero"], SCHEDULES, [0, 1, 2])
    for place, outcome in enumerate(outcomes):
        curve = expected[:, place // 2, place % 2]
        assert [time for time, _ in outcome.curve] == curve_marks(20).tolist()
        np.testing.assert_allclose([value for _, value in outcome.curve], curve, rtol=1e-9)
        assert outcome.metrics["excess"] == outcome.curve[-1][1]
        assert not outcome.diverged


def test_a_group_of_which_another_process_has_a_part_still_runs(experiment):
    runs = all_runs(seeds=range(2))
    whole = experiment.run(runs)
    part = experiment.run([runs[0], *runs[2:]])
    for one, other in zip(part, [whole[0], *whole[2:]], strict=True):
        assert one.metrics["excess"] == pytest.approx(other.metrics["excess"], rel=1e-9)


def test_a_run_that_diverges_is_marked(experiment):
    (outcome,) = experiment.run([run_of("zero", ec.constant(400, 1e7), 0)])
    assert outcome.diverged
    assert np.isfinite(outcome.metrics["excess"])


def test_the_name_identifies_the_problem(experiment):
    other = PredictedRuns(small_logistic(num_rows=50), 2)
    assert experiment.name.startswith("prediction/logistic/")
    assert experiment.name != other.name
