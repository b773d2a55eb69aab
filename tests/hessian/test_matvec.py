"""Operators of functions and matrices: the same Lanczos runs and the same checks as for a model's operator."""

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from tests.hessian.matrices import MatrixOperator, hessian_like, start
from tests.reference import lanczos as reference

from eigencurve.hessian import MatvecOperator, as_operator, estimate_spectrum, lanczos
from eigencurve.spectrum.quadrature import gauss_quadrature


def symmetric(dim=60, seed=0):
    source = np.random.default_rng(seed)
    turn = np.linalg.qr(source.normal(size=(dim, dim)))[0]
    return turn * np.geomspace(1e-3, 50, dim) @ turn.T


MATRIX = (symmetric() + symmetric().T) / 2
SOURCES = {
    "function": lambda: MatvecOperator(lambda v: MATRIX @ v, 60),
    "torch function": lambda: MatvecOperator(lambda v: torch.from_numpy(MATRIX) @ v, 60, vectors="torch"),
    "array": lambda: MATRIX,
    "tensor": lambda: torch.from_numpy(MATRIX),
    "sparse": lambda: scipy.sparse.csr_array(MATRIX),
    "LinearOperator": lambda: aslinearoperator(MATRIX),
    "LinearOperator of a function": lambda: LinearOperator((60, 60), matvec=lambda v: MATRIX @ v),
    "operator": lambda: MatrixOperator(MATRIX),
}
every_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES.keys())


@every_source
def test_the_tridiagonal_is_that_of_the_torch_operator_and_of_the_reference(make):
    operator = as_operator(make())
    assert (operator.dim, operator.dtype) == (60, torch.float64)
    run, wanted = (lanczos(each, start(60), 12) for each in (operator, MatrixOperator(MATRIX)))
    slow = reference.lanczos(lambda v: MATRIX @ v, start(60).numpy(), 12)
    for found, same, literal in zip((run.alphas, run.betas), (wanted.alphas, wanted.betas), slow, strict=True):
        # twelve steps of rounding at the size of the largest eigenvalue
        np.testing.assert_allclose(found, same, rtol=0, atol=1e-12 * 50)
        np.testing.assert_allclose(found, literal, rtol=0, atol=1e-10 * 50)


def test_the_same_products_give_the_same_bits():
    """The same matrix product as in the torch operator gives exactly its α and β."""
    tensor = torch.from_numpy(MATRIX)
    wanted = estimate_spectrum(MatrixOperator(MATRIX), 40, settle=None)
    for source in (tensor, MatvecOperator(lambda v: tensor @ v, 60, vectors="torch")):
        found = estimate_spectrum(source, 40, settle=None)
        np.testing.assert_array_equal(found.alphas, wanted.alphas)
        np.testing.assert_array_equal(found.betas, wanted.betas)
        assert found.spectrum == wanted.spectrum


@every_source
def test_all_steps_give_every_eigenvalue(make):
    run = lanczos(as_operator(make()), start(60), 60)
    nodes = gauss_quadrature(run.alphas, run.betas)[0]
    np.testing.assert_allclose(nodes, np.linalg.eigvalsh(MATRIX), rtol=0, atol=1e-12 * 50)


def test_an_estimate_from_a_function_alone():
    values = hessian_like(3000, 20)
    found = estimate_spectrum(MatvecOperator(lambda v: values * v, 3000, dtype="float32"), 60, settle=None)
    wanted = estimate_spectrum(MatrixOperator(values, torch.float32), 60, settle=None)
    np.testing.assert_allclose(found.alphas, wanted.alphas, rtol=1e-4, atol=1e-4)
    assert found.nodes.max() == pytest.approx(300, rel=1e-4)


def test_the_type_is_what_the_function_makes_of_float64():
    half = MATRIX.astype(np.float32)
    assert MatvecOperator(lambda v: half @ v, 60).dtype == torch.float64
    assert MatvecOperator(lambda v: half @ v.astype(np.float32), 60).dtype == torch.float32
    assert MatvecOperator(lambda v: MATRIX @ v, 60, dtype="float32").dtype == torch.float32
    assert as_operator(half).dtype == as_operator(torch.from_numpy(half)).dtype == torch.float32
    assert as_operator(scipy.sparse.csr_array(half)).dtype == torch.float32
    assert as_operator(np.diag([1, 2, 3])).dtype == torch.float64
    assert as_operator(half)(torch.ones(60)).dtype == torch.float32


