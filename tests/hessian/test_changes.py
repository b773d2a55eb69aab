"""Operators after changes answer like new ones, or refuse; changes during a run are refused."""

import copy

import numpy as np
import pytest
import torch
from tests.hessian.matrices import MatrixOperator, hessian_like
from tests.hessian.models import problem
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from eigencurve._check import ArgumentValueError
from eigencurve.hessian import (
    GaussNewtonOperator,
    HessianOperator,
    MatvecOperator,
    estimate_noise,
    estimate_spectrum,
    lanczos,
)

pytestmark = pytest.mark.slow


KINDS = [HessianOperator, GaussNewtonOperator]


def small(dropout=0.0):
    torch.manual_seed(0)
    layers = [nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(dropout), nn.Linear(6, 3)]
    return nn.Sequential(*layers), (torch.randn(20, 4), torch.arange(20) % 3)


@pytest.mark.parametrize("kind", KINDS)
def test_an_operator_follows_fused_steps(kind):
    """They do not change the versions of the parameters."""
    model, batch = small()
    kept, optimizer = kind(model, F.cross_entropy, batch), torch.optim.AdamW(model.parameters(), 0.05, fused=True)
    for _ in range(3):
        new = kind(model, F.cross_entropy, batch)
        followed, expected = (estimate_spectrum(each, 20, progress=False).spectrum for each in (kept, new))
        assert followed == expected
        for _ in range(5):
            optimizer.zero_grad()
            F.cross_entropy(model(batch[0]), batch[1]).backward()
            optimizer.step()


def test_the_metric_of_an_optimizer_that_has_stepped_is_refused():
    model, (x, y) = small()
    operator = HessianOperator(model, F.cross_entropy, (x, y))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    metric, kept = operator.preconditioned_by(optimizer), operator.preconditioned_by(torch.ones(operator.dim))
    v = torch.ones(operator.dim)
    metric(v)
    optimizer.step()
    with pytest.raises(ValueError, match="Call preconditioned_by again"):
        metric(v)
    with pytest.raises(ValueError, match="AdamW after more steps"):
        estimate_spectrum(metric, 5, progress=False)
    torch.testing.assert_close(kept(v), operator(v))
    torch.testing.assert_close(operator.preconditioned_by(metric.diagonal)(v), operator(metric._scale) * metric._scale)


REFUSED = {
    "0.weight has been replaced": lambda m: m.__setitem__(0, nn.Linear(4, 6)),
    "4.bias is no longer a trainable parameter": lambda m: setattr(m[4], "bias", m[4].weight),
    "0.weight is no longer a trainable parameter": lambda m: m[0].weight.requires_grad_(False),
    "5.weight has become a trainable parameter": lambda m: m.append(nn.Linear(3, 3)),
    "0.weight is now torch.float64": nn.Module.double,
}


@pytest.mark.parametrize("reason", REFUSED)
@pytest.mark.parametrize("kind", KINDS)
def test_other_parameters_are_refused_by_name(kind, reason):
    model, batch = small()
    operator = kind(model, F.cross_entropy, batch)
    REFUSED[reason](model)
    for call in (lambda: operator(torch.ones(operator.dim)), operator.gradient, operator.parameter_vector):
        with pytest.raises(ArgumentValueError, match="Make a new operator") as error:
            call()
        assert error.value.argument == "model"
        assert str(error.value.value).startswith(reason)


def test_a_change_of_mode_repeats_the_checks():
    model, batch = small(dropout=0.5)
    operator = HessianOperator(model.eval(), F.cross_entropy, batch, mode="keep")
    model.train()
    with pytest.raises(ValueError, match="Dropout is active in 3"):
        operator(torch.ones(operator.dim))
    cut = HessianOperator(model.eval(), F.cross_entropy, batch, mode="keep", microbatch=7)
    model[1].train()
    with pytest.raises(ValueError, match="Batch norm in train mode"):
        cut(torch.ones(cut.dim))


