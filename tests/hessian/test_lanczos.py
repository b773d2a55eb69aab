import gc

import numpy as np
import pytest
import torch
from tests.hessian.matrices import MatrixOperator, hessian_like, start
from tests.hessian.models import dense_hessian, problem

from eigencurve.hessian import estimate_spectrum
from eigencurve.hessian.lanczos import lanczos, make_run, without_copies
from eigencurve.hessian.operator import HessianOperator
from eigencurve.spectrum.quadrature import gauss_quadrature


@pytest.mark.parametrize("kind", ["mlp", "conv", "lstm", "attention"])
def test_moments_of_small_models_up_to_twice_the_steps(kind):
    model, loss_fn, batch = problem(kind)
    operator, matrix = HessianOperator(model, loss_fn, batch), dense_hessian(model.eval(), loss_fn, batch)
    vector = start(operator.dim)
    steps = 4
    run = lanczos(operator, vector, steps)
    nodes, weights = gauss_quadrature(run.alphas, run.betas)
    power = vector.clone()
    for k in range(2 * steps):
        expected = float(vector @ power / (vector @ vector))
        # rounding grows with the largest term, not with the sum
        assert weights @ nodes**k == pytest.approx(expected, rel=1e-9, abs=1e-9 * np.abs(nodes).max() ** k)
        power = matrix @ power


def test_all_steps_give_the_exact_spectrum_and_end_early():
    source = np.random.default_rng(1)
    eigenvalues = np.linspace(-1, 5, 12)
    turn = np.linalg.qr(source.normal(size=(12, 12)))[0]
    vector = start(12)
    run = lanczos(MatrixOperator(turn * eigenvalues @ turn.T), vector, 50)
    nodes, weights = gauss_quadrature(run.alphas, run.betas)
    assert run.exact
    assert len(run.alphas) == 12
    np.testing.assert_allclose(nodes, eigenvalues, atol=1e-12)
    shares = (turn.T @ vector.numpy()) ** 2
    np.testing.assert_allclose(weights, shares / shares.sum(), atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_repeated_eigenvalues_end_the_run_early_and_exactly(dtype):
    eigenvalues = np.repeat([0.0, 1.0, 3.0, 7.0], [400, 50, 30, 20])
    operator = MatrixOperator(eigenvalues, dtype)
    run = lanczos(operator, start(500, dtype), 100)
    assert run.exact
    assert len(run.alphas) == operator.num_products - 1 == 4  # the first product is repeated
    np.testing.assert_allclose(gauss_quadrature(run.alphas, run.betas)[0], [0, 1, 3, 7], atol=1e-4)


def test_a_zero_operator_ends_after_one_step():
    run = lanczos(MatrixOperator(np.zeros(9)), start(9), 5)
    assert (run.exact, run.alphas.tolist()) == (True, [0.0])


def test_with_the_full_basis_every_product_gives_a_distinct_node():
    operator = MatrixOperator(hessian_like(), torch.float32)
    run = lanczos(operator, start(operator.dim, torch.float32), 150)
    assert run.num_distinct >= 0.99 * run.num_products


def test_leading_blocks_are_shorter_runs():
    operator = MatrixOperator(hessian_like(), torch.float32)
    vector = start(operator.dim, torch.float32)
    long, short = lanczos(operator, vector, 40), lanczos(operator, vector, 25)
    assert np.array_equal(long.alphas[:25], short.alphas)
    assert np.array_equal(long.betas[:25], short.betas)


def test_locked_mode_is_the_full_one_until_the_rows_are_full():
    operator = MatrixOperator(hessian_like(), torch.float32)
    vector = start(operator.dim, torch.float32)
    full, locked = lanczos(operator, vector, 60), lanczos(operator, vector, 60, memory_budget=42 * 4 * operator.dim)
    assert np.array_equal(full.alphas[:40], locked.alphas[:40])


@pytest.mark.parametrize(("num_vectors", "num_steps"), [(62, 100), (82, 150), (102, 150)])
def test_locked_mode_wastes_few_products_where_three_terms_waste_most(num_vectors, num_steps):
    operator = MatrixOperator(hessian_like(), torch.float32)
    vector = start(operator.dim, torch.float32)
    budget = num_vectors * 4 * operator.dim
    locked = lanczos(operator, vector, num_steps, memory_budget=budget)
    bare = lanczos(operator, vector, num_steps, memory_budget=4 * 4 * operator.dim)
    assert locked.num_distinct >= 0.85 * num_steps
    assert bare.num_distinct < locked.num_distinct


def cumulative(run, dtype, at):
    """Distribution function of a run's measure, with copies merged and interpolated between the nodes."""
    measure = without_copies(run, dtype)
    nodes, weights = gauss_quadrature(measure.alphas, measure.betas)
    return np.interp(at, nodes, np.cumsum(weights) - weights / 2)


@pytest.mark.parametrize("num_vectors", [4, 8, 42, 102])
def test_locked_mode_keeps_the_measure(num_vectors):
    eigenvalues = hessian_like()
    operator = MatrixOperator(eigenvalues, torch.float32)
    vector = start(operator.dim, torch.float32)
    run = lanczos(operator, vector, 250, memory_budget=num_vectors * 4 * operator.dim)
    order = np.argsort(eigenvalues)
    shares = vector.double().numpy()[order] ** 2
    exact = np.cumsum(shares / shares.sum())
    at = np.array([-0.1, 0.1, 0.5, 1.0, 2.5, 50.0])
    expected = np.interp(at, eigenvalues[order], exact)
    np.testing.assert_allclose(cumulative(run, torch.float32, at), expected, atol=0.02)
    assert gauss_quadrature(run.alphas, run.betas)[0].max() == pytest.approx(300, rel=1e-4)


def test_merging_copies_keeps_the_moments():
    nodes, weights = np.array([1.0, 2.0, 2.0 + 1e-9, 5.0]), np.array([0.4, 0.2, 0.1, 0.3])
    operator = MatrixOperator(nodes)
    run = lanczos(operator, torch.from_numpy(np.sqrt(weights)), 4)
    merged = make_run(run.alphas, run.betas, False, torch.float32)
    assert merged.num_distinct == 3
    measure = without_copies(merged, torch.float32)
    clean = gauss_quadrature(measure.alphas, measure.betas)
    assert len(measure.residuals) == 3
    np.testing.assert_allclose(clean[0], [1, 2, 5], atol=1e-8)
    np.testing.assert_allclose(clean[1], [0.4, 0.3, 0.3], atol=1e-6)


def test_memory_never_exceeds_the_plan():
    """At every product, the rows are the only vectors of that size alive."""
    dim, budget_vectors, seen = 50_000, 12, []

    def alive():
        large = [t for t in gc.get_objects() if type(t) is torch.Tensor and t.numel() >= dim]
        return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in large}.values())

    class Counting(MatrixOperator):
        def __call__(self, vector):
            seen.append(alive())
            return super().__call__(vector)

    operator, held = Counting(np.linspace(0, 1, dim), torch.float32), start(dim, torch.float32)
    before = alive()
    lanczos(operator, held, 30, memory_budget=budget_vectors * 4 * dim)
    assert max(seen) - before <= (budget_vectors - 1) * 4 * dim  # the product itself is not made yet


