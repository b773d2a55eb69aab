import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigencurve.spectrum.log_grid import bulk_ends, curvature_penalty, log_grid, supported, without_atom

BOTH_SIGNS = np.sort(np.concatenate((-np.geomspace(1e-3, 0.5, 12), np.geomspace(1e-3, 2.0, 15))))


@given(low=st.floats(1e-3, 1.0), octaves=st.floats(1, 12), num=st.integers(8, 60))
def test_a_positive_bulk_is_integrated_over_its_whole_range(low, octaves, num):
    nodes = np.geomspace(low, low * 2**octaves, num)
    grid = log_grid(nodes, scale=1e-3)
    near, far = bulk_ends(nodes)
    first = grid.points[grid.points != 0].min()
    assert near <= first or grid.has_atom
    assert (grid.points < far).all()
    if not grid.has_atom:
        floor = max(near, min(1e-3, np.diff(nodes).min()) / 8)
        assert_allclose(grid.widths.sum(), math.log(far / floor), rtol=1e-12)
        assert_allclose(grid.widths @ grid.points, far - floor, rtol=1e-9)  # the integral of λ over ln λ


def test_both_signs_have_points_and_zero_has_an_atom():
    grid = log_grid(BOTH_SIGNS, scale=1e-3)
    assert grid.has_atom
    assert grid.points[-1] == 0
    assert grid.widths[-1] == 1
    assert (grid.points[:-1] < 0).any()
    assert (grid.points[:-1] > 0).any()
    assert np.abs(grid.points[:-1]).min() < 1e-3 / 7
    assert_allclose(grid.basis.sum(axis=1), 1, rtol=1e-12)  # B-splines sum to one everywhere
    assert (grid.penalty[-1] == 0).all()


def test_the_atom_and_points_without_mass_can_be_left_out():
    grid = log_grid(BOTH_SIGNS, scale=1e-3)
    bare = without_atom(grid)
    assert not bare.has_atom
    assert len(bare.points) == len(grid.points) - 1
    assert bare.penalty.shape[0] == bare.basis.shape[1] == grid.basis.shape[1] - 1
    assert without_atom(bare) is bare
    positive = supported(grid, np.where(grid.points >= 0, 1.0, 0.0))
    assert positive.has_atom
    assert (positive.points >= 0).all()
    assert positive.basis.shape == (len(positive.points), grid.basis.shape[1])


@pytest.mark.parametrize("step", [0.1, 0.23, 1.0])
def test_the_penalty_ignores_power_laws_and_measures_curvature(step):
    v = step * np.arange(40)
    penalty = curvature_penalty(len(v), step)
    assert_allclose(penalty, penalty.T)
    assert np.linalg.matrix_rank(penalty) == len(v) - 2
    # A parabola of curvature 1 costs half the length of the interval over the correlation length, 5.
    for z, cost in ((3.0 - 1.7 * v, 0.0), (v**2 / 2, (len(v) - 2) * step / 10)):
        cancellation = 1e-14 * np.abs(z) @ np.abs(penalty) @ np.abs(z)
        assert_allclose(z @ penalty @ z, cost, atol=cancellation)


def test_the_bulk_ends_half_a_spacing_beyond_its_nodes():
    assert bulk_ends(np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0])) == pytest.approx((0.5, 8 + 5 / 6))
    assert bulk_ends(np.array([1.0, 3.0])) == (0.0, 4.0)
