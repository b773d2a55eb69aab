"""The preconditioned operator against dense matrices, and against the steps of real optimizers."""

import numpy as np
import pytest
import torch
from tests.hessian.matrices import matrix_operator
from tests.hessian.models import dense, dense_gauss_newton, dense_hessian, problem
from tests.hessian.optimizers import OPTIMIZERS, flat, take_steps
from torch import nn, optim
from torch.nn import functional as F

import eigencurve as ec
from eigencurve.hessian import (
    GaussNewtonOperator,
    HessianOperator,
    MatvecOperator,
    PreconditionedOperator,
    estimate_noise,
    estimate_spectrum,
    estimate_start,
    lanczos,
)  # fmt: skip
from eigencurve.spectrum.quadrature import gauss_quadrature
from eigencurve.theory.stability import adam_stability_limit


def trained(name="mlp", num_steps=3, kind=optim.AdamW, **settings):
    model, loss_fn, batch = problem(name)
    optimizer = take_steps(model, loss_fn, batch, kind(model.parameters(), **settings), num_steps)
    return model, loss_fn, batch, optimizer


def positive(dim, seed=0):
    return torch.rand(dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.1


def in_metric(matrix, diagonal):
    return matrix / torch.outer(diagonal, diagonal).sqrt()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_estimate_has_the_eigenvalues_of_the_dense_matrix(name):
    kind, settings = OPTIMIZERS[name]
    model, loss_fn, batch, optimizer = trained(kind=kind, **settings)
    operator = HessianOperator(model, loss_fn, batch).preconditioned_by(optimizer)
    matrix = dense_hessian(model, loss_fn, batch)
    if operator.eigenvalue_shift == 0:
        matrix += settings.get("weight_decay", 0.0) * torch.eye(len(matrix), dtype=matrix.dtype)
    estimate = estimate_spectrum(operator, settle=None)
    wanted = torch.linalg.eigvalsh(in_metric(matrix, operator.diagonal)).numpy()
    # A Lanczos run finds one copy of repeated eigenvalues, so compare distances to the nearest one.
    nodes = estimate.spectrum.eigenvalues
    assert estimate.reason == "exact"
    assert np.abs(nodes[:, None] - wanted).min(axis=0).max() <= 1e-7 * np.abs(wanted).max()
    np.testing.assert_allclose(nodes[[0, -1]], wanted[[0, -1]], rtol=1e-9)


@pytest.mark.parametrize("name", ["mlp", "conv"])
def test_products_equal_the_dense_gauss_newton_matrix(name):
    model, loss_fn, batch = problem(name)
    operator = GaussNewtonOperator(model, loss_fn, batch)
    diagonal = positive(operator.dim)
    wanted = in_metric(dense_gauss_newton(model.eval(), loss_fn, batch), diagonal)
    torch.testing.assert_close(dense(operator.preconditioned_by(diagonal)), wanted, rtol=1e-8, atol=1e-10)


def test_a_diagonal_can_have_several_forms():
    model, loss_fn, batch = problem("mlp")
    operator = HessianOperator(model, loss_fn, batch, parameters="2.*")
    by_name = {name: positive(p.numel(), len(name)).view_as(p) for name, p in model.named_parameters()}
    parts = [by_name["2.weight"], by_name["2.bias"]]
    for form in (by_name, parts, tuple(parts), flat(parts), flat(parts).numpy()):
        torch.testing.assert_close(operator.preconditioned_by(form).diagonal, flat(parts), rtol=0, atol=0)
    matrix = dense(operator)
    matvec = MatvecOperator(lambda v: matrix.numpy() @ v, operator.dim).preconditioned_by(flat(parts).numpy())
    torch.testing.assert_close(dense(matvec), dense(operator.preconditioned_by(by_name)))


def test_the_diagonal_is_a_copy_in_the_type_of_the_model():
    model, loss_fn, (x, y) = problem("mlp")
    operator = HessianOperator(model.float(), loss_fn, (x.float(), y))
    given = positive(operator.dim).bfloat16()
    preconditioned = operator.preconditioned_by(given)
    given.zero_()
    assert preconditioned.diagonal.dtype == torch.float32
    assert preconditioned(torch.ones(operator.dim)).dtype == torch.float32
    assert (preconditioned.diagonal > 0).all()


def test_an_operator_of_some_parameters_takes_their_part_of_the_state():
    model, loss_fn, batch, optimizer = trained()
    whole = HessianOperator(model, loss_fn, batch).preconditioned_by(optimizer)
    part = HessianOperator(model, loss_fn, batch, parameters="2.*").preconditioned_by(optimizer)
    torch.testing.assert_close(part.diagonal, whole.diagonal[-part.dim :], rtol=0, atol=0)


class Frozen:
    """A real optimizer on linear regression whose preconditioner does not move, so each step is an affine map."""

    def __init__(self, kind, decays, lr=1e-3):
        source = torch.Generator().manual_seed(3)
        self.model, self.lr = nn.Linear(3, 2).double(), lr
        x, y = (torch.randn(8, n, generator=source, dtype=torch.float64) for n in (3, 2))
        self.batch = (x, y)
        groups = [
            {"params": [parameter], "weight_decay": decay}
            for parameter, decay in zip(self.model.parameters(), decays, strict=True)
        ]
        self.optimizer = kind(groups, lr=lr, betas=(0.0, 1 - 1e-15), eps=0.0)
        take_steps(self.model, F.mse_loss, self.batch, self.optimizer, 1)
        for parameter in self.model.parameters():
            state = self.optimizer.state[parameter]
            state["step"].fill_(1e18)  # no bias correction
            state["exp_avg_sq"].copy_(torch.rand(parameter.shape, generator=source, dtype=torch.float64) + 0.2)

    def step(self, point):
        with torch.no_grad():
            nn.utils.vector_to_parameters(point, self.model.parameters())
        take_steps(self.model, F.mse_loss, self.batch, self.optimizer, 1)
        return flat(self.model.parameters())

    def contraction(self):
        """M of w -> w - lr (M w - b), column by column."""
        dim = len(flat(self.model.parameters()))
        origin = self.step(torch.zeros(dim, dtype=torch.float64))
        columns = [self.step(column) - origin for column in torch.eye(dim, dtype=torch.float64)]
        return (torch.eye(dim, dtype=torch.float64) - torch.stack(columns, dim=1)) / self.lr


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW])
@pytest.mark.parametrize("decays", [(0.0, 0.0), (0.5, 0.5), (0.5, 0.0)])
def test_eigenvalues_with_weight_decay_are_the_rates_of_a_real_optimizer(kind, decays):
    """The contraction of a step is 1 - lr λ, for coupled, decoupled, and partial weight decay."""
    frozen = Frozen(kind, decays)
    rates = torch.linalg.eigvals(frozen.contraction()).real.sort().values
    operator = HessianOperator(frozen.model, F.mse_loss, frozen.batch).preconditioned_by(frozen.optimizer)
    eigenvalues = torch.linalg.eigvalsh(dense(operator)) + operator.eigenvalue_shift
    torch.testing.assert_close(eigenvalues, rates, rtol=1e-9, atol=1e-9)
    assert operator.eigenvalue_shift == (decays[0] if kind is optim.AdamW and len(set(decays)) == 1 else 0.0)


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW])
def test_prepare_adds_the_decay_of_adamw_and_leaves_that_of_adam_in_the_products(kind):
    frozen = Frozen(kind, (0.5, 0.5))
    operator = HessianOperator(frozen.model, F.mse_loss, frozen.batch).preconditioned_by(frozen.optimizer)
    resolution = operator.eigenvalue_shift or float((0.5 / operator.diagonal).min())
    estimate = estimate_spectrum(operator, settle=None, weight_decay=resolution)
    prepared = ec.spectrum.prepare(estimate.spectrum, operator.eigenvalue_shift)
    assert estimate.preconditioner == operator.preconditioner == kind.__name__
    assert operator.smallest_decay == pytest.approx(resolution)
    rates = torch.linalg.eigvals(frozen.contraction()).real
    np.testing.assert_allclose([prepared.mu, prepared.L], [rates.min(), rates.max()], rtol=1e-9)


