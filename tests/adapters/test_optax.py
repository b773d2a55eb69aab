import numpy as np
import pytest
from tests.schedules.test_segments import LONG, relative_error

import eigencurve as ec

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
import jax.numpy as jnp  # noqa: E402

from eigencurve.adapters.optax import optax_schedule  # noqa: E402
from eigencurve.schedules.segments import breaks  # noqa: E402


def places(f, num=4000):
    """Both ends, both sides of every break, and random steps; a fixed number, so that JAX compiles once."""
    near = (breaks(f)[:, None] + np.arange(-1, 2)).ravel().clip(0, f.total_steps - 1)[: num // 2]
    drawn = np.random.default_rng(0).integers(0, f.total_steps, num - len(near))
    return np.concatenate((near, drawn))


@pytest.mark.parametrize("make", LONG.values(), ids=LONG.keys())
def test_every_kind_is_float32_exact_for_a_million_traced_steps(make):
    f = make(10**6, 0.1)
    steps = places(f)
    rates = jax.jit(jax.vmap(optax_schedule(f)))(jnp.asarray(steps))
    assert rates.dtype == jnp.float32
    assert relative_error(np.asarray(rates), f(steps)).max() <= 2**-22


def test_the_step_is_traced_in_a_scan_and_may_be_an_array():
    f = ec.step_decay(50, 0.5)
    rate = optax_schedule(f)
    scanned = jax.lax.scan(lambda t, _: (t + 1, rate(t)), jnp.int32(0), None, length=52)[1]
    np.testing.assert_array_equal(scanned, rate(np.arange(52)))
    np.testing.assert_array_equal(scanned, f(np.arange(52)).astype(np.float32))
    assert rate(7).shape == ()
    assert float(rate(jnp.uint8(200))) == float(rate(np.int64(49)))


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_cosine_power_is_optax_s_cosine_with_an_exponent(exponent):
    T, steps = 10**6, np.arange(0, 10**6, 997)
    with jax.enable_x64(True):  # in float32, optax's own schedule has no correct digit at the end
        wanted = np.asarray(optax.cosine_decay_schedule(0.1, T, exponent=exponent)(steps.astype(np.float64)))
    rates = np.asarray(optax_schedule(ec.cosine_power(T, 0.1, alpha=exponent))(steps))
    # 1 + cos loses digits near zero in float64, too
    np.testing.assert_allclose(rates, wanted, rtol=2**-21)


def test_hurt_5_the_first_injected_update_has_the_first_rate_and_the_state_shows_it():
    f, params = ec.linear(5, 0.5), jnp.zeros(())
    optimizer = optax.inject_hyperparams(optax.sgd)(learning_rate=optax_schedule(f))
    state = optimizer.init(params)
    assert float(state.hyperparams["learning_rate"]) == f(0)
    for t in range(7):
        updates, state = optimizer.update(jnp.ones(()), state, params)
        assert -float(updates) == float(state.hyperparams["learning_rate"]) == pytest.approx(f(t), rel=2**-22)


def test_joined_by_optax_it_starts_at_its_own_zero():
    f = ec.cosine(10, 0.5)
    with jax.debug_nans(True):
        both = optax.join_schedules([optax.linear_schedule(0.0, 0.5, 4), optax_schedule(f)], boundaries=[4])
        rates = [float(both(t)) for t in range(16)]
    np.testing.assert_allclose(rates[:4], [0, 0.125, 0.25, 0.375])
    np.testing.assert_allclose(rates[4:], f(np.arange(12)), rtol=2**-22)


def test_hurt_6_the_state_consists_of_arrays():
    optimizer = optax.adamw(optax_schedule(ec.cosine(10, 0.5)))
    state = optimizer.init({"w": jnp.zeros(3)})
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state))


def test_with_x64_counts_may_be_int32_or_int64():
    f = ec.cosine(1000, 0.5)
    with jax.enable_x64(True):
        rate = optax_schedule(f)
        for kind in (jnp.int32, jnp.int64):
            assert float(rate(kind(700))) == pytest.approx(f(700), rel=2**-22)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_updates_keep_their_own_type(dtype):
    optimizer = optax.sgd(optax_schedule(ec.cosine(1000, 0.5)))
    params = jnp.ones(3, dtype)
    updates, _ = optimizer.update(params, optimizer.init(params), params)
    assert updates.dtype == dtype


def test_bad_arguments():
    f = ec.cosine(10, 0.5)
    with pytest.raises(TypeError, match="'schedule' must be a Schedule"):
        optax_schedule(0.1)
    with pytest.raises(ValueError, match="'scale' must be > 0"):
        optax_schedule(f, scale=0.0)
    for bad in (1.0, jnp.float32(3), True):
        with pytest.raises(TypeError, match="'count' must be an integer"):
            jax.jit(optax_schedule(f))(bad)