def test_other_examples_are_followed_or_refused():
    model, (x, y) = small()
    v, pairs = torch.ones(sum(p.numel() for p in model.parameters())), [(x, y)]
    operator = HessianOperator(model, F.cross_entropy, pairs)
    pairs[0] = (2 * x, y)
    torch.testing.assert_close(operator(v), HessianOperator(model, F.cross_entropy, pairs)(v))
    for change in (lambda: pairs.append((x, y)), lambda: pairs.__setitem__(slice(None), [(x[:9], y[:9])])):
        operator = HessianOperator(model, F.cross_entropy, pairs)
        change()
        with pytest.raises(ValueError, match=r"'batches' must be the same .* examples .* make a new operator"):
            operator(v)


def test_the_data_set_of_a_loader_is_read_again_by_each_estimate():
    model, (x, y) = small()
    loader = DataLoader(TensorDataset(x, y), batch_size=20)
    operator = HessianOperator(model, F.cross_entropy, loader)
    before = operator.fingerprint()
    x.mul_(2)
    estimate = estimate_spectrum(operator, 10, progress=False)
    assert estimate.spectrum == estimate_spectrum(HessianOperator(model, F.cross_entropy, loader), 10).spectrum
    assert operator.fingerprint() != before


def test_the_fingerprint_is_that_of_the_examples_now():
    model, (x, y) = small()
    for microbatch in (None, 7):
        operator = HessianOperator(model, F.cross_entropy, (x, y), microbatch=microbatch)
        before = operator.fingerprint()
        assert operator.fingerprint() == before
        x.add_(1)
        new = HessianOperator(model, F.cross_entropy, (x, y), microbatch=microbatch)
        assert operator.fingerprint() == new.fingerprint() != before


class Counting(nn.Linear):
    """Counts its calls, as many models do."""

    num_calls = 0

    def forward(self, x):
        self.num_calls += 1
        return super().forward(x)


@pytest.mark.parametrize("microbatch", [None, 5])
def test_models_that_count_their_calls_keep_their_graph(microbatch):
    model, batch = Counting(4, 3), small()[1]
    operator = HessianOperator(model, F.cross_entropy, batch, microbatch=microbatch)
    v = torch.ones(operator.dim)
    for _ in range(2):
        operator(v)
        operator.gradient()
        before = model.num_calls
        operator(v)
        assert model.num_calls - before == (0 if microbatch is None else 4)


# Changes during a run.


class Changing(MatrixOperator):
    """Another matrix from some product on."""

    def __init__(self, eigenvalues, change, at, dtype):
        super().__init__(eigenvalues, dtype)
        self.change, self.at = change, at

    def __call__(self, vector):
        product = super().__call__(vector)
        return self.change(product, vector) if self.num_products > self.at else product


def scaled(share):
    return lambda product, _: product * (1 + share)


def shifted(share):
    return lambda product, vector: product + share * vector * float(product.norm() / vector.norm())


