import numpy as np
import pytest

import eigencurve as ec
from eigencurve.theory.candidates import classic_schedules, usual_schedules

S = ec.Spectrum([0.01, 0.1, 0.5, 2.0], [5, 3, 1, 1])


@pytest.mark.parametrize("T", [1, 2, 7, 1000])
def test_all_run_t_steps_up_to_the_largest_rate(T):
    for schedule in classic_schedules(S, ec.NoisyQuadratic(S).nodes, T, 0.7).values():
        assert schedule.total_steps == T
        assert 0 <= schedule.values().min() <= schedule.values().max() <= 0.7


def test_the_usual_ones_and_one_for_each_of_a_few_eigenvalues():
    usual, classics = usual_schedules(S, 100, 0.7), classic_schedules(S, ec.NoisyQuadratic(S).nodes, 100, 0.7)
    assert list(classics)[: len(usual)] == list(usual)
    assert list(classics)[len(usual) :] == [f"best for {lam:g}" for lam in S.eigenvalues]
    law = ec.PowerLaw(1.5, 1e-3, 1.0).spectrum(300)
    assert len(classic_schedules(law, ec.NoisyQuadratic(law).nodes, 100, 0.7)) == len(usual) + 5


def test_a_single_eigenvalue_has_no_eigencurve():
    assert "eigencurve" not in usual_schedules(ec.Spectrum(np.ones(3), np.ones(3)), 100, 0.7)
    assert "eigencurve" in usual_schedules(ec.Spectrum([1.0, 1.5], [1, 1]), 100, 0.7)
