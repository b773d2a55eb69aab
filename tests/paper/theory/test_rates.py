import pytest
from tests.paper.theory.pages import check_page

from paper.engine.request import Request
from paper.theory import rates


def test_rates_grow_as_the_paper_says(monkeypatch, tmp_path):
    """κ for inverse time, log T for step decay, flat for eigencurve; a constant rate does not converge."""
    monkeypatch.setattr(rates, "HORIZONS", tuple(2**k for k in range(10, 17)))
    assert "certificate" in check_page(rates.make(Request()), tmp_path)
    for over_steps, over_kappa in zip(*(iter(rates.measure()),) * 2, strict=True):
        assert rates.slope(over_steps, "constant", 3) == pytest.approx(1.0, abs=0.02)
        flat = over_steps.scaled["eigencurve"][-2:]
        assert flat[1] == pytest.approx(flat[0], rel=0.02)
        step = over_steps.scaled["step decay"]
        # 0.09 σ²/T for every doubling of T, whatever the spectrum
        assert step[-1] - step[-2] == pytest.approx(step[-2] - step[-3], rel=0.05)
        assert step[-1] - step[-2] == pytest.approx(0.090, abs=0.005)
        if over_kappa.spectrum.startswith("uniform"):
            assert rates.slope(over_kappa, "inverse time", 3) == pytest.approx(1.0, abs=0.05)
