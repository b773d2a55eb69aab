import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from tests.reference import quadratic as reference
from tests.reference.problems import pieces, problems

import eigencurve as ec
from eigencurve.theory.evaluators import StepEvaluator
from eigencurve.theory.optimal import Search, descend, knots_for
from eigencurve.theory.starting_points import starting_points
from eigencurve.theory.tuning import tune

S = ec.Spectrum([0.01, 0.1, 0.5, 2.0], [5, 3, 1, 1])


MOMENTA = st.sampled_from([0.1, 0.5, 0.9])


@settings(max_examples=25)
@given(
    q=st.one_of(problems(), problems(max_kappa=100, momentum=MOMENTA, nesterov=True)),
    T=st.integers(1, 400),
    cap=st.floats(0.05, 1),
)
def test_is_never_worse_than_a_classic_schedule(q, T, cap):
    max_lr = cap * q.stable_rate
    f = q.optimal_schedule(T, max_lr)
    values = f.values()
    assert len(values) == T
    assert values.max() <= max_lr
    assert values.min() >= 0
    best, evaluator = q.expected_loss(f), StepEvaluator(q.nodes)
    for schedule in starting_points(q.spectrum, q.nodes, T, max_lr).values():
        # with momentum, moments cancel when a coordinate overshoots
        slack = 1e-14 * (q.initial_error.max() + q.noise.max()) / (1 - q.momentum) ** 2 if q.momentum else 0.0
        assert best <= q.expected_loss(tune(evaluator, schedule, max_lr)) * (1 + 1e-12) + slack
    if not q.momentum:
        assert q.lower_bound(T, max_lr) <= best * (1 + 1e-11)


@pytest.mark.parametrize(("noise", "T"), [(1.0, 2), (10.0, 3), (0.1, 4), (1e-3, 3)])
def test_no_general_solver_finds_anything_better(noise, T):
    """Another method (SLSQP with finite differences) from many starts, over all rates of a short run."""
    q = ec.NoisyQuadratic(S, noise, 1.0)
    best = q.search_best(T, 1.0)
    rng = np.random.default_rng(T)
    found = min(
        minimize(
            lambda x: sum(reference.parts(*pieces(q), x)), rng.random(T), bounds=[(0, 1)] * T, method="SLSQP",
            options={"ftol": 1e-14},
        ).fun
        for _ in range(20)
    )  # fmt: skip
    assert best.loss <= found * (1 + 1e-7)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize(("momentum", "T"), [(0.5, 3), (0.9, 4)])
def test_no_general_solver_finds_anything_better_with_momentum(momentum, nesterov, T):
    q = ec.NoisyQuadratic(S, 1.0, 1.0, momentum, nesterov)
    best, limit = q.search_best(T, q.stable_rate), q.stable_rate
    rng = np.random.default_rng(T)
    found = min(
        minimize(
            lambda x: reference.momentum_loss(*pieces(q), limit * x, momentum, nesterov), rng.random(T),
            bounds=[(0, 1)] * T, method="SLSQP", options={"ftol": 1e-14},
        ).fun
        for _ in range(20)
    )  # fmt: skip
    # with momentum a run of a few steps has many minima, and the search may stop in one that is slightly higher
    assert best.loss <= found * (1 + (1e-3 if T == 4 else 1e-7))
    assert best.status == "optimised"


@pytest.mark.parametrize(
    ("s", "T", "noise"),
    [
        (ec.PowerLaw(1.5, 1e-3, 10.0).spectrum(64), 3000, 1.0),
        (ec.Spectrum(np.geomspace(1e-3, 1, 11), np.ones(11)), 3000, 1.0),
        (ec.Spectrum(np.geomspace(1e-3, 1, 11), np.ones(11)), 3000, 1e-4),
        (S, 200, 100.0),
    ],
)
@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.9, False), (0.9, True)])
def test_every_start_ends_at_the_same_loss(s, T, noise, momentum, nesterov):
    """Long runs show no second minimum. Short runs may have one: see test_the_search_meets_it_too."""
    q = ec.NoisyQuadratic(s, noise, 1.0, momentum, nesterov)
    max_lr, evaluator = q.stable_rate, StepEvaluator(q.nodes)
    classics = starting_points(s, q.nodes, T, max_lr)
    starts = ("constant", "linear", "elastic_step", "eigencurve", "inverse_time")
    ends = [descend(evaluator, tune(evaluator, classics[name], max_lr), max_lr) for name in starts]
    losses = [q.expected_loss(schedule) for schedule, _ in ends]
    # heavy ball with hardly any noise has flat minima; L-BFGS stops up to 0.2 % above the lowest
    assert_allclose(losses, min(losses), rtol=3e-3 if momentum and not nesterov and noise < 1 else 1e-7)


