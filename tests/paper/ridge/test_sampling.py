import pytest

from eigencurve.runs.store import Store
from paper.data.libsvm import read_libsvm
from paper.engine.request import Workers
from paper.ridge.experiment import RidgeExperiment, RidgeProblem
from paper.ridge.sampling import check_sampling


def test_independent_rows_follow_the_theory_and_reshuffled_ones_beat_its_certificate(data_path, tmp_path):
    """At 25 epochs of a4a; the recursion leaves out that noise grows with the distance from the optimum."""
    ridge = RidgeExperiment(RidgeProblem(read_libsvm(data_path("a4a"), num_columns=123)), "a4a")
    check = check_sampling(ridge, 25, range(3), Store(tmp_path / "s.sqlite"), Workers(backend="sequential", count=1))
    for row in check.rows:
        assert row.independent == pytest.approx(row.expected, rel=0.15)
        assert row.independent > check.certificate
    assert min(row.reshuffled for row in check.rows) < check.certificate / 3
    assert check_sampling(ridge, 250, range(3), Store(tmp_path / "s.sqlite"), None) is None
