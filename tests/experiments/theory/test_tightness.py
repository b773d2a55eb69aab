from tests.experiments.theory.pages import check_page

from eigencurve.experiments.engine.request import Request
from eigencurve.experiments.theory import tightness


def test_no_bound_is_passed(monkeypatch, tmp_path):
    monkeypatch.setattr(tightness, "NUM_PROBLEMS", 20)
    assert "Proposition 2" in check_page(tightness.make(Request()), tmp_path)
    for values in tightness.measure().values():
        assert all(not ratio > 1 + 1e-9 for triple in values for ratio in triple)