@pytest.mark.parametrize(("noise", "error"), [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
def test_nothing_to_gain_and_nothing_to_lose(noise, error):
    q = ec.NoisyQuadratic(S, noise, error)
    found = q.search_best(50, 1.0)
    # without initial error the best rate is 0, and the smallest rate tried comes close
    assert found.lower_bound <= found.loss <= 0.5 * error + 1e-20
    assert found.gap >= 0


def test_the_result_is_a_schedule_like_any_other():
    found = ec.NoisyQuadratic(S, 10.0, 1.0).search_best(700, 1.0)
    assert found.status == "optimised"
    assert found.start in starting_points(S, ec.NoisyQuadratic(S, 1.0, 1.0).nodes, 700, 1.0)
    f = found.schedule
    assert f.kind == "piecewise"
    back = ec.schedule_from_dict(json.loads(json.dumps(f.to_dict())))
    assert back == f
    assert (back.values() == f.values()).all()
    assert "349 knots" in f.describe()


@given(T=st.integers(1, 10**6), num=st.integers(4, 600))
def test_knots_cover_the_run_and_are_dense_at_its_end(T, num):
    knots = knots_for(T, num)
    assert (knots[0], knots[-1]) == (0, T - 1)
    assert (np.diff(knots) > 0).all()
    assert len(knots) <= max(num, 1) + 1
    if 10 * num < T and num >= 32:
        assert np.diff(knots)[-1] == 1
        assert np.diff(knots)[0] > 1


@pytest.mark.parametrize(
    ("T", "noise", "known", "ratios"),
    [
        (39_100, 1.0, 0.1092, {"eigencurve": 1.21, "cosine": 1.61, "step_decay": 2.82, "constant": 1.007}),
        (3_910, 1e4, 0.471, {"linear": 1.004}),
    ],
)
def test_known_figures_of_a_published_spectrum(data_path, T, noise, known, ratios):
    """The best loss and, as multiples of it, those of tuned classics, as in results/theory/best.md."""
    p = ec.spectrum.prepare(ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt")), weight_decay=5e-4)
    q = ec.NoisyQuadratic(p, noise, 1.0)
    found = q.search_best(T, 2 / p.L)
    assert found.loss < known + 5e-5
    classics = starting_points(p, q.nodes, T, 2 / p.L)
    for name, ratio in ratios.items():
        measured = q.expected_loss(tune(StepEvaluator(q.nodes), classics[name], 2 / p.L)) / found.loss
        assert measured == pytest.approx(ratio, abs=0.005)


def test_the_gap_is_relative_to_the_certificate():
    f = ec.constant(3, 0.1)
    found = {(1.2, 1.0): pytest.approx(0.2), (0.0, 0.0): 0.0, (0.1, 0.0): math.inf, (1.0, None): None}
    for (loss, bound), gap in found.items():
        assert Search(f, loss, bound, "cosine", "optimised").gap == gap


def test_a_short_run_has_a_knot_at_every_step():
    for T in (1, 2, 15, 16):
        assert knots_for(T, 16).tolist() == list(range(T))
    assert len(knots_for(40, 16)) <= 16


class Vanishing:
    """A loss that underflows, so its relative gradient is infinite."""

    def loss_at_knots(self, *_):
        return lambda rates: (1e-310, np.ones(len(rates)))


@pytest.mark.filterwarnings("error")
def test_a_loss_that_underflows_is_not_lowered_further():
    found, converged = descend(Vanishing(), ec.cosine(4, 0.1, 0.01), 0.2)
    assert converged
    assert_allclose(found.values(), ec.cosine(4, 0.1, 0.01).values(), rtol=1e-12)