def test_gradients_and_displacements_in_the_new_coordinates():
    """x = P^(1/2) w: the gradient with respect to x by autograd, and differences of x."""
    model, loss_fn, batch = problem("mlp")
    operator = HessianOperator(model, loss_fn, batch)
    preconditioned = operator.preconditioned_by(positive(operator.dim))
    root = preconditioned.diagonal.sqrt()
    x = (root * flat(model.parameters())).requires_grad_()
    parts = (x / root).split([p.numel() for p in model.parameters()])
    values = {name: part.view_as(p) for part, (name, p) in zip(parts, model.named_parameters(), strict=True)}
    loss = loss_fn(torch.func.functional_call(model, values, (batch[0],)), batch[1])
    wanted = torch.autograd.grad(loss, x)[0]
    gradient = flat(torch.autograd.grad(loss_fn(model(batch[0]), batch[1]), list(model.parameters())))
    torch.testing.assert_close(preconditioned.transform_gradient(gradient), wanted)
    displacement = positive(operator.dim, seed=1)
    torch.testing.assert_close(preconditioned.transform_displacement(displacement), root * displacement)


def test_the_fingerprint_includes_the_diagonal_and_the_decay():
    operator, diagonal = matrix_operator(torch.float64), positive(3000)
    fingerprints = {
        operator.fingerprint(),
        PreconditionedOperator(operator, diagonal).fingerprint(),
        PreconditionedOperator(operator, 2 * diagonal).fingerprint(),
        PreconditionedOperator(operator, diagonal, weight_decay=0.1).fingerprint(),
        PreconditionedOperator(operator, diagonal, weight_decay=0.2).fingerprint(),
    }
    assert len(fingerprints) == 5
    assert PreconditionedOperator(operator, diagonal.clone()).fingerprint() in fingerprints


