import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.reference.problems import problems, schedules

import eigencurve as ec
from eigencurve.theory.evaluators import BlockEvaluator, StepEvaluator
from eigencurve.theory.tuning import best_scale, rescaled, tune

S = ec.Spectrum([0.01, 0.1, 0.5, 2.0], [5, 3, 1, 1])
Q = ec.NoisyQuadratic(S, 5.0, 1.0)
EVALUATORS = (StepEvaluator, BlockEvaluator)


@pytest.mark.parametrize("kind", EVALUATORS)
def test_finds_the_best_scale(kind):
    f = tune(kind(Q.nodes), ec.cosine(300, 1.0, min_lr=0.1), 1.0)
    grid = [Q.expected_loss(rescaled(ec.cosine(300, 1.0, min_lr=0.1), c)) for c in np.geomspace(1e-3, 1, 400)]
    # step by step the scale is found to 1e-4; blocks raise the loss by up to 3e-5
    assert Q.expected_loss(f) <= min(grid) * (1 + (1e-6 if kind is StepEvaluator else 1e-4))
    assert f.min_lr == pytest.approx(f.lr / 10)


@settings(max_examples=30)
@given(q=problems(), cap=st.floats(0.01, 3), data=st.data())
def test_never_passes_the_largest_rate_and_never_raises_the_loss(q, cap, data):
    max_lr, f = cap / q.spectrum.L, data.draw(schedules(1 / q.spectrum.L))
    g = tune(StepEvaluator(q.nodes), f, max_lr)
    assert g.values().max() <= max_lr
    if f.values().max() <= max_lr:
        assert q.expected_loss(g) <= q.expected_loss(f) * (1 + 1e-12)


def test_a_rate_that_rounds_above_the_limit_is_lowered():
    lr, max_lr = 0.29000000000000004, 3.9
    assert lr * (max_lr / lr) > max_lr
    easy = ec.NoisyQuadratic(ec.Spectrum([1e-3], [1]), 0.0, 1.0)  # without noise the largest rate is the best one
    assert tune(StepEvaluator(easy.nodes), ec.constant(3, lr), max_lr).lr == pytest.approx(max_lr, rel=1e-14)
    assert tune(StepEvaluator(easy.nodes), ec.constant(3, lr), max_lr).lr <= max_lr


@pytest.mark.parametrize("kind", EVALUATORS)
def test_the_best_scale_of_a_tuned_schedule_is_one(kind):
    evaluator = kind(Q.nodes)
    tuned = tune(evaluator, ec.linear(200, 0.3), 1.0)
    assert best_scale(evaluator, tuned, 1.0) == pytest.approx(1, rel=1e-3)
    still = ec.NoisyQuadratic(S, 1.0, 0.0)  # without an initial error every step raises the loss
    assert best_scale(kind(still.nodes), ec.linear(200, 1e-9), 1.0) == 1


@pytest.mark.parametrize("kind", EVALUATORS)
def test_if_every_scale_diverges_the_smallest_is_taken(kind):
    schedule, max_lr = ec.constant(10**4, 1.0), 1e9
    assert best_scale(kind(Q.nodes), schedule, max_lr) == pytest.approx(max_lr * 1e-6)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("kind", EVALUATORS)
def test_tunes_with_momentum(kind, nesterov):
    q = ec.NoisyQuadratic(S, 1.0, 1.0, 0.9, nesterov)
    limit = q.stable_rate
    tuned = q.expected_loss(tune(kind(q.nodes), ec.cosine(300, 0.5), limit))
    grid = [q.expected_loss(ec.cosine(300, limit * c)) for c in np.geomspace(1e-4, 1, 200)]
    assert tuned <= min(grid) * (1 + (1e-6 if kind is StepEvaluator else 1e-4))


@pytest.mark.parametrize(
    "f",
    [
        ec.cosine(9, 1.0, 0.1), ec.inverse_time(9, 1.0, 0.1), ec.warmup(ec.linear(5, 1.0), 4), ec.wsd(9, 1.0, 3),
        ec.step_decay(9, 1.0, factor=3.0), ec.eigencurve(S, 9, 1.0), ec.eigencurve(S, 9, 1.0, min_lr=0.5),
        ec.piecewise(9, [0, 8], [1.0, 0.5]), ec.schedules.join([ec.constant(3, 1.0), ec.linear(6, 1.0)]),
    ],
    ids=lambda f: f.kind,
)  # fmt: skip
def test_rescaling_multiplies_every_rate(f):
    assert_allclose(rescaled(f, 0.25).values(), f.values() * 0.25, rtol=1e-12)
