import itertools

import numpy as np
import pytest
import torch
from tests.paper.prediction.toys import random_weights, small_logistic, small_ridge

import eigencurve as ec
from eigencurve.runs.store import Store
from paper.data.rows import SparseRows
from paper.engine.protocol import execute
from paper.engine.request import Workers
from paper.prediction.experiment import PredictedRuns, curve_marks, excess_losses, expected_gaps, run_of
from paper.prediction.measuring import dense_point, from_matrices
from paper.ridge.experiment import RidgeProblem


def one_run(problem, start, schedule, seed):
    """Excess losses of a single run, written out step by step."""
    source, weights, losses = np.random.default_rng(seed), start.clone(), [problem.excess(start)]
    examples = source.integers(0, len(problem.labels), (schedule.total_steps, problem.batch_size))
    for step, chosen in enumerate(examples):
        leaf = weights.clone().requires_grad_()
        loss = problem.batch_loss(leaf, problem.inputs[chosen], problem.labels[chosen])
        slope = torch.autograd.grad(loss + 0.5 * problem.weight_decay * leaf @ leaf, leaf)[0]
        weights = weights - schedule(step) * slope
        losses.append(problem.excess(weights))
    return np.array(losses)


@pytest.mark.parametrize("problem", [small_ridge(), small_logistic()], ids=["compiled", "stacked"])
def test_every_run_is_that_of_a_plain_loop(problem):
    schedules = [ec.cosine(60, 0.3), ec.constant(60, 0.1)]
    start, marks = random_weights(problem), curve_marks(60)
    found = excess_losses(problem, start, schedules, [4, 9, 2])
    assert found.shape == (len(marks), 3, 2)
    for i, seed in enumerate((4, 9, 2)):
        for k, schedule in enumerate(schedules):
            expected = one_run(problem, start, schedule, seed)[marks]
            np.testing.assert_allclose(found[:, i, k], expected, rtol=1e-7, atol=1e-12)


def test_examples_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    problem, schedule = small_logistic(), ec.cosine(30, 0.3)
    start = random_weights(problem)
    whole = excess_losses(problem, start, [schedule], [0])
    monkeypatch.setattr("paper.prediction.experiment.DRAWN", 7)
    np.testing.assert_allclose(excess_losses(problem, start, [schedule], [0]), whole, rtol=1e-12)


def test_marks_begin_at_zero_and_end_at_the_last_step():
    assert curve_marks(2)[[0, -1]].tolist() == [0, 2]
    marks = curve_marks(5000)
    assert marks[[0, 1, -1]].tolist() == [0, 1, 5000]
    assert (np.diff(marks) > 0).all()


@pytest.mark.parametrize("batch_size", [1, 2])
def test_it_is_the_mean_over_every_possible_choice_of_rows(batch_size):
    """Three rows, two steps: all sequences of rows can be written out."""
    matrix = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [0.3, -1.0, 1.0]])
    problem = RidgeProblem(SparseRows.from_dense(matrix, np.array([1.0, -1.0, 1.0])), 0.05)
    schedule, start = ec.linear(2, 0.2), np.array([0.4, -0.2, 0.1])
    draws = list(itertools.product(range(3), repeat=batch_size))
    gaps = []
    for rows in itertools.product(draws, repeat=2):
        weights = start
        for step, chosen in enumerate(rows):
            x, y = matrix[list(chosen)], problem.rows.labels[list(chosen)]
            slope = 2 * x.T @ (x @ weights - y) / batch_size + 2 * problem.alpha * weights
            weights = weights - schedule(step) * slope
        gaps.append(problem.gaps(weights[:, None])[0])
    found = expected_gaps(problem, schedule, np.array([0, 2]), start, batch_size)
    np.testing.assert_allclose(found, [problem.gaps(start[:, None])[0], np.mean(gaps)], rtol=1e-12)


def test_rounding_errors_do_not_grow_over_a_long_run():
    """At this rate, errors of the covariance that are not symmetric grow by 2.5 times a step if they are kept."""
    problem = small_ridge().ridge
    rate = 1.25 / problem.spectrum.L
    marks = np.array([100, 400])
    early, late = expected_gaps(problem, ec.constant(400, rate), marks, np.zeros(7), batch_size=64)
    assert late == pytest.approx(early, rel=1e-3)  # stationary
    assert late > 0


def test_a_large_batch_at_a_small_rate_has_the_noise_of_the_quadratic():
    problem = small_ridge()
    start, schedule = problem.starts["zero"], ec.cosine(400, 0.02)
    marks = np.array([0, 100, 400])
    exact = expected_gaps(problem.ridge, schedule, marks, start.numpy(), batch_size=32)
    model = from_matrices(problem, dense_point(problem), start, batch_size=32)
    # The part of the noise that depends on the weights is of the order of rate × excess / batch size.
    np.testing.assert_allclose(model.curve(schedule, marks), exact, rtol=2e-3)
    one = expected_gaps(problem.ridge, schedule, marks, start.numpy(), batch_size=1)
    assert one[-1] > 1.01 * from_matrices(problem, dense_point(problem), start).curve(schedule, marks)[-1]


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
