"""The gradient noise in the octaves of H, against the dense covariance and the dense Hessian."""

import json
import math

import numpy as np
import pytest
import torch
from tests.hessian.matrices import Counting
from tests.hessian.models import dense_hessian, problem
from tests.hessian.test_gradients import example_gradients
from tests.torchrun import run_in_two
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve.hessian import GaussNewtonOperator, HessianOperator, estimate_noise, estimate_spectrum
from eigencurve.hessian.loop import Interrupted
from eigencurve.hessian.noise import pooled
from eigencurve.spectrum.octaves import octave_counts

DECAY = 1e-3


def regression(num_examples=40, dim=12, seed=0, scale=1.5):
    """A linear model near the minimum of its squared loss, with eigenvalues over several octaves."""
    source = torch.Generator().manual_seed(seed)
    widths = 2.0 ** (-torch.arange(dim) / scale)
    x = torch.randn(num_examples, dim, generator=source, dtype=torch.float64) * widths
    y = x @ torch.ones(dim, 1, dtype=torch.float64) + torch.randn(
        num_examples, 1, generator=source, dtype=torch.float64
    )
    model = nn.Linear(dim, 1, bias=False).double()
    with torch.no_grad():
        model.weight.fill_(0.9)
    return model, lambda z, t: F.mse_loss(z, t) / 2, (x, y)


def logistic():
    model, _, (x, y) = regression()
    return model, F.binary_cross_entropy_with_logits, (x, (y > 0).double())


def dense_traces(model, loss_fn, batch, grid):
    """Trace of C in each octave, of HC, and the eigenvalues of H, all by dense linear algebra."""
    hessian = dense_hessian(model, loss_fn, batch).numpy()
    covariance = torch.cov(example_gradients(model, loss_fn, batch).T, correction=1).numpy()
    eigenvalues, vectors = np.linalg.eigh(hessian)
    masses = np.einsum("ij,ik,kj->j", vectors, covariance, vectors)
    return grid.total(eigenvalues, masses), float(np.trace(hessian @ covariance)), np.trace(covariance)


@pytest.mark.parametrize("make", [regression, logistic])
def test_the_mean_over_sign_vectors_is_the_covariance_in_every_octave(make):
    model, loss_fn, batch = make()
    operator = HessianOperator(model, loss_fn, batch, check=False)
    spectrum = ec.Spectrum.from_matrix(dense_hessian(model, loss_fn, batch).numpy())
    noise = estimate_noise(operator, spectrum, 8, num_samples=300, weight_decay=DECAY)
    grid = octave_counts(spectrum, DECAY, 12)
    masses, trace_hc, trace = dense_traces(model, loss_fn, batch, grid)
    # 300 independent sign vectors: four standard errors, from their own scatter.
    scatter = noise.octaves.error / noise.octaves.sigma2 * noise.octaves.mass
    assert (np.abs(noise.octaves.mass - masses) < 4 * scatter).all()
    np.testing.assert_allclose(noise.trace, trace, rtol=0.15)
    np.testing.assert_allclose(noise.trace_hc, trace_hc, rtol=0.2)
    np.testing.assert_allclose(noise.octaves.mass.sum(), noise.trace, rtol=1e-12)
    np.testing.assert_allclose(noise.octaves.sigma2 * 8 * grid.eigenvalue_sum, noise.octaves.mass, rtol=1e-12)
    np.testing.assert_allclose(grid.num_eigenvalues.sum(), 12)
    assert noise.num_examples == 40
    assert noise.num_products == 301 * 12


def test_a_network_has_the_noise_of_its_own_examples():
    model, loss_fn, batch = problem("mlp", num_examples=40)
    operator = HessianOperator(model, loss_fn, batch, check=False)
    estimate = estimate_spectrum(operator, 100, weight_decay=DECAY)
    noise = estimate_noise(operator, estimate, 1, num_samples=200)
    assert noise.weight_decay == DECAY
    masses, _, trace = dense_traces(model, loss_fn, batch, octave_counts(estimate.spectrum, DECAY, operator.dim))
    scatter = noise.octaves.error / np.maximum(noise.octaves.sigma2, 1e-300) * noise.octaves.mass
    assert (np.abs(noise.octaves.mass - masses) < 4 * scatter + 1e-10).all()
    np.testing.assert_allclose(noise.trace, trace, rtol=0.1)