def test_a_run_resumes_and_refuses_another_state_of_the_optimizer(tmp_path):
    model, loss_fn, batch, optimizer = trained("conv")
    operator = HessianOperator(model, loss_fn, batch)
    settings = {"settle": None, "checkpoint": tmp_path / "run.npz"}
    estimate_spectrum(operator.preconditioned_by(optimizer), 8, **settings)
    resumed = estimate_spectrum(operator.preconditioned_by(optimizer), 16, **settings)
    direct = estimate_spectrum(operator.preconditioned_by(optimizer), 16, settle=None)
    np.testing.assert_array_equal(resumed.alphas[0], direct.alphas[0])
    for state in optimizer.state.values():
        state["step"] += 1
    with pytest.raises(ValueError, match="checkpoint"):
        estimate_spectrum(operator.preconditioned_by(optimizer), 16, **settings)


@pytest.mark.parametrize(
    ("preconditioner", "error", "message"),
    [
        (torch.ones(26, dtype=torch.float64), None, None),
        (torch.ones(25), ValueError, r"'diagonal' must be a tensor of 26 numbers .*got 'shape \(25,\)"),
        (torch.zeros(26), ValueError, r"'diagonal' must be finite and positive everywhere, got '0 at position 0'"),
        (torch.full((26,), float("nan")), ValueError, "finite and positive everywhere, got 'nan at position 0'"),
        ({"0.weight": torch.ones(4, 3)}, ValueError, "a mapping with every parameter, got 'none for 0.bias'"),
        ([torch.ones(4, 3)], ValueError, "a list of 4 tensors, one per parameter, got 1"),
        ([torch.ones(12), *[torch.ones(1)] * 3], ValueError, r"shapes \(\(4, 3\) for 0.weight\), got \(12,\)"),
        ("adam", TypeError, r"HessianOperator.preconditioned_by: 'preconditioner' must be an optimizer, or the diag"),
    ],
)
def test_a_wrong_preconditioner_is_refused(preconditioner, error, message):
    operator = HessianOperator(*problem("mlp"))
    if error is None:
        assert operator.preconditioned_by(preconditioner).dim == operator.dim
        return
    with pytest.raises(error, match=message):
        operator.preconditioned_by(preconditioner)