def test_the_product_is_memory_of_its_own():
    """Lanczos writes to the product, so it must be neither the argument nor a buffer of the function."""
    buffer = np.zeros(5)
    vector = start(5)
    kept = vector.clone()
    for function in (lambda v: v, lambda v: np.multiply(v, 2.0, out=buffer)):
        product = MatvecOperator(function, 5)(vector)
        product.fill_(7.0)
        assert torch.equal(vector, kept)
        assert not (buffer == 7.0).any()


def test_checkpoints_know_the_operator_by_its_products(tmp_path):
    path = tmp_path / "run.npz"
    settings = {"settle": None, "checkpoint": path}
    whole = estimate_spectrum(MATRIX, 20, settle=None)
    estimate_spectrum(MATRIX, 12, **settings)
    counted = []

    def matvec(v):
        counted.append(0)
        return MATRIX @ v

    operator = MatvecOperator(matvec, 60, check=False, dtype="float64")
    resumed = estimate_spectrum(operator, 20, **settings)
    assert len(counted) == 1 + 9  # one for the identity, the last step again, and the eight missing ones
    np.testing.assert_array_equal(resumed.alphas, whole.alphas)
    content = path.read_bytes()
    other = MATRIX.copy()
    other[7, 7] += 1e-3  # the tolerance is 1e-8 of the length of a product
    for stranger in (other, MatvecOperator(lambda v: MATRIX @ v, 60, dtype="float32")):
        with pytest.raises(ValueError, match="checkpoint of another problem"):
            estimate_spectrum(stranger, 20, **settings)
    assert path.read_bytes() == content


def test_a_given_fingerprint_stands_for_the_products(tmp_path):
    path = tmp_path / "run.npz"
    named = [MatvecOperator(lambda v: MATRIX @ v, 60, fingerprint=name) for name in ("a", "a", "b")]
    assert named[0].fingerprint() == named[1].fingerprint() != named[2].fingerprint()
    estimate_spectrum(named[0], 5, settle=None, checkpoint=path)
    estimate_spectrum(named[1], 8, settle=None, checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint of another problem"):
        estimate_spectrum(named[2], 8, settle=None, checkpoint=path)


def noisy(v):
    return MATRIX @ v * (1 + 0.01 * np.random.default_rng().normal())


def writing(v):
    v *= 2
    return v


def bad_calls():
    yield "'matvec' must be callable.*Pass a matrix", TypeError, lambda: MatvecOperator(MATRIX, 60)
    yield "'dim' must be >= 1", ValueError, lambda: MatvecOperator(abs, 0)
    yield "'dim' must be an integer", TypeError, lambda: MatvecOperator(abs, 3.0)
    yield "'dtype' must be one of 'float32', 'float64'", ValueError, lambda: MatvecOperator(abs, 3, dtype="float16")
    yield "'vectors' must be one of", ValueError, lambda: MatvecOperator(abs, 3, vectors="jax")
    yield r"returns 4 numbers.*shape \(3,\)", ValueError, lambda: MatvecOperator(lambda v: v[1:], 4)
    yield r"returns 4 numbers.*shape \(4, 1\)", ValueError, lambda: MatvecOperator(lambda v: v[:, None], 4)
    yield "real numbers, got dtype\\('complex128'\\)", TypeError, lambda: MatvecOperator(lambda v: v * 1j, 4)
    yield "real numbers", TypeError, lambda: MatvecOperator(lambda _: None, 4)
    yield "finite products", ValueError, lambda: MatvecOperator(lambda v: v * np.nan, 4)
    yield "deterministic.*Fix its seed", ValueError, lambda: MatvecOperator(noisy, 60)
    yield "leaves its argument unchanged", ValueError, lambda: MatvecOperator(writing, 4)
    yield "symmetric matrix", ValueError, lambda: estimate_spectrum(np.triu(MATRIX))
    yield "symmetric matrix", ValueError, lambda: estimate_spectrum(scipy.sparse.triu(MATRIX))
    yield r"square matrix, got 'shape \(2, 3\)'", ValueError, lambda: as_operator(np.ones((2, 3)))
    yield r"square matrix, got 'shape \(3,\)'", ValueError, lambda: as_operator(np.ones(3))
    yield r"an operator or a matrix.*MatvecOperator\(matvec, dim=", TypeError, lambda: estimate_spectrum(lambda v: v)
    yield "an operator or a matrix, got 3", TypeError, lambda: estimate_spectrum(3)
    yield "4 numbers of type torch.float64", ValueError, lambda: MatvecOperator(lambda v: v, 4)(torch.ones(4))
    yield "'dtype' must be one of", ValueError, lambda: as_operator(torch.eye(3).half())


@pytest.mark.parametrize(("match", "kind", "call"), list(bad_calls()))
def test_bad_input_is_refused(match, kind, call):
    with pytest.raises(kind, match=match):
        call()