def test_the_noise_can_come_from_more_examples_than_the_products():
    model, loss_fn, batch = regression(num_examples=60)
    few = tuple(part[:20] for part in batch)
    operator, every = (HessianOperator(model, loss_fn, some, check=False) for some in (few, batch))
    spectrum = ec.Spectrum.from_matrix(dense_hessian(model, loss_fn, few).numpy())
    noise = estimate_noise(operator, spectrum, 8, num_samples=300, weight_decay=DECAY, examples=every)
    eigenvalues, vectors = np.linalg.eigh(dense_hessian(model, loss_fn, few).numpy())
    covariance = torch.cov(example_gradients(model, loss_fn, batch).T, correction=1).numpy()
    masses = octave_counts(spectrum, DECAY, 12).total(
        eigenvalues, np.einsum("ij,ik,kj->j", vectors, covariance, vectors)
    )
    # 300 independent sign vectors: four standard errors, from their own scatter.
    scatter = noise.octaves.error / noise.octaves.sigma2 * noise.octaves.mass
    assert (np.abs(noise.octaves.mass - masses) < 4 * scatter).all()
    assert noise.num_examples == 60


def test_examples_of_other_parameters_are_refused():
    model, loss_fn, batch = problem("mlp", num_examples=8)
    operator = HessianOperator(model, loss_fn, batch, check=False)
    part = HessianOperator(model, loss_fn, batch, parameters=operator.names[0], check=False)
    spectrum = ec.Spectrum([1.0, 2.0], [1, 1])
    with pytest.raises(ValueError, match="estimate_noise: 'examples' must be an operator on the same parameters"):
        estimate_noise(operator, spectrum, 8, examples=part)


def test_one_sign_vector_has_honest_errors():
    """With one sign vector, the errors are about the distance to the truth, and the sum is the trace.

    40 steps do not resolve 240 eigenvalues, so single octaves are lumpier than their errors say.
    """
    model, loss_fn, batch = regression(num_examples=2000, dim=240, scale=40)
    operator = HessianOperator(model, loss_fn, batch, check=False)
    spectrum = ec.Spectrum.from_matrix((batch[0].T @ batch[0] / 2000).numpy())
    misses = []
    for seed in range(6):
        noise = estimate_noise(operator, spectrum, 16, num_products=40, seed=seed, weight_decay=DECAY)
        truth = _regression_traces(model, batch, octave_counts(spectrum, DECAY, 240)) / 16
        misses.append((noise.octaves.sigma2 * noise.octaves.eigenvalue_sum - truth)
                      / (noise.octaves.error * noise.octaves.eigenvalue_sum))  # fmt: skip
        np.testing.assert_allclose(noise.octaves.mass.sum(), noise.trace, rtol=1e-12)
        assert abs(noise.exponent - 1) < 4 * noise.exponent_error
        assert noise.exponent_error < 0.3
    assert np.sqrt(np.mean(np.square(misses))) < 1.5
    assert np.abs(misses).max() < 6


def _regression_traces(model, batch, grid):
    x, y = (part.numpy() for part in batch)
    each = (x @ model.weight.detach().numpy().T - y) * x
    eigenvalues, vectors = np.linalg.eigh(x.T @ x / len(x))
    return grid.total(eigenvalues, ((each - each.mean(0)) @ vectors).var(axis=0, ddof=1))


def test_an_octave_without_a_node_shares_the_level_of_its_neighbour():
    sums = np.array([1.0, 2.0, 3.0, 2.0, 1.0])
    found = pooled(np.array([0.0, 6.0, 0.0, 5.0, 0.0]), sums)
    np.testing.assert_allclose(found / sums, [2, 2, 5 / 6, 5 / 6, 5 / 6])
    assert found.sum() == pytest.approx(11)
    assert (pooled(np.zeros(3), sums[:3]) == 0).all()


