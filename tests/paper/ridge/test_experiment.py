import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.paper.ridge.problems import problem
from tests.reference.sgd import ridge_sgd

import eigencurve as ec
from eigencurve.runs.store import Run, Store
from paper.data.rows import read_libsvm
from paper.engine.protocol import search
from paper.engine.request import Workers
from paper.ridge.experiment import RidgeExperiment, RidgeProblem, grids, make_schedule, run_sgd, run_steps


def test_the_mean_of_many_runs_is_the_exact_expectation_of_the_theory():
    """All rows equal to a, labels fresh in every run: the Hessian is the same for each sample, so the noise is the
    theory's, only along a, and the order of samples does not matter.
    """
    a, alpha, steps, replicas = np.array([1.0, 0.5, 0.0]), 0.05, 40, 4000
    f = ec.cosine(steps, 0.3)
    rng = np.random.default_rng(0)
    starts, columns = np.arange(0, 2 * steps + 1, 2), np.tile([0, 1], steps)
    hessian = 2 * (np.outer(a, a) + alpha * np.eye(3))
    losses = []
    for _ in range(replicas):
        weights = np.array([[1.0], [-1.0], [2.0]])
        scale = np.ones(1)
        labels, order = rng.choice([-1.0, 1.0], steps), rng.permutation(steps)
        run_steps(starts, columns, np.tile(a[:2], steps), labels, order, f.values()[:, None], alpha, weights, scale)
        losses.append(0.5 * float((weights[:, 0] * scale) @ hessian @ (weights[:, 0] * scale)))
    eigenvalues, vectors = np.linalg.eigh(hessian)
    noise = 4 * (vectors.T @ a) ** 2 / eigenvalues  # the labels have mean 0 and variance 1, and so w_* = 0
    error = eigenvalues * (vectors.T @ np.array([1.0, -1.0, 2.0])) ** 2
    q = ec.NoisyQuadratic(ec.Spectrum(eigenvalues, np.ones(3)), noise=noise, initial_error=error)
    standard_error = np.std(losses) / np.sqrt(replicas)
    assert abs(np.mean(losses) - 3 * q.expected_loss(f)) < 4 * standard_error
    assert standard_error < 0.03 * np.mean(losses)


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 1000),
    epochs=st.integers(1, 4),
    alpha=st.sampled_from([1e-3, 0.5, 5.0]),
    width=st.integers(1, 5),
)
def test_equals_a_literal_loop_on_the_same_order_of_samples(seed, epochs, alpha, width):
    p = problem(alpha=alpha, seed=seed)
    total = epochs * len(p.rows)
    schedules = [ec.cosine(total, 0.15 / (1 + i)) for i in range(width)]
    curve = run_sgd(p, schedules, epochs, seed)
    for i, f in enumerate(schedules):
        weights = ridge_sgd(p.rows.dense(), p.rows.labels, alpha, f.values(), seed, epochs)
        assert_allclose(curve[total][i], p.gaps(weights[:, None])[0], rtol=1e-10, atol=1e-14)


def test_the_factored_out_decay_survives_strong_weight_decay():
    """After 20,000 steps with factor 0.9 the scale would be 10^-915: it is multiplied back in on the way."""
    p = problem(num_rows=200, alpha=0.5)
    f = ec.constant(200 * 100, 0.1)
    weights = ridge_sgd(p.rows.dense(), p.rows.labels, 0.5, f.values(), 1, 100)
    assert_allclose(run_sgd(p, [f], 100, 1)[20_000][0], p.gaps(weights[:, None])[0], rtol=1e-9)


def test_the_optimum_has_no_gradient_and_the_gap_is_the_loss_above_it():
    p = problem()
    matrix, labels, w = p.rows.dense(), p.rows.labels, p.optimum
    gradient = 2 * matrix.T @ (matrix @ w - labels) / len(labels) + 2 * p.alpha * w
    assert_allclose(gradient, 0, atol=1e-14)
    somewhere = w + np.random.default_rng(0).standard_normal(len(w))
    assert_allclose(p.gaps(somewhere[:, None])[0], p.loss(somewhere) - p.loss(w), rtol=1e-10)
    assert_allclose(p.spectrum.eigenvalues, np.linalg.eigvalsh(p.hessian))
    assert p.spectrum.mu >= 2 * p.alpha * (1 - 1e-12)


def test_the_grids_are_those_of_the_paper():
    found = grids(5)
    sizes = {name: len(grid) for name, grid in found.items()}
    assert sizes["Constant"] == 13
    # 13 initial rates with every last rate that is not above them: five positive ones, 0, and "unrestricted".
    assert sizes["Inverse Time Decay"] == sizes["Exponential Decay"] == 41
    assert sizes["Cosine Decay"] == 41 + 13
    assert sizes["Eigencurve, β = 2"] == 41 + 13 + 13
    p = problem()
    for grid in found.values():
        for entry in grid:
            f = make_schedule(entry, p)
            assert f.total_steps == 5 * len(p.rows)
            assert f(0) == entry["lr"]


def test_a_run_does_not_depend_on_its_company():
    experiment = RidgeExperiment(problem(), "synthetic")
    runs = [Run(entry, seed) for entry in grids(2)["Cosine Decay"][:40] for seed in (1, 2)]
    together = {
        id(run): o for batch in experiment.batches(runs) for run, o in zip(batch, experiment.run(batch), strict=True)
    }
    assert len(together) == 80
    for run in runs[::7]:
        (alone,) = experiment.run([run])
        assert_allclose(together[id(run)].metrics["gap"], alone.metrics["gap"], rtol=1e-9)


def test_an_explosion_is_marked():
    experiment = RidgeExperiment(problem(), "synthetic")
    (outcome,) = experiment.run([Run({"schedule": "constant", "epochs": 30, "lr": 50.0}, 1)])
    assert outcome.diverged
    assert all(np.isfinite(gap) for _, gap in outcome.curve)


def test_other_data_are_other_runs():
    names = {RidgeExperiment(problem(seed=seed, alpha=a), "x").name for seed in (0, 1) for a in (1e-3, 1e-2)}
    assert len(names) == 4


def test_an_unknown_schedule_is_refused():
    with pytest.raises(ValueError, match=r"'kind' must be one of 'eigencurve', .*, got 'sine'"):
        make_schedule({"schedule": "sine", "epochs": 1, "lr": 0.1}, problem())


def test_a_search_on_a4a_agrees_with_a_plain_check(data_path, tmp_path):
    """Recorded means of a plain NumPy run of the same grids at 5 epochs; trials scatter by some 20 %."""
    experiment = RidgeExperiment(RidgeProblem(read_libsvm(data_path("a4a"), num_columns=123)), "a4a")
    wanted = {"Eigencurve, β = 2": 0.00103, "Exponential Decay": 0.00120, "Cosine Decay": 0.00144}
    few = {name: [e for e in grid if e["lr"] in (0.02, 0.03)] for name, grid in grids(5).items() if name in wanted}
    found = search(
        experiment, few, range(100, 105), range(5), Store(tmp_path / "s.sqlite"), Workers(backend="sequential", count=1)
    )
    for finding in found:
        assert finding.fresh.mean == pytest.approx(wanted[finding.schedule], rel=0.35)
