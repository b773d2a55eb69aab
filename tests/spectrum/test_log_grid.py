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
    # A parabola of curvature 1 costs half the length of the interval over the correlation length, 4.
    for z, cost in ((3.0 - 1.7 * v, 0.0), (v**2 / 2, (len(v) - 2) * step / 8)):
        cancellation = 1e-14 * np.abs(z) @ np.abs(penalty) @ np.abs(z)
        assert_allclose(z @ penalty @ z, cost, atol=cancellation)


def test_curvature_costs_less_where_the_nodes_resolve_it():
    step, spacing = 0.2, 1e-3
    v = np.log(1e-4) + step * (np.arange(60) - 1)  # the centres of the coefficients
    penalty = curvature_penalty(len(v), step, v[1], spacing)
    costs = []
    for centre in (1e-4, 3e-3, 1.0):
        z = np.maximum(0, 1 - np.abs(v - np.log(centre)))  # a bump of one e-fold
        costs.append(z @ penalty @ z / (z @ curvature_penalty(len(v), step) @ z))
    assert costs[0] == pytest.approx(1, abs=0.05)
    assert costs[1] == pytest.approx(0.5, abs=0.15)  # |λ| = 3 spacings
    assert costs[2] < 1e-4


def test_the_slopes_are_those_of_the_log_density_next_to_zero():
    grid = log_grid(BOTH_SIGNS, scale=1e-3)
    logs = np.log(np.abs(grid.points[:-1]))
    density = np.append(np.where(grid.points[:-1] < 0, 0.3, 1.7) * logs, 0.0)  # two power laws
    z = np.linalg.lstsq(grid.basis.toarray(), density, rcond=None)[0]
    assert_allclose(grid.slopes @ z, [0.3, 1.7], rtol=1e-6)
    assert (grid.slopes[:, -1] == 0).all()
    assert without_atom(grid).slopes.shape == (2, len(z) - 1)


def test_a_spectrum_that_does_not_reach_zero_has_no_slopes():
    assert len(log_grid(np.linspace(1.0, 2.0, 20), scale=1e-3).slopes) == 0
    grid = log_grid(BOTH_SIGNS, scale=1e-3)
    assert len(supported(grid, np.where(np.abs(grid.points) > 1e-2, 1.0, 0.0)).slopes) == 0


def test_the_bulk_ends_half_a_spacing_beyond_its_nodes():
    assert bulk_ends(np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0])) == pytest.approx((0.5, 8 + 5 / 6))
    assert bulk_ends(np.array([1.0, 3.0])) == (0.0, 4.0)