def test_few_steps_leave_no_octave_without_a_level():
    model, loss_fn, batch = regression()
    operator = HessianOperator(model, loss_fn, batch, check=False)
    spectrum = ec.Spectrum.from_matrix(dense_hessian(model, loss_fn, batch).numpy())
    noise = estimate_noise(operator, spectrum, 8, num_products=3, weight_decay=DECAY)
    assert (noise.octaves.sigma2 > 0).all()
    np.testing.assert_allclose(noise.octaves.mass.sum(), noise.trace, rtol=1e-12)


@pytest.mark.parametrize("options", [{"microbatch": 3}, {"product": "finite_difference"}])
def test_microbatches_and_finite_differences_give_the_numbers_of_the_whole_batch(options):
    model, loss_fn, batch = problem("conv", num_examples=9)
    whole, other = HessianOperator(model, loss_fn, batch), HessianOperator(model, loss_fn, batch, **options)
    estimate = estimate_spectrum(whole, 30, weight_decay=DECAY)
    expected, found = (estimate_noise(operator, estimate, 4, num_products=10) for operator in (whole, other))
    np.testing.assert_allclose(found.octaves.mass, expected.octaves.mass, rtol=1e-4, atol=1e-10)
    np.testing.assert_allclose(found.octaves.gradient, expected.octaves.gradient, rtol=1e-4, atol=1e-8)


def test_the_noise_of_a_batch_is_inverse_to_its_size():
    model, loss_fn, batch = regression()
    operator = GaussNewtonOperator(model, loss_fn, batch)
    estimate = estimate_spectrum(operator, weight_decay=DECAY)
    one, eight = (estimate_noise(operator, estimate, size) for size in (1, 8))
    again = one.with_batch_size(8)
    assert again.batch_size == 8
    np.testing.assert_allclose(again.octaves.sigma2, eight.octaves.sigma2)
    np.testing.assert_allclose(again.octaves.error, eight.octaves.error)
    np.testing.assert_allclose([again.sigma2, again.sigma2_error], [eight.sigma2, eight.sigma2_error])
    assert again.trace == eight.trace


def test_the_gradient_loses_its_sampling_noise():
    """Over draws of the data, g·Hg without its noise is unbiased: zero at the minimum of the expected loss."""
    found, errors = [], []
    for seed in range(40):
        model, loss_fn, batch = regression(num_examples=60, seed=seed)
        with torch.no_grad():
            model.weight.fill_(1.0)
        operator = HessianOperator(model, loss_fn, batch, check=False)
        spectrum = ec.Spectrum.from_matrix((batch[0].T @ batch[0] / 60).numpy())
        noise = estimate_noise(operator, spectrum, 8, num_samples=4, weight_decay=DECAY, seed=seed)
        found.append(noise.gradient_curvature)
        errors.append(noise.gradient_curvature_error)
    assert abs(np.mean(found)) < 3 * np.std(found) / math.sqrt(40)
    assert 0.5 < np.std(found) / np.mean(errors) < 2


def test_the_critical_batch_size_is_that_of_the_dense_matrices():
    model, loss_fn, batch = regression(num_examples=400)
    with torch.no_grad():
        model.weight.fill_(0.0)
    operator = HessianOperator(model, loss_fn, batch, check=False)
    hessian = dense_hessian(model, loss_fn, batch)
    noise = estimate_noise(operator, ec.Spectrum.from_matrix(hessian.numpy()), 8, num_samples=200, weight_decay=DECAY)
    each = example_gradients(model, loss_fn, batch)
    trace_hc = float(torch.trace(hessian @ torch.cov(each.T)))
    gradient = each.mean(0)
    expected = trace_hc / (float(gradient @ hessian @ gradient) - trace_hc / 400)
    assert noise.critical_batch_size == pytest.approx(expected, rel=0.3)
    assert "critical batch size: " in str(noise)
    assert "examples" in str(noise)