def test_an_operator_without_parameters_takes_only_a_diagonal():
    operator = MatvecOperator(lambda v: v, dim=2)
    for wrong in (optim.Adam([nn.Parameter(torch.zeros(2))]), [1.0, 2.0]):
        with pytest.raises(TypeError, match="'preconditioner' must be a flat tensor or array"):
            operator.preconditioned_by(wrong)


@pytest.mark.parametrize("decay", [-1.0, torch.full((3000,), -1.0), torch.ones(2)])
def test_a_wrong_weight_decay_is_refused(decay):
    with pytest.raises(ValueError, match="'weight_decay' must be"):
        PreconditionedOperator(matrix_operator(), positive(3000), weight_decay=decay)


def shares_of_the_limit(beta1, lr=3e-3, seed=0):
    """Largest preconditioned eigenvalue over its limit, after 100 steps of full-batch AdamW and then from 1600 on."""
    source = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(200, n, generator=source, dtype=torch.float64) for n in (8, 2))
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_((2 * torch.rand(p.shape, generator=source, dtype=torch.float64) - 1) * p.shape[-1] ** -0.5)
    optimizer = optim.AdamW(model.parameters(), lr=lr, betas=(beta1, 0.999), weight_decay=0.1)
    limit = adam_stability_limit(lr, beta1, weight_decay=0.1)
    for num_steps in (100, 1500, *[300] * 5):
        take_steps(model, F.mse_loss, (x, y), optimizer, num_steps)
        operator = HessianOperator(model, F.mse_loss, (x, y), check=False).preconditioned_by(optimizer)
        start = torch.randn(operator.dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        run = lanczos(operator, start, 40)
        yield gauss_quadrature(run.alphas, run.betas)[0].max() / limit


@pytest.mark.parametrize("beta1", [0.9, 0.5])
def test_full_batch_adamw_settles_at_its_stability_limit(beta1):
    """As observed in arXiv:2207.14484. With the seeds 0 to 5, the late shares are between 0.93 and 1.05."""
    first, *late = shares_of_the_limit(beta1)
    assert abs(first - 1) > 0.2
    assert np.abs(np.array(late) - 1).max() < 0.15


def test_the_noise_and_the_start_are_measured_in_the_metric_of_the_optimizer():
    """Sums over the octaves are exact in the metric: tr(P^-1 C) over many sign vectors, and Δᵀ P^1/2 |A| P^1/2 Δ."""
    torch.manual_seed(0)
    x, y = torch.randn(64, 5, dtype=torch.float64), torch.randint(0, 3, (64,))
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    for _ in range(30):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    operator = HessianOperator(model, F.cross_entropy, (x, y)).preconditioned_by(optimizer)
    estimate = estimate_spectrum(operator, 57, settle=None, progress=False)
    noise = estimate_noise(operator, estimate, batch_size=8, num_samples=60, num_products=57, progress=False)
    parameters = list(model.parameters())
    gradients = torch.stack(
        [
            torch.cat([part.flatten() for part in torch.autograd.grad(F.cross_entropy(model(a), b), parameters)])
            for a, b in zip(x.split(1), y.split(1), strict=True)
        ]
    )
    exact = torch.cov((gradients / operator.diagonal.sqrt()).T).trace().item()
    assert noise.trace == pytest.approx(exact, rel=0.1)  # 60 sign vectors: a standard error of 3 %
    displacement = torch.randn(operator.dim, dtype=torch.float64)
    start = estimate_start(operator, displacement, estimate, progress=False)
    moved = operator.transform_displacement(displacement)
    matrix = torch.stack([operator(row) for row in torch.eye(operator.dim, dtype=torch.float64)])
    values, vectors = torch.linalg.eigh(matrix)
    expected = 0.5 * float((values.abs() * (vectors.T @ moved) ** 2).sum())
    assert start.loss == pytest.approx(expected, rel=0.02)
