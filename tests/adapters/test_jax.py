"""The Hessian of a JAX loss, against the dense one of jax.hessian."""

import numpy as np
import pytest
import torch

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax.flatten_util import ravel_pytree  # noqa: E402

import eigencurve as ec  # noqa: E402
from eigencurve.adapters.jax import hessian_operator, jax_schedule  # noqa: E402
from eigencurve.hessian import HessianOperator, MatvecOperator, estimate_spectrum, lanczos  # noqa: E402
from eigencurve.spectrum.quadrature import gauss_quadrature  # noqa: E402


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def loss(params, batch):
    x, y = batch
    hidden = jnp.tanh(x @ params["in"]["w"] + params["in"]["b"])
    logits = hidden @ params["out"][0]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(y)), y])


def problem(num_examples=11):
    """A tree with a dict, a tuple and a scalar leaf, and a batch."""
    source = np.random.default_rng(0)
    params = {
        "in": {"w": source.normal(size=(3, 4)), "b": source.normal()},
        "out": (source.normal(size=(4, 2)),),
    }
    batch = (source.normal(size=(num_examples, 3)), source.integers(0, 2, num_examples))
    return jax.tree.map(jnp.asarray, params), batch


def dense(params, batch):
    point, unravel = ravel_pytree(params)
    return np.asarray(jax.jit(jax.hessian(lambda w: loss(unravel(w), jax.tree.map(jnp.asarray, batch))))(point))


def columns(operator):
    return torch.stack([operator(column) for column in torch.eye(operator.dim, dtype=operator.dtype)], dim=1).numpy()


def ragged(batch, *cuts):
    return [tuple(part[a:b] for part in batch) for a, b in zip((0, *cuts), (*cuts, len(batch[0])), strict=True)]


