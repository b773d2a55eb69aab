import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import eigencurve as ec
from eigencurve.schedules.decays import one_minus_power


def torch_rates(make, num_steps, lr=0.3):
    """The rates of a PyTorch scheduler."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler, seen = make(optimizer), []
    for _ in range(num_steps):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return seen


@pytest.mark.parametrize("power", [0.5, 0.9, 1.0, 2.0])
def test_polynomial_agrees_with_pytorch(power):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    seen = torch_rates(lambda o: torch.optim.lr_scheduler.PolynomialLR(o, total_iters=60, power=power), 60)
    # PyTorch multiplies the rate by a rounded factor at every step.
    assert_allclose(ec.polynomial(60, lr=0.3, power=power).values(), seen, rtol=1e-11)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_polynomial_agrees_with_transformers_and_optax(power):
    ours = ec.polynomial(60, lr=0.3, min_lr=0.03, power=power).values()
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    make = transformers.get_polynomial_decay_schedule_with_warmup
    seen = torch_rates(lambda o: make(o, 0, num_training_steps=60, lr_end=0.03, power=power), 60)
    assert_allclose(ours, seen, rtol=1e-12)
    optax = pytest.importorskip("optax", reason="optax is not installed")
    other = optax.polynomial_schedule(0.3, 0.03, power, transition_steps=60)
    # optax computes in float32.
    assert_allclose(ours, [float(other(t)) for t in range(60)], rtol=2e-5)


@pytest.mark.parametrize(("rise", "timescale"), [(0, 7), (5, 5), (5, 20)])
def test_inverse_sqrt_agrees_with_transformers(rise, timescale):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    make = transformers.get_inverse_sqrt_schedule
    seen = torch_rates(lambda o: make(o, num_warmup_steps=rise, timescale=timescale), 60)
    assert_allclose(ec.inverse_sqrt(60 - rise, lr=0.3, timescale=timescale).values(), seen[rise:], rtol=1e-12)


def test_inverse_sqrt_has_no_end():
    assert_array_equal(ec.inverse_sqrt(900, 0.3).values()[:50], ec.inverse_sqrt(50, 0.3).values())
    assert ec.inverse_sqrt(20_000, 0.3)(10_000) == pytest.approx(0.3 / 2**0.5)
    assert ec.inverse_sqrt(100, 0.3, timescale=ec.schedules.fraction(0.1)).timescale == 10


@given(T=st.integers(1, 300), lr=st.floats(1e-4, 10))
def test_rex_is_the_formula_of_its_paper(T, lr):
    """eta_0 (1 - t/T) / (1/2 + 1/2 (1 - t/T)), and above every linear decay."""
    literal = [lr * (1 - t / T) / (1 / 2 + 1 / 2 * (1 - t / T)) for t in range(T)]
    assert_allclose(ec.rex(T, lr).values(), literal, rtol=1e-12)
    assert (ec.rex(T, lr).values() >= ec.linear(T, lr).values()).all()


def test_linear_is_a_polynomial_and_one_minus_the_first_power():
    for f in (ec.polynomial(50, 0.3, 0.1), one_minus_power(50, 0.3, 0.1, power=1.0)):
        assert_allclose(f.values(), ec.linear(50, 0.3, 0.1).values(), rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ec.polynomial(10, 0.1, power=0.0), r"polynomial: 'power' must be > 0"),
        (lambda: ec.polynomial(10, 0.1, min_lr=0.2), r"polynomial: 'min_lr' must be <= lr"),
        (lambda: one_minus_power(10, 0.1, power=-1.0), r"one_minus_power: 'power' must be > 0"),
        (lambda: ec.inverse_sqrt(10, 0.1, timescale=0), r"inverse_sqrt: 'timescale' must be >= 1"),
        (lambda: ec.rex(10, 0.1, min_lr=-1.0), r"rex: 'min_lr' must be >= 0"),
    ],
)
def test_refuses_bad_settings(call, match):
    with pytest.raises(ValueError, match=match):
        call()
