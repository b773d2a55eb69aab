"""The Hessian of a JAX loss, against the dense one of jax.hessian."""

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.slow


jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
import jax.numpy as jnp  # noqa: E402
from jax.flatten_util import ravel_pytree  # noqa: E402

import eigencurve as ec  # noqa: E402
from eigencurve.adapters.jax import hessian_operator, jax_schedule, preconditioned_by  # noqa: E402
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
    settings = {"num_products": 6, "settle": None, "checkpoint": tmp_path / "run.npz"}
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
    schedule, estimate = jax_schedule(loss, params, batch, 50, lr=0.1, weight_decay=1e-3, num_products=40, min_lr=1e-4)
    again = estimate_spectrum(hessian_operator(loss, params, batch), 40, weight_decay=1e-3, total_steps=50)
    assert estimate.spectrum == again.spectrum
    assert schedule == ec.eigencurve(ec.spectrum.prepare(again.spectrum, 1e-3), 50, 0.1, 1e-4)


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


OPTIMIZERS = {
    "adam": (optax.adam(0.01, b1=0.0, b2=0.9, eps=1e-3, eps_root=1e-4), {"b2": 0.9, "eps": 1e-3, "eps_root": 1e-4}),
    "adamw": (
        optax.chain(optax.clip_by_global_norm(1e6), optax.adamw(0.01, b1=0.0, b2=0.9, eps=1e-3, weight_decay=0.3)),
        {"b2": 0.9, "eps": 1e-3, "weight_decay": 0.3, "decoupled_weight_decay": True},
    ),
    "adam, L2": (
        optax.chain(optax.add_decayed_weights(0.3), optax.scale_by_adam(b1=0.0, b2=0.9), optax.scale(-0.01)),
        {"b2": 0.9, "eps": 1e-8, "weight_decay": 0.3},
    ),
    "adam, rate in the state": (
        optax.inject_hyperparams(optax.adam)(learning_rate=0.01, b1=0.0, b2=0.9),
        {"b2": 0.9, "eps": 1e-8},
    ),
    "rmsprop": (optax.rmsprop(0.01, eps=1e-3), {"eps": 1e-3}),
    "rmsprop, eps outside": (optax.rmsprop(0.01, eps=1e-3, eps_in_sqrt=False), {"eps": 1e-3, "eps_in_sqrt": False}),
    "rmsprop, corrected": (optax.rmsprop(0.01, decay=0.8, bias_correction=True), {"eps": 1e-8, "b2": 0.8}),
}


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_preconditioner_explains_the_update_of_optax(name):
    """P times the update is -lr (g + L2 decay * w), or with P times the decay if it is decoupled."""
    optimizer, settings = OPTIMIZERS[name]
    params, batch = problem()
    state = optimizer.init(params)
    for _ in range(4):
        gradient = jax.grad(loss)(params, batch)
        update, state = optimizer.update(gradient, state, params)
        before, params = params, optax.apply_updates(params, update)
    operator = preconditioned_by(hessian_operator(loss, params, batch), state, **settings)
    diagonal = operator.diagonal.numpy()
    decay = settings.get("weight_decay", 0.0) * np.asarray(ravel_pytree(before)[0])
    pull = decay * diagonal if operator.eigenvalue_shift else decay
    wanted = -0.01 * (np.asarray(ravel_pytree(gradient)[0]) + pull)
    np.testing.assert_allclose(diagonal * np.asarray(ravel_pytree(update)[0]), wanted, rtol=1e-9)
    coupled = 0.0 if operator.eigenvalue_shift else settings.get("weight_decay", 0.0)
    matrix = (dense(params, batch) + coupled * np.eye(operator.dim)) / np.sqrt(np.outer(diagonal, diagonal))
    np.testing.assert_allclose(columns(operator), matrix, atol=1e-9 * np.abs(matrix).max())


@pytest.mark.parametrize(
    ("optimizer", "settings", "message"),
    [
        (optax.sgd(0.1), {"b2": 0.9}, r"'state' must be an optax state with one of ScaleByAdamState, .* '0 of them'"),
        (optax.adam(0.1), {}, "'b2' must be given, because the state is bias-corrected"),
        (optax.adam(0.1), {"b2": 1.0}, "'b2' must be < 1"),
        (optax.adam(0.1), {"b2": 0.9, "eps": -1.0}, "'eps' must be >= 0"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(optimizer, settings, message):
    operator = hessian_operator(lambda w, x: jnp.mean((x @ w) ** 2), jnp.zeros(2), jnp.eye(2))
    _, state = optimizer.update(jnp.ones(2), optimizer.init(jnp.zeros(2)), jnp.zeros(2))
    with pytest.raises(ValueError, match=message):
        preconditioned_by(operator, state, **{"eps": 1e-8, **settings})


@pytest.mark.parametrize("optimizer", [optax.adam(0.1), optax.rmsprop(0.1)])
def test_a_state_of_other_parameters_or_before_the_first_update_is_refused(optimizer):
    operator = hessian_operator(lambda w, x: jnp.mean((x @ w) ** 2), jnp.zeros(2), jnp.eye(2))
    with pytest.raises(ValueError, match="'state' must be one after at least one update"):
        preconditioned_by(operator, optimizer.init(jnp.zeros(2)), b2=0.9, eps=1e-8)
    with pytest.raises(ValueError, match="'state' must be of 2 parameters, those of 'operator', got '3'"):
        preconditioned_by(operator, optimizer.init(jnp.zeros(3)), b2=0.9, eps=1e-8)