def test_without_noise_or_gradient_there_is_no_critical_batch_size():
    model, loss_fn, (x, y) = regression()
    with torch.no_grad():
        model.weight.copy_(torch.linalg.lstsq(x, y).solution.T)
    operator = HessianOperator(model, loss_fn, (x, y))
    noise = estimate_noise(operator, estimate_spectrum(operator), 8)
    assert noise.critical_batch_size == math.inf
    operator = HessianOperator(model, loss_fn, (x[:1].repeat(4, 1), y[:1].repeat(4, 1)))
    same = estimate_noise(operator, estimate_spectrum(operator), 2)
    assert same.sigma2 == pytest.approx(0, abs=1e-25)
    assert same.critical_batch_size < 1e-20 or math.isnan(same.critical_batch_size)
    assert math.isnan(same.exponent)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, r"estimate_noise: 'batch_size' must be >= 1, got 0"),
        ({"num_samples": 0}, r"'num_samples' must be >= 1"),
        ({"num_products": 0}, r"estimate_noise: 'num_products' must be >= 1"),
        ({"weight_decay": 0.0}, r"'weight_decay' must be > 0"),
        ({"spectrum": ec.Spectrum([1.0], [1.0], dim=3)}, r"'spectrum' must be of the operator, of dimension 12"),
    ],
)
def test_refusals(changes, message):
    model, loss_fn, batch = regression()
    settings = {"spectrum": ec.Spectrum([1.0, 2.0], [1, 1]), "batch_size": 4, **changes}
    with pytest.raises(ValueError, match=message):
        estimate_noise(HessianOperator(model, loss_fn, batch, check=False), **settings)


def test_other_things_than_a_spectrum_are_refused():
    model, loss_fn, batch = regression()
    with pytest.raises(TypeError, match="'spectrum' must be a Spectrum or a SpectrumEstimate"):
        estimate_noise(HessianOperator(model, loss_fn, batch), [1.0, 2.0], 4)


@pytest.mark.parametrize("step", [0, 5, 10, 17, 29])
def test_ctrl_c_saves_and_says_how_to_resume(tmp_path, step):
    model, loss_fn, batch = problem("conv", num_examples=9)
    operator = HessianOperator(model, loss_fn, batch)
    estimate = estimate_spectrum(operator, 20)
    settings = {"batch_size": 4, "num_products": 10, "num_samples": 2}
    path = tmp_path / "noise.npz"
    with pytest.raises(Interrupted, match="Call estimate_noise again"):
        estimate_noise(Counting(operator, step + 1), estimate, checkpoint=path, **settings)  # one for the identity
    resumed = estimate_noise(Counting(operator, 34 - step), estimate, checkpoint=path, **settings)
    whole = estimate_noise(operator, estimate, **settings)
    assert np.array_equal(resumed.octaves.sigma2, whole.octaves.sigma2)
    assert np.array_equal(resumed.octaves.gradient, whole.octaves.gradient)
    more = estimate_noise(operator, estimate, checkpoint=path, **{**settings, "num_samples": 3})
    assert np.array_equal(
        more.octaves.mass, estimate_noise(operator, estimate, 4, num_samples=3, num_products=10).octaves.mass
    )


