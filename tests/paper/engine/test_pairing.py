import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from paper.engine.pairing import (
    PairedDifference,
    paired_difference,
    pooled_deviation,
    power_of,
    resolved_difference,
    seeds_needed,
    together_sentence,
)
from paper.engine.protocol import Trials


def trials(**by_seed):
    return Trials({}, tuple(by_seed.values()), 0, tuple(int(seed[1:]) for seed in by_seed))


def test_differences_are_taken_at_common_seeds():
    found = paired_difference(trials(s2=5.0, s0=1.0, s7=3.0), trials(s0=0.5, s1=9.0, s2=4.0))
    assert found == PairedDifference((1.0, 0.5))
    assert paired_difference(trials(s0=1.0, s1=2.0), trials(s0=1.0, s3=2.0)) is None


def test_the_interval_is_that_of_a_t_test():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.4, 1.0, 7), rng.normal(0.0, 1.0, 7)
    found = PairedDifference(tuple(first - second))
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert found.error == pytest.approx(stats.sem(first - second))


@pytest.mark.parametrize(
    ("values", "sign"), [((1.0, 1.1, 0.9), 1), ((-1.0, -1.1, -0.9), -1), ((1.0, -1.1, 0.9), 0), ((0.0, 0.0), 0)]
)
def test_a_sign_is_given_if_the_interval_is_on_one_side(values, sign):
    assert PairedDifference(values).sign == sign


def test_pooling_weights_by_degrees_of_freedom():
    one, two = PairedDifference((0.0, 2.0)), PairedDifference((0.0, 0.0, 3.0))
    assert pooled_deviation([one, two]) == pytest.approx(math.sqrt((2.0 + 6.0) / 3))
    with pytest.raises(ValueError, match="'differences' must be at least one"):
        pooled_deviation([])


def test_two_schedules_resolve_what_a_paired_t_test_resolves():
    rng = np.random.default_rng(3)
    first, second = (Trials({}, tuple(rng.normal(0, 1, 5)), 0, tuple(range(5))) for _ in range(2))
    low, high = paired_difference(first, second).interval
    assert resolved_difference([first, second]) == pytest.approx((high - low) / 2)


def test_common_effects_of_seeds_do_not_count_and_the_error_rate_is_5_percent():
    rng = np.random.default_rng(4)
    false = []
    for _ in range(2_000):
        values = rng.normal(0, 0.3, (6, 3)) + rng.normal(0, 10.0, 3)
        every = [Trials({}, tuple(row), 0, (0, 1, 2)) for row in values]
        false.append(abs(every[0].mean - every[1].mean) > resolved_difference(every))
    assert np.mean(false) == pytest.approx(0.05, abs=0.02)  # four standard errors


def test_only_common_seeds_are_resolved():
    one, two = trials(s0=1.0, s1=2.0, s2=9.0), trials(s1=2.5, s0=1.1)
    assert resolved_difference([one, two]) == pytest.approx(
        resolved_difference([trials(s0=1.0, s1=2.0), trials(s0=1.1, s1=2.5)])
    )
    assert resolved_difference([one]) is None
    assert resolved_difference([]) is None
    assert resolved_difference([one, trials(s2=1.0, s5=2.0)]) is None


def test_the_power_is_that_of_a_noncentral_t_variable():
    for num_seeds, shift in ((3, 1.0), (10, 3.0), (500, 2.0)):
        critical = stats.t.ppf(0.975, num_seeds - 1)
        expected = stats.nct.sf(critical, num_seeds - 1, shift) + stats.nct.cdf(-critical, num_seeds - 1, shift)
        assert power_of(num_seeds, shift / num_seeds**0.5, 1.0) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("num_seeds", "difference", "deviation"), [(3, 0.5, 0.3), (10, 0.5, 0.5), (34, 0.5, 1.0)])
def test_the_power_is_that_of_a_simulation(num_seeds, difference, deviation):
    rng = np.random.default_rng(1)
    num_repeats = 20_000
    values = rng.normal(difference, deviation, (num_repeats, num_seeds))
    detected = np.mean(stats.ttest_1samp(values, 0.0, axis=1).pvalue < 0.05)
    found = power_of(num_seeds, difference, deviation)
    assert detected == pytest.approx(found, abs=4 * math.sqrt(found * (1 - found) / num_repeats))


def test_the_number_of_seeds_is_enough_and_one_less_is_not():
    rng = np.random.default_rng(2)
    for deviation in (0.2, 0.5, 1.0):
        needed = seeds_needed(0.5, deviation)
        shares = []
        for num_seeds in (needed, needed - 1):
            values = rng.normal(0.5, deviation, (40_000, num_seeds))
            shares.append(np.mean(stats.ttest_1samp(values, 0.0, axis=1).pvalue < 0.05))
        assert shares[0] > 0.8 - 0.008  # four standard errors of the simulation
        assert shares[1] < 0.8 + 0.008


@given(st.floats(0.01, 5.0), st.floats(0.05, 2.0))
def test_the_number_of_seeds_depends_on_the_ratio_and_grows_with_it(deviation, difference):
    needed = seeds_needed(difference, deviation)
    assert needed >= 2
    assert abs(seeds_needed(1.0, deviation / difference) - needed) <= 1  # rounding
    assert seeds_needed(difference, 1.5 * deviation) >= needed
    # The normal approximation, (z₀.₉₇₅ + z₀.₈)² s²/δ², is at most a few seeds too small.
    assert needed - 7.849 * (deviation / difference) ** 2 <= 4


def test_extremes():
    assert seeds_needed(0.5, 0.0) == 2
    with pytest.raises(ValueError, match="seeds_needed: 'difference' must be > 0"):
        seeds_needed(0.0, 1.0)
    assert seeds_needed(1.0, 1e-4) == 2
    assert seeds_needed(0.005, 100.0) == pytest.approx(7.849 * 20_000**2, rel=1e-4)


def test_schedules_that_differ_by_more_than_all_resolve_together():
    def of_seeds(*values, seeds=(0, 1, 2)):
        return Trials({}, values, 3 - len(values), seeds)

    found = {
        "cosine": of_seeds(1.0, 2.0, 3.0),
        "better": of_seeds(0.5, 1.51, 2.5),
        "same": of_seeds(1.0, 2.01, 3.02),
        "worse": of_seeds(1.3, 2.31, 3.3),
        "diverged": of_seeds(0.1, 0.2, seeds=(0, 1)),
    }
    text = together_sentence(found, "cosine", minimise=True, digits=2, unit="nats")
    assert text.startswith("If all 4 schedules scatter alike, they resolve differences above 0.01 nats together")
    assert text.endswith("better than cosine: better; worse: worse.")
    turned = together_sentence(found, "cosine", minimise=False, digits=2, unit="nats")
    assert turned.endswith("better than cosine: worse; worse: better.")
    assert together_sentence({"cosine": found["cosine"]}, "cosine", minimise=True, digits=2, unit="nats") == ""
