import pytest
import torch
from tests.hessian.models import generator, scramble
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from eigencurve.hessian.kernels import FastKernels
from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.products import gauss_newton_product, hessian_product, with_hooks_noticed


def test_unused_parameters_and_linear_losses_have_no_curvature():
    model = nn.ModuleDict({"used": nn.Linear(2, 1), "idle": nn.Linear(2, 1)}).double()
    x = torch.ones(3, 2, dtype=torch.float64)
    operator = HessianOperator.from_objective(model, lambda m, b: m["used"](b).mean(), [x])
    assert not operator(torch.ones(operator.dim, dtype=torch.float64)).any()


class OnceOnly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * torch.cos(ctx.saved_tensors[0])


def test_without_a_double_backward_finite_differences_are_offered_and_measured():
    class Once(nn.Linear):
        def forward(self, x):
            return OnceOnly.apply(super().forward(x))

    model, x = scramble(Once(3, 2).double()), torch.randn(5, 3, generator=generator(), dtype=torch.float64)
    batch = (x, torch.zeros(5, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"differentiable twice.*product='finite_difference'"):
        HessianOperator(model, F.mse_loss, batch)
    found = HessianOperator(model, F.mse_loss, batch, product="finite_difference")
    exact = nn.Linear(3, 2).double()
    exact.load_state_dict(model.state_dict())
    expected = HessianOperator(exact, lambda z, y: F.mse_loss(torch.sin(z), y), batch)
    vector = torch.randn(8, generator=generator(), dtype=torch.float64)
    gap = float((found(vector) - expected(vector)).norm() / expected(vector).norm())
    # Rounding differs between vectors, and the reported error is that of two others.
    assert gap < 3 * found.product_error < 1e-8


def quadratic(dim=5):
    """½ wᵀAw with a symmetric A, its parameter and a vector."""
    matrix = torch.randn(dim, dim, generator=generator(), dtype=torch.float64)
    matrix = matrix + matrix.T
    w = torch.ones(dim, dtype=torch.float64, requires_grad=True)
    return matrix, w, torch.arange(1.0, dim + 1, dtype=torch.float64)


def test_the_hessian_of_a_quadratic_is_its_matrix():
    matrix, w, v = quadratic()
    product = hessian_product(w @ matrix @ w / 2, [w])
    for _ in range(2):
        torch.testing.assert_close(product([v])[0], matrix @ v)


def test_gauss_newton_of_a_square_is_the_jacobian_s_gram_matrix():
    jacobian, w, v = quadratic()
    product = gauss_newton_product(jacobian @ w, lambda z: z.square().sum() / 2, [w])
    torch.testing.assert_close(product([v])[0], jacobian.T @ (jacobian @ v))


class Quadratic(nn.Module):
    """½ wᵀAw."""

    def __init__(self):
        super().__init__()
        self.matrix, w, self.vector = quadratic()
        self.w = nn.Parameter(w.detach())

    def loss(self, _batch):
        if self.matrix is None:
            raise ArithmeticError
        return self.w @ self.matrix @ self.w / 2


def test_differences_are_exact_for_a_quadratic_and_leave_the_parameters_alone():
    model = Quadratic()
    before, address = model.w.detach().clone(), model.w.data_ptr()
    operator = HessianOperator.from_objective(model, Quadratic.loss, [torch.ones(1)], product="finite_difference")
    torch.testing.assert_close(operator(model.vector), model.matrix @ model.vector)
    assert not operator(0 * model.vector).any()
    model.matrix = None
    with pytest.raises(ArithmeticError):
        operator.fresh_product(model.vector, 0)
    assert torch.equal(model.w, before)
    assert model.w.data_ptr() == address


class Recomputed(nn.Module):
    """A network whose backward pass runs its first part again."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh()).double()
        self.last = nn.Linear(5, 2).double()

    def forward(self, x):
        return self.last(checkpoint(self.first, x, use_reentrant=False))


def test_recomputed_activations_are_those_of_the_operators_mode():
    """The model is in train mode, in which batch norm gives other values, and the products are those of eval mode."""
    model, x = Recomputed().train(), torch.randn(6, 3, dtype=torch.float64, generator=generator())
    batch = (x, torch.zeros(6, 2, dtype=torch.float64))
    operator = HessianOperator(model, nn.MSELoss(), batch)
    v = torch.arange(1.0, operator.dim + 1, dtype=torch.float64)
    plain = HessianOperator(nn.Sequential(model.first, model.last), nn.MSELoss(), batch)
    for _ in range(2):
        torch.testing.assert_close(operator(v), plain(v))
    assert all(module.training for module in model.modules())


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return w**3

    @staticmethod
    def backward(ctx, slope):
        return 3 * ctx.saved_tensors[0] ** 2 * slope


def test_a_product_is_native_unless_python_code_takes_part():
    matrix, w, _ = quadratic()
    assert hessian_product(w @ matrix @ w, [w]).is_native
    assert not hessian_product(Cube.apply(Cube.apply(w)).sum(), [w]).is_native
    assert gauss_newton_product(matrix @ w, lambda z: z.square().sum(), [w]).is_native
    assert not gauss_newton_product(Cube.apply(w), lambda z: z.square().sum(), [w]).is_native
    assert with_hooks_noticed(lambda: hessian_product(w @ matrix @ w, [w])).is_native
    assert not with_hooks_noticed(
        lambda: hessian_product(checkpoint(lambda u: u @ matrix @ u, w, use_reentrant=False), [w])
    ).is_native


def test_the_functions_of_this_package_count_as_native():
    leaf = torch.ones(3, 4, requires_grad=True)
    with FastKernels():
        assert hessian_product(F.gelu(leaf).square().sum(), [leaf]).is_native


class RecomputedBlock(nn.Module):
    """A network whose backward pass runs its activation and LSTM again."""

    def __init__(self, recompute):
        super().__init__()
        torch.manual_seed(0)
        self.recompute = recompute
        self.first = nn.Sequential(nn.Linear(3, 6), nn.LayerNorm(6), nn.GELU(), nn.LSTM(6, 4, batch_first=True))
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        outputs, _ = checkpoint(self.first, x, use_reentrant=False) if self.recompute else self.first(x)
        return self.last(outputs)


@pytest.mark.parametrize("microbatch", [None, 2])
def test_recomputed_layers_give_the_same_products(microbatch):
    """PyTorch runs its own layers when it recomputes, so the first run must not replace them."""
    batch = (torch.randn(4, 5, 3, dtype=torch.float64, generator=generator()), torch.zeros(4, 5, 2).double())
    operators = [
        HessianOperator(RecomputedBlock(recompute).double(), nn.MSELoss(), batch, microbatch=microbatch)
        for recompute in (True, False)
    ]
    v = torch.arange(1.0, operators[0].dim + 1, dtype=torch.float64)
    for _ in range(2):
        torch.testing.assert_close(operators[0](v), operators[1](v))
