import pytest
import torch
from tests.hessian.models import generator

from eigencurve.hessian import HessianOperator
from eigencurve.hessian.differences import choose_step, first_step, relative_size
from eigencurve.hessian.space import whole_space
from paper.models.transformer import Transformer, next_byte_loss


def test_a_size_is_relative_unless_the_reference_is_zero():
    two, zero, space = torch.tensor([2.0, 0.0]), torch.zeros(2), whole_space(2)
    assert relative_size(space, two, 4 * two) == 0.25
    assert relative_size(space, two, zero) == 2.0


def model_product(rounding, truncation):
    """Products with diag(1, 1000) whose errors are r/h for the flat direction and t h² for the sharp one."""

    def product(vector, step):
        exact = torch.tensor([1.0, 1000.0], dtype=torch.float64) * vector
        wrong = torch.tensor([rounding / step * vector[0].sign(), truncation * step**2 * exact[1]])
        return exact + wrong

    return product


@pytest.mark.parametrize(("rounding", "truncation"), [(1e-9, 1e4), (1e-12, 1e2), (1e-6, 1e6)])
@pytest.mark.parametrize("start", [1e-6, 1e-4, 1e-2])
def test_the_step_balances_rounding_and_truncation(rounding, truncation, start):
    """The vector lies along the flat direction, and three products turn it to the sharp one."""
    vector = torch.tensor([1.0, 1e-5], dtype=torch.float64)
    product = model_product(rounding, truncation)
    step, error = choose_step(product, whole_space(2), vector, start)
    best = min(max(rounding / (2 * h), 3 * truncation * h**2) for h in (start * 2.0**k for k in range(-10, 11)))
    assert error == pytest.approx(best, rel=0.1)
    assert max(rounding / step, truncation * step**2) <= 3 * error


def test_a_linear_loss_has_no_error():
    step, error = choose_step(lambda vector, _step: torch.zeros_like(vector), whole_space(3), torch.ones(3), 1e-3)
    assert (step, error) == (1e-3, 0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_reported_error_holds_along_random_and_sharp_directions(dtype):
    torch.manual_seed(0)
    model = Transformer(33, 16, 2, 2, 12).to(dtype)
    text = torch.randint(0, 33, (4, 13), generator=generator())
    batch = (text[:, :-1], text[:, 1:])
    exact = HessianOperator(model, next_byte_loss, batch)
    found = HessianOperator(model, next_byte_loss, batch, product="finite_difference")
    flat = torch.randn(exact.dim, generator=generator(7), dtype=dtype)
    sharp = flat
    for _ in range(20):
        sharp = exact(sharp)
        sharp = sharp / sharp.norm()
    errors = [relative_size(whole_space(exact.dim), found(v) - exact(v), exact(v)) for v in (flat, sharp)]
    assert max(errors) < 2 * found.product_error
    assert found.product_error < {torch.float32: 1e-3, torch.float64: 1e-8}[dtype]
    # The usual step, the cube root of the rounding error, is far too long along the sharp direction.
    usual = found.fresh_product(sharp, 0, step=64 * first_step(dtype))
    assert relative_size(whole_space(exact.dim), usual - exact(sharp), exact(sharp)) > 5 * max(errors)