def test_checkpoints_of_other_runs_are_refused(tmp_path):
    model, loss_fn, batch = problem("mlp", num_examples=9)
    operator, path = HessianOperator(model, loss_fn, batch), tmp_path / "run.npz"
    estimate = estimate_spectrum(operator, 10, settle=None, checkpoint=path)
    with pytest.raises(
        ValueError, match="estimate_noise: 'checkpoint' must be of estimate_noise, got 'a checkpoint of "
    ):
        estimate_noise(operator, estimate, 4, num_products=10, checkpoint=path)
    path = tmp_path / "noise.npz"
    estimate_noise(operator, estimate, 4, num_products=10, checkpoint=path)
    with pytest.raises(ValueError, match="estimate_spectrum: 'checkpoint' must be of estimate_spectrum"):
        estimate_spectrum(operator, 10, checkpoint=path)
    with pytest.raises(ValueError, match="'num_products' must be <= 10, the number of steps of the finished runs"):
        estimate_noise(operator, estimate, 4, num_products=11, checkpoint=path)
    shorter = estimate_noise(operator, estimate, 4, num_products=9, checkpoint=path)
    assert np.array_equal(shorter.octaves.mass, estimate_noise(operator, estimate, 4, num_products=9).octaves.mass)
    with pytest.raises(ValueError, match="of seed 1"):
        estimate_noise(operator, estimate, 4, num_products=10, seed=1, checkpoint=path)


PROGRAM = """
import json, sys
import torch.distributed as dist
from eigencurve import Spectrum
from eigencurve.hessian import DistributedOperator, HessianOperator, estimate_noise
from tests.hessian.models import problem
dist.init_process_group("gloo")
model, loss_fn, (x, y) = problem("conv", num_examples=7)
mine = slice(0, 5) if dist.get_rank() == 0 else slice(5, 7)
operator = DistributedOperator(HessianOperator(model, loss_fn, (x[mine], y[mine])))
spectrum = Spectrum([0.01, 0.1, 1.0], [1, 1, 1])
n = estimate_noise(operator, spectrum, 4, num_samples=2, num_products=10, checkpoint=sys.argv[1] + "/run.npz")
if operator.is_main_process:
    with open(sys.argv[1] + "/out.json", "w") as file:
        json.dump([n.octaves.mass.tolist(), n.octaves.gradient.tolist(), n.num_examples], file)
dist.destroy_process_group()
"""


def test_two_processes_give_the_numbers_of_one(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run_in_two(program, tmp_path)
    mass, gradient, num_examples = json.loads((tmp_path / "out.json").read_text())
    model, loss_fn, batch = problem("conv", num_examples=7)
    operator = HessianOperator(model, loss_fn, batch)
    single = estimate_noise(operator, ec.Spectrum([0.01, 0.1, 1.0], [1, 1, 1]), 4, num_samples=2, num_products=10)
    assert num_examples == 7
    np.testing.assert_allclose(mass, single.octaves.mass, atol=1e-8)
    np.testing.assert_allclose(gradient, single.octaves.gradient, atol=1e-8)


def test_the_quadratic_predicts_sgd_on_least_squares():
    """SGD on independently drawn rows of a fixed data set, from its minimum: the mean loss of 400 runs.

    At these rates, the noise that depends on w adds less than 2 % to the loss.
    """
    model, loss_fn, (x, y) = regression(num_examples=400, dim=12)
    weights = torch.linalg.lstsq(x, y).solution
    with torch.no_grad():
        model.weight.copy_(weights.T)
    operator = HessianOperator(model, loss_fn, (x, y))
    estimate = estimate_spectrum(operator, weight_decay=1e-7)
    noise = estimate_noise(operator, estimate, batch_size=4, num_samples=300)
    prepared = ec.spectrum.prepare(estimate.spectrum, 1e-7)
    schedule = ec.linear(300, lr=0.05)
    predicted = 12 * ec.NoisyQuadratic(prepared, noise=noise, initial_error=0.0).expected_loss(schedule)
    rng, hessian = torch.Generator().manual_seed(0), x.T @ x / 400
    w = weights.T.repeat(400, 1)
    for rate in schedule.values():
        rows = torch.randint(0, 400, (400, 4), generator=rng)
        residuals = torch.einsum("rbd,rd->rb", x[rows], w) - y[rows, 0]
        w = w - rate * torch.einsum("rb,rbd->rd", residuals, x[rows]) / 4
    moved = w - weights.T
    losses = 0.5 * torch.einsum("rd,de,re->r", moved, hessian, moved)
    error = float(losses.std()) / 20
    assert abs(float(losses.mean()) - predicted) < 3 * error + 0.05 * predicted