def test_bad_input():
    operator = MatrixOperator(np.arange(5.0))
    for bad, match in [(torch.zeros(5), "type torch.float64"), (start(4), "5 numbers"), (start(5) * 0, "not zero")]:
        with pytest.raises(ValueError, match=match):
            lanczos(operator, bad, 3)
    with pytest.raises(ValueError, match="finite products"):
        lanczos(MatrixOperator([1.0, float("nan"), 2.0]), start(3), 3)


SCALES = [2.0**-1000, 2.0**-500, 1e-8, 2.0**500, 2.0**1000]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", SCALES)
def test_a_scaled_matrix_takes_the_same_steps(scale):
    """Also with a breakdown: two of the six eigenvalues are equal, so the Krylov space has five dimensions."""
    eigenvalues = np.array([1.0, 2.0, 2.0, 3.5, 7.0, 11.0])
    plain = lanczos(MatrixOperator(eigenvalues), start(6), 6)
    scaled = lanczos(MatrixOperator(scale * eigenvalues), start(6), 6)
    assert len(plain.alphas) == len(scaled.alphas) == 5
    assert plain.exact
    assert scaled.exact
    np.testing.assert_allclose(scaled.alphas / scale, plain.alphas, rtol=1e-12)
    np.testing.assert_allclose(scaled.betas[:-1] / scale, plain.betas[:-1], rtol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", SCALES)
def test_an_estimate_of_a_scaled_matrix_finds_every_eigenvalue(scale):
    rows = np.random.default_rng(0).normal(size=(8, 8))
    matrix = rows @ rows.T
    found = estimate_spectrum(scale * matrix, 20, progress=False, weight_decay=5e-4 * scale)
    assert found.reason == "exact"
    np.testing.assert_allclose(found.nodes / scale, np.linalg.eigvalsh(matrix), rtol=1e-9)
