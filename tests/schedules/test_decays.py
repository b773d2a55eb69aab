import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tests.reference import schedules as reference

import eigencurve as ec
from eigencurve._check import ArgumentValueError
from eigencurve.schedules.decays import TAILS, half_cosine, one_minus_power, tail_of

rates = st.floats(1e-4, 10)
# The weight of the first rate as a function of x = t/n, written once more.
WEIGHTS = {
    "linear": lambda x: 1 - x,
    "cosine": lambda x: (1 + np.cos(np.pi * x)) / 2,
    "1-sqrt": lambda x: 1 - np.sqrt(x),
    "1-square": lambda x: 1 - x * x,
    "sqrt": lambda x: np.sqrt(1 - x),
    "square": lambda x: (1 - x) ** 2,
}


@given(T=st.integers(2, 400), lr=rates, ratio=st.floats(1e-6, 1))
def test_inverse_time_and_exponential_match_their_transcription_and_end_at_min_lr(T, lr, ratio):
    for make, literal in ((ec.inverse_time, reference.inverse_time), (ec.exponential, reference.exponential)):
        f = make(T, lr, lr * ratio)
        # The transcription multiplies a rounded gamma T times.
        assert_allclose(f.values(), literal(T, lr, lr * ratio), rtol=1e-11)
        assert_allclose(f(T - 1), lr * ratio, rtol=1e-15)


@given(T=st.integers(1, 400), lr=rates, ratio=st.floats(0, 1), alpha=st.sampled_from([0.5, 1.0, 2.0, 3.3]))
def test_cosine_and_its_powers_match_their_transcription(T, lr, ratio, alpha):
    literal = reference.cosine_power(T, lr, lr * ratio, alpha)
    assert_allclose(ec.cosine_power(T, lr, lr * ratio, alpha).values(), literal, rtol=1e-12, atol=1e-15 * lr)
    assert_array_equal(ec.cosine(T, lr, lr * ratio).values(), ec.cosine_power(T, lr, lr * ratio, alpha=1.0).values())


def test_cosine_power_agrees_with_optax():
    optax = pytest.importorskip("optax", reason="optax is not installed")
    for alpha in (0.5, 1.0, 2.0):
        other = optax.cosine_decay_schedule(init_value=0.3, decay_steps=500, alpha=0.1, exponent=alpha)
        ours = ec.cosine_power(500, lr=0.3, min_lr=0.03, alpha=alpha)
        # optax computes in float32.
        assert_allclose(ours.values(), [float(other(t)) for t in range(500)], rtol=2e-5)


def test_smaller_powers_keep_the_rate_high_for_longer():
    curves = [ec.cosine_power(1000, 1.0, alpha=a).values()[1:] for a in (0.5, 1.0, 2.0)]
    assert (curves[0] > curves[1]).all()
    assert (curves[1] > curves[2]).all()
    assert np.isfinite(curves).all()


def test_the_half_cosine_keeps_its_digits_at_the_end():
    """There it is (π x/2)², where x is the distance from the end."""
    left = np.array([1e-3, 1e-6, 1e-9])
    assert_allclose(half_cosine(1 - left), (np.pi * (1 - (1 - left)) / 2) ** 2, rtol=1e-6)
    assert_allclose(half_cosine(np.array([0.0, 0.25, 0.5, 1.0])), [1, (1 + math.sqrt(0.5)) / 2, 0.5, 0], atol=1e-16)


def test_linear_falls_by_equal_amounts():
    assert_allclose(np.diff(ec.linear(50, 1.0, min_lr=0.2).values()), -0.8 / 50, rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_the_smallest_last_rate_still_gives_a_decreasing_curve():
    for make in (ec.inverse_time, ec.exponential):
        rates = make(100, 0.1, 1e-309).values()
        assert np.isfinite(rates).all()
        assert (np.diff(rates) < 0).all()
        assert_allclose(rates[[0, -1]], [0.1, 1e-309], rtol=1e-12)


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


@pytest.mark.parametrize("shape", WEIGHTS)
def test_tails_are_their_formulas(shape):
    values = tail_of("f", "tail", shape, 200, 0.5, 0.1).values()
    assert_allclose(values, 0.1 + 0.4 * WEIGHTS[shape](np.arange(200) / 200), rtol=1e-12)


def test_the_others_reach_their_last_rate_at_the_last_step():
    assert set(TAILS) == {*WEIGHTS, "exponential", "inverse"}
    assert_allclose(np.diff(np.log(tail_of("f", "tail", "exponential", 50, 0.5, 0.1).values())), np.log(0.2) / 49)
    assert_allclose(np.diff(1 / tail_of("f", "tail", "inverse", 50, 0.5, 0.1).values()), 8 / 49)


@pytest.mark.parametrize(("shape", "argument"), [("slow", "shape"), ("inverse", "min_lr")])
def test_a_bad_tail_names_the_arguments_of_the_caller(shape, argument):
    with pytest.raises(ArgumentValueError) as error:
        tail_of("cooldown", "shape", shape, 5, 0.5, 0.0)
    assert (error.value.function, error.value.argument) == ("cooldown", argument)


@pytest.mark.parametrize(
    ("make", "settings", "argument", "value"),
    [
        (ec.cosine, {"min_lr": 0.2}, "min_lr", 0.2),
        (ec.cosine, {"min_lr": -0.2}, "min_lr", -0.2),
        (ec.linear, {"min_lr": 0.2}, "min_lr", 0.2),
        (ec.rex, {"min_lr": -1.0}, "min_lr", -1.0),
        (ec.inverse_time, {"min_lr": 0.2}, "min_lr", 0.2),
        (ec.inverse_time, {"min_lr": 0.0}, "min_lr", 0.0),
        (ec.inverse_time, {"min_lr": 1e-320}, "min_lr", 1e-320),
        (ec.exponential, {"min_lr": 0.0}, "min_lr", 0.0),
        (ec.cosine_power, {"alpha": 0.0}, "alpha", 0.0),
        (ec.cosine_power, {"alpha": -1.0}, "alpha", -1.0),
        (ec.polynomial, {"power": 0.0}, "power", 0.0),
        (ec.polynomial, {"min_lr": 0.2}, "min_lr", 0.2),
        (one_minus_power, {"power": -1.0}, "power", -1.0),
        (ec.inverse_sqrt, {"timescale": 0}, "timescale", 0),
    ],
)
def test_bad_settings_are_refused(make, settings, argument, value):
    with pytest.raises(ArgumentValueError) as error:
        make(100, 0.1, **settings)
    assert (error.value.function, error.value.argument, error.value.value) == (make.__name__, argument, value)
