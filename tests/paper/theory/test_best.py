from tests.paper.theory.pages import check_page

from paper.engine.request import Request
from paper.theory import best


def test_the_best_schedule_heads_its_table(monkeypatch, tmp_path, data_path):
    folder = data_path("spectra").parent
    monkeypatch.setattr(best, "CASES", ((300, 100.0), (200, 1e4)))
    assert "best found" in check_page(best.make(Request(data=folder)), tmp_path)
    for case in best.measure(folder):
        # tuning its scale once more, on compressed nodes, moves the best loss by rounding at most
        assert case.table["best found"].loss <= case.table.rows[0].loss * (1 + 1e-6)
