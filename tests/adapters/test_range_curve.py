import numpy as np
import pytest

from eigencurve.adapters.range_curve import RangeTest

RATES = np.geomspace(1e-5, 10, 121)


def curve(rates=RATES):
    """A loss that falls fastest at 1e-2 and rises from 1 on, with a little noise."""
    falls = 2.3 - 1.0 / (1 + (1e-2 / rates) ** 1.5)
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(rates))
    return falls + np.where(rates > 0.5, (rates / 0.5) ** 2 - 1, 0.0) + noise


def test_the_steepest_descent_and_the_divergence_are_found():
    found = RangeTest(RATES, curve())
    # A grid of 20 rates per decade, smoothed over a few of them.
    assert found.steepest == pytest.approx(1e-2, rel=0.5)
    assert 0.5 < found.diverged_at < 1.5
    assert found.tenth == found.diverged_at / 10
    assert found.suggestion == min(found.steepest, found.tenth)


def test_an_infinite_loss_is_a_divergence():
    losses = np.where(RATES > 0.3, np.nan, curve())
    found = RangeTest(RATES, losses)
    assert found.diverged_at == RATES[RATES > 0.3][0]
    assert len(found.smoothed) == (RATES <= 0.3).sum()
    assert RangeTest(RATES[:3], [np.inf] * 3).suggestion == pytest.approx(RATES[0] / 10)


def test_without_a_rise_there_is_no_divergence_and_without_a_fall_no_descent():
    calm = RATES < 0.1
    found = RangeTest(RATES[calm], curve()[calm])
    assert found.diverged_at is None
    assert found.suggestion == found.steepest
    assert RangeTest(RATES[calm], curve()[calm], stopped=True).diverged_at == RATES[calm][-1]
    rising = RangeTest([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert rising.steepest is None
    assert "steepest descent of the loss   not found" in repr(rising)
    flat = RangeTest(RATES, 2.3 + 0.1 * np.random.default_rng(1).standard_normal(len(RATES)))
    assert flat.diverged_at is None
    assert flat.noise == pytest.approx(0.1, rel=0.3)  # 121 numbers, less what the kernel follows


def test_it_is_readable_and_read_only():
    found = RangeTest(RATES, curve())
    head, *lines = repr(found).splitlines()
    assert head == "RangeTest(121 steps, rates 1e-05 to 10)"
    assert len(lines) == 4
    assert f"suggested rate                 {found.suggestion:.3g}" in lines[-1]
    with pytest.raises(ValueError, match="read-only"):
        found.losses[0] = 0.0


@pytest.mark.parametrize(("rates", "losses"), [([1.0, 1.0], [1, 2]), ([0.0, 1.0], [1, 2]), ([1.0, 2.0], [1])])
def test_refuses_bad_curves(rates, losses):
    with pytest.raises(ValueError, match="increasing rates > 0 with one loss each"):
        RangeTest(rates, losses)