def permuted(share):
    """A share of the entries of the matrix change places."""

    def change(product, vector):
        count = max(2, int(share * len(vector)))
        rows = (product / vector)[:count].flip(0)
        return torch.cat((rows * vector[:count], product[count:]))

    return change


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("at", [1, 10, 39])
@pytest.mark.parametrize("share", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("kind", [scaled, shifted])
def test_a_change_during_a_run_is_refused(kind, share, at, dtype):
    operator = Changing(hessian_like(4000), kind(share), at, dtype)
    with pytest.raises(ValueError, match=r"estimate_spectrum: 'operator' must be the same matrix until the end"):
        estimate_spectrum(operator, 40, settle=None, progress=False)


def test_a_change_that_keeps_all_eigenvalues_is_refused():
    operator = Changing(np.random.default_rng(0).permutation(hessian_like(4000)), permuted(1.0), 10, torch.float32)
    with pytest.raises(ValueError, match="first product has changed"):
        estimate_spectrum(operator, 40, settle=None, progress=False)


@pytest.mark.parametrize("budget", [None, 24 * 4 * 4000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_long_runs_of_the_same_operator_raise_no_alarm(dtype, budget):
    settings = {"settle": None, "memory_budget": budget, "progress": False}
    for seed in range(3):
        estimate_spectrum(MatrixOperator(hessian_like(4000), dtype), 150, seed=seed, **settings)


class Wrapped:
    """An operator whose products pass through ``change(number of calls, product)``."""

    def __init__(self, operator, change):
        self.operator, self.change, self.num_calls = operator, change, 0

    def __getattr__(self, name):
        return getattr(self.operator, name)

    def __call__(self, vector):
        self.num_calls += 1
        return self.change(self.num_calls, self.operator(vector))


def test_later_probes_noise_and_plain_lanczos_notice_changes_too():
    values = hessian_like(500)
    later = Changing(values, scaled(0.02), 30, torch.float64)
    with pytest.raises(ValueError, match="the same matrix"):
        estimate_spectrum(later, 20, num_probes=2, settle=None, progress=False)
    with pytest.raises(ValueError, match="lanczos: 'operator' must be the same matrix"):
        lanczos(Changing(values, scaled(0.02), 5, torch.float64), torch.ones(500).double(), 20)
    model, loss_fn, batch = problem("conv", num_examples=9)
    operator = HessianOperator(model, loss_fn, batch)
    estimate = estimate_spectrum(operator, 20, progress=False)
    wrapped = Wrapped(operator, lambda num_calls, product: product * (1 + 0.1 * (num_calls > 4)))
    with pytest.raises(ValueError, match="estimate_noise: 'operator' must be the same matrix"):
        estimate_noise(wrapped, estimate, 4, num_products=10, progress=False)


def test_a_resumed_run_compares_its_first_product(tmp_path):
    settings = {"settle": None, "checkpoint": tmp_path / "run.npz", "progress": False}
    values = hessian_like(500)
    estimate_spectrum(MatrixOperator(values), 10, **settings)
    operator = Changing(values, scaled(0.02), 3, torch.float64)
    with pytest.raises(ValueError, match="the same matrix"):
        estimate_spectrum(operator, 20, **settings)


def test_unchecked_operators_are_not_compared():
    noise = np.random.default_rng(0)

    def matvec(v):
        return np.linspace(0, 1, 50) * v * (1 + 0.05 * noise.standard_normal())

    estimate_spectrum(MatvecOperator(matvec, 50, check=False), 10, settle=None, progress=False)


def test_a_model_that_is_trained_during_the_run_is_noticed():
    model, batch = small()
    operator = HessianOperator(model, F.cross_entropy, batch)

    def train(num_calls, product):
        if num_calls == 10:
            for parameter in model.parameters():
                parameter.data.mul_(1.1)
        return product

    with pytest.raises(ValueError, match="first product has changed"):
        estimate_spectrum(Wrapped(operator, train), 25, settle=None, progress=False)


# Compiled models, weight norm, modules with a generator.


def test_compiled_models_run_uncompiled():
    model, batch = small()
    v = torch.ones(sum(p.numel() for p in model.parameters()))
    expected = HessianOperator(model, F.cross_entropy, batch)(v)
    inside = copy.deepcopy(model)
    inside.compile(backend="aot_eager")
    for compiled in (torch.compile(model, backend="aot_eager"), inside):
        torch.testing.assert_close(HessianOperator(compiled, F.cross_entropy, batch)(v), expected)


@pytest.mark.parametrize("norm", [nn.utils.parametrizations.weight_norm, nn.utils.weight_norm])
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*weight_norm:DeprecationWarning")
def test_weight_norm_has_the_right_hessian(norm, dim):
    """The double backward of PyTorch's own kernel is wrong, so the reference is a difference of gradients."""
    torch.manual_seed(0)
    model = nn.Sequential(norm(nn.Linear(4, 6), dim=dim), nn.Tanh(), nn.Linear(6, 3)).double()
    batch = torch.randn(20, 4, dtype=torch.float64), torch.arange(20) % 3
    exact, other = (
        HessianOperator(model, F.cross_entropy, batch, product=product) for product in ("autograd", "finite_difference")
    )
    v = torch.randn(exact.dim, dtype=torch.float64)
    assert float((exact(v) - other(v)).norm() / exact(v).norm()) < 1e-7  # the error of the differences


class Drawing(nn.Linear):
    def __init__(self):
        super().__init__(4, 3)
        self.source = torch.Generator().manual_seed(0)

    def forward(self, x):
        return super().forward(x) * (1 + torch.rand(3, generator=self.source))


def test_a_module_with_its_own_generator_is_refused_for_what_it_is():
    model, batch = Drawing(), small()[1]
    state = model.source.get_state()
    with pytest.raises(ValueError, match=r"deterministic.*The model draws random numbers"):
        HessianOperator(model, F.cross_entropy, batch)
    assert torch.equal(model.source.get_state(), state)
