import numpy as np
import pytest
import torch
from tests.paper.prediction.toys import random_weights, small_logistic, small_ridge

import eigencurve as ec
from paper.prediction import replicas
from paper.prediction.replicas import curve_marks, excess_losses


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
    monkeypatch.setattr(replicas, "DRAWN", 7)
    np.testing.assert_allclose(excess_losses(problem, start, [schedule], [0]), whole, rtol=1e-12)


def test_marks_begin_at_zero_and_end_at_the_last_step():
    assert curve_marks(2)[[0, -1]].tolist() == [0, 2]
    marks = curve_marks(5000)
    assert marks[[0, 1, -1]].tolist() == [0, 1, 5000]
    assert (np.diff(marks) > 0).all()