@pytest.mark.usefixtures("double")
def test_products_equal_the_dense_hessian_whole_and_in_ragged_batches():
    params, batch = problem()
    wanted = dense(params, batch)
    sources = [
        batch,
        [batch],
        ragged(batch, 5, 9),
        iter(ragged(batch, 1)),
        ragged(batch, 0, 11),
    ]
    for source in sources:
        operator = hessian_operator(loss, params, source)
        assert (operator.dim, operator.dtype) == (21, torch.float64)
        np.testing.assert_allclose(columns(operator), wanted, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("double")
def test_the_spectrum_is_exact_for_a_small_model():
    params, batch = problem()
    estimate = estimate_spectrum(hessian_operator(loss, params, ragged(batch, 4)), num_probes=1, settle=None)
    assert estimate.reason == "exact"
    eigenvalues = np.linalg.eigvalsh(dense(params, batch))
    distinct = eigenvalues[np.append(True, np.diff(eigenvalues) > 1e-10)]  # the probe sees the eigenvalue zero once
    np.testing.assert_allclose(estimate.nodes, distinct, rtol=0, atol=1e-8)
    run = lanczos(hessian_operator(loss, params, batch), torch.ones(21, dtype=torch.float64), 21)
    np.testing.assert_allclose(gauss_quadrature(run.alphas, run.betas)[0], distinct, rtol=0, atol=1e-8)


@pytest.mark.usefixtures("double")
def test_the_tridiagonal_is_that_of_the_same_model_in_torch():
    source = np.random.default_rng(3)
    weight, x, y = source.normal(size=(2, 5)), source.normal(size=(20, 5)), source.integers(0, 2, 20)
    model = torch.nn.Linear(5, 2, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(weight))
    theirs = HessianOperator(model, torch.nn.functional.cross_entropy, (torch.from_numpy(x), torch.from_numpy(y)))

    def cross_entropy(w, batch):
        return -jnp.mean(jax.nn.log_softmax(batch[0] @ w.T)[jnp.arange(len(batch[1])), batch[1]])

    ours = hessian_operator(cross_entropy, jnp.asarray(weight), (x, y))
    first, second = (estimate_spectrum(operator, 4, settle=None) for operator in (theirs, ours))
    np.testing.assert_allclose(second.alphas, first.alphas, rtol=1e-10)
    np.testing.assert_allclose(second.betas, first.betas, rtol=1e-10)


@pytest.mark.usefixtures("double")
def test_a_matrix_of_jax_and_a_function_of_its_vectors():
    matrix = np.diag(np.arange(1.0, 9.0))
    device = jnp.asarray(matrix)
    wanted = estimate_spectrum(matrix, settle=None)
    for source in (device, MatvecOperator(lambda v: device @ v, 8), MatvecOperator(jax.jit(lambda v: device @ v), 8)):
        found = estimate_spectrum(source, settle=None)
        np.testing.assert_allclose(found.nodes, wanted.nodes, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.alphas, wanted.alphas, rtol=0, atol=1e-12)


def test_float32_parameters_give_float32_products():
    params, batch = problem()
    operator = hessian_operator(loss, params, batch)
    assert operator.dtype == torch.float32
    np.testing.assert_allclose(columns(operator), dense(params, batch), atol=1e-5)


def test_batches_of_any_shape_with_sizes_of_their_own():
    params, (x, y) = problem()
    wanted = columns(hessian_operator(loss, params, (x, y)))
    dicts = [{"x": x[:4], "y": y[:4]}, {"x": x[4:], "y": y[4:]}]
    found = hessian_operator(lambda p, b: loss(p, (b["x"], b["y"])), params, dicts)
    np.testing.assert_allclose(columns(found), wanted, atol=1e-6)
    padded = [(np.pad(x, ((0, 3), (0, 0))), y, np.float32(11))]
    counted = hessian_operator(lambda p, b: loss(p, (b[0][:11], b[1])), params, padded, count=lambda b: int(b[2]))
    np.testing.assert_allclose(columns(counted), wanted, atol=1e-6)


def test_checkpoints_refuse_another_loss_or_point(tmp_path):
    params, batch = problem()
    settings = {"num_steps": 6, "settle": None, "checkpoint": tmp_path / "run.npz"}
    first = estimate_spectrum(hessian_operator(loss, params, batch), **settings)
    again = estimate_spectrum(hessian_operator(loss, params, batch), **settings)
    np.testing.assert_array_equal(first.alphas, again.alphas)
    moved = jax.tree.map(lambda leaf: leaf + 1e-3, params)
    strangers = [
        (lambda p, b: 1.001 * loss(p, b), params, batch),
        (loss, moved, batch),
        (loss, params, (batch[0] * 1.001, batch[1])),
    ]
    for stranger in strangers:
        with pytest.raises(ValueError, match="checkpoint of another problem"):
            estimate_spectrum(hessian_operator(*stranger), **settings)


def test_one_call_from_a_loss_to_its_schedule():
    params, batch = problem(40)
    schedule, estimate = jax_schedule(loss, params, batch, 50, lr=0.1, weight_decay=1e-3, num_steps=12, min_lr=1e-4)
    again = estimate_spectrum(hessian_operator(loss, params, batch), 12, weight_decay=1e-3, total_steps=50)
    assert estimate.spectrum == again.spectrum
    assert schedule == ec.eigencurve(ec.prepare(again.spectrum, 1e-3), 50, 0.1, 1e-4)


def bad_calls():
    params, batch = problem()
    x = jnp.ones((3, 2))
    yield "'loss' must be callable", TypeError, lambda: hessian_operator(3, params, batch)
    yield "at least one example", ValueError, lambda: hessian_operator(loss, params, [])
    yield "at least one example", ValueError, lambda: hessian_operator(loss, params, ragged(batch, 0)[:1])
    yield "arrays all of type float32", ValueError, lambda: hessian_operator(loss, {}, batch)
    yield r"float32.*\['float32', 'int32'\]", ValueError, lambda: hessian_operator(loss, [x, jnp.ones(2, int)], x)
    yield r"float32.*bfloat16", ValueError, lambda: hessian_operator(loss, x.astype(jnp.bfloat16), x)
    yield "a scalar: the mean over the batch", ValueError, lambda: hessian_operator(lambda w, b: b @ w, x[0], x)
    yield "leading dimension.*'count'", ValueError, lambda: hessian_operator(lambda w, b: w @ w * b, x[0], jnp.ones(()))
    yield "'count' must be an integer", TypeError, lambda: hessian_operator(loss, params, batch, count=lambda _: 1.5)
    yield "finite products", ValueError, lambda: hessian_operator(lambda w, _: jnp.linalg.norm(w), jnp.zeros(3), x)


@pytest.mark.parametrize(("match", "kind", "call"), list(bad_calls()))
def test_bad_input_is_refused(match, kind, call):
    with pytest.raises(kind, match=match):
        call()
