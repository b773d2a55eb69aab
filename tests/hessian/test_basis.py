import numpy as np
import pytest
import torch
from tests.hessian.matrices import hessian_like, start
from tests.hessian.models import generator

from eigencurve.hessian.basis import Basis
from eigencurve.hessian.lanczos import Recurrence
from eigencurve.hessian.memory import plan_memory
from eigencurve.hessian.space import whole_space

CPU = torch.device("cpu")


def random_basis(num_rows, dim=50):
    basis = Basis(num_rows, whole_space(dim), torch.float64, CPU)
    rows = torch.linalg.qr(torch.randn(dim, num_rows, generator=generator(), dtype=torch.float64))[0].T
    for row in rows:
        basis.append(3 * row, 3.0)
    return basis


def test_appended_rows_are_their_own_coordinates():
    basis = random_basis(4)
    assert basis.is_full
    assert torch.equal(basis.last, basis.rows[3])
    np.testing.assert_array_equal(basis.coordinates, np.eye(4))


def test_projecting_off_leaves_nothing_along_the_rows():
    basis, vector = random_basis(6), start(50)
    kept = vector - basis.rows.T @ (basis.rows @ vector)
    basis.project_off(vector)
    assert float((basis.rows @ vector).abs().max()) < 1e-14
    torch.testing.assert_close(vector, kept)


class Diagonal:
    dim, dtype, device = 400, torch.float64, CPU
    eigenvalues = torch.from_numpy(hessian_like(400, 10))

    def __call__(self, vector):
        return self.eigenvalues * vector


def test_locking_keeps_rows_orthonormal_and_coordinates_true():
    """After a rotation, each row is still the combination of Lanczos vectors given by its coordinates."""
    full = Recurrence(Diagonal(), plan_memory(400, 60, 62 * 8 * 400, torch.float64))
    locked = Recurrence(Diagonal(), plan_memory(400, 60, 32 * 8 * 400, torch.float64))
    for run in (full, locked):
        run.start(start(400))
        for _ in range(40):
            run.step()
    basis = locked.basis
    assert basis.generation > 0
    assert 0 < basis.num_locked <= basis.num_stored < basis.num_used <= 30
    used = basis.rows[: basis.num_used]
    torch.testing.assert_close(used @ used.T, torch.eye(basis.num_used, dtype=torch.float64), rtol=0, atol=1e-8)
    vectors = full.basis.rows[: basis.coordinates.shape[1]]
    torch.testing.assert_close(used, torch.from_numpy(basis.coordinates) @ vectors, rtol=0, atol=1e-6)


def test_the_rows_kept_are_the_ritz_vectors_closest_to_convergence():
    """At the first lock every row is a Lanczos vector, so the Ritz vectors are known from the tridiagonal alone."""
    run = Recurrence(Diagonal(), plan_memory(400, 60, 32 * 8 * 400, torch.float64))
    run.start(start(400))
    while not run.basis.is_full:
        run.step()
    vectors = run.basis.rows.clone().numpy()
    run.step()
    basis, steps = run.basis, len(run.alphas)
    assert basis.generation == 1
    tridiagonal = np.diag(run.alphas) + np.diag(run.betas[:-1], 1) + np.diag(run.betas[:-1], -1)
    values, ritz = np.linalg.eigh(tridiagonal)
    gaps = np.minimum(np.diff(values, prepend=-np.inf), np.diff(values, append=np.inf))
    errors = run.betas[-1] * np.abs(ritz[-1]) / gaps
    room = int(0.9 * (len(vectors) - 2))
    kept = basis.rows[: basis.num_stored].numpy()
    assert basis.num_stored == room
    assert basis.num_locked == (errors <= 1e-2).sum()
    for i in np.argsort(errors)[:room]:
        inner = vectors[: steps - 1].T @ ritz[:-1, i]  # the last Lanczos vector has a row of its own
        assert np.linalg.norm(kept @ inner) == pytest.approx(np.linalg.norm(inner), rel=1e-6)


def test_a_vector_almost_in_the_span_of_the_rows_is_projected_off_twice():
    """One pass would leave rounding errors as large as the vector that remains."""
    basis = random_basis(6)
    vector = basis.rows.sum(0) + 1e-12 * start(50)
    length = basis.project_off(vector)
    assert length == pytest.approx(float(vector.norm()))
    assert float((basis.rows @ vector).abs().max()) < 1e-14 * length * 100
