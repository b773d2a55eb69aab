import numpy as np
import pytest

import eigencurve as ec
from eigencurve.theory.starting_points import COMMON, starting_points

S = ec.Spectrum([0.01, 0.1, 0.5, 2.0], [5, 3, 1, 1])


@pytest.mark.parametrize("T", [1, 2, 7, 1000])
def test_all_run_t_steps_up_to_the_largest_rate(T):
    for schedule in starting_points(S, ec.NoisyQuadratic(S).nodes, T, 0.7).values():
        assert schedule.total_steps == T
        assert 0 <= schedule.values().min() <= schedule.values().max() <= 0.7


def test_common_schedules_eigencurve_and_one_for_each_of_a_few_eigenvalues():
    best_for = [f"best_for_{lam:g}" for lam in S.eigenvalues]
    curves = ["eigencurve", "eigencurve_optimal"]
    assert list(starting_points(S, ec.NoisyQuadratic(S).nodes, 100, 0.7)) == [*COMMON, *curves, *best_for]
    law = ec.PowerLaw(1.5, 1e-3, 1.0).spectrum(300)
    assert len(starting_points(law, ec.NoisyQuadratic(law).nodes, 100, 0.7)) == len(COMMON) + 2 + 5


def test_a_single_eigenvalue_has_no_eigencurve():
    flat = ec.Spectrum(np.ones(3), np.ones(3))
    assert "eigencurve" not in starting_points(flat, ec.NoisyQuadratic(flat).nodes, 100, 0.7)
