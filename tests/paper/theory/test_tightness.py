from tests.paper.theory.pages import check_page

from paper.engine.request import Request
from paper.theory import tightness


def test_no_bound_is_passed(monkeypatch, tmp_path):
    monkeypatch.setattr(tightness, "NUM_PROBLEMS", 20)
    assert "Proposition 2" in check_page(tightness.make(Request()), tmp_path)
    found = tightness.measure()
    assert len(found) >= 6
    for name, values in found.items():
        # Step decay has a bound for the sum only, so its bias has no ratio.
        known = [triple[1:] if name == "step decay, lower" else triple for triple in values]
        assert all(0 < ratio <= 1 + 1e-9 for triple in known for ratio in triple), name
