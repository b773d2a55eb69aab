import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.reference.short_runs import AGREEMENT, exact_loss, excess, lowest_loss, short_run

import eigencurve as ec
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.optimal import search
from eigencurve.theory.short_runs import SHORT_RUN, low_minima, random_shares, reliable

LAWS = ((0.5, False), (0.9, False), (0.5, True), (0.9, True))


@pytest.mark.parametrize(
    ("eigenvalues", "weights", "noise", "cap", "shares"),
    [
        ([0.1383, 0.1468, 0.6868], [0.3394, 0.1489, 0.5117], 0.0044, 4.0, [4, 4, 1, 0.545]),
        ([0.0259, 0.0304, 0.6582], [0.5695, 0.2303, 0.2002], 3.3725, 2.0, [2, 0.866, 0.495, 0.337]),
    ],
)
def test_short_runs_with_a_second_minimum(eigenvalues, weights, noise, cap, shares):
    """Searches from the classic schedules alone end 33 % and 2.3 % above these rates, in another minimum."""
    q = ec.NoisyQuadratic(ec.Spectrum(eigenvalues, weights), noise)
    rates = np.array(shares) / q.spectrum.L
    found = q.search_best(4, cap / q.spectrum.L)
    assert found.loss <= q.expected_loss(ec.piecewise(4, np.arange(4.0), rates))
    assert_allclose(found.schedule.values(), rates, rtol=2e-3)  # the digits given above
    assert found.status == "optimised"


def missed(shortest, longest, count, num_starts, laws=((0.0, False),)):
    """The excess over the lowest loss that SciPy finds from random starts, for ``count`` random problems."""
    rng = np.random.default_rng([count, shortest, longest])
    for i in range(count):
        run = short_run(rng, shortest, longest, *laws[i % len(laws)])
        yield excess(run.quadratic.search_best(run.total_steps, run.max_lr).loss, lowest_loss(run, num_starts, i), run)


def test_no_random_start_finds_a_lower_loss():
    """`python -m benchmarks.short_runs` does the same with many more problems and starts."""
    assert max(missed(2, 6, 60, 30)) < 1e-3
    assert max(missed(7, 50, 20, 15)) < 1e-3


def test_no_random_start_finds_a_lower_loss_with_momentum():
    assert max(missed(2, 6, 40, 30, LAWS)) < 1e-3
    assert max(missed(7, 16, 10, 15, LAWS)) < 1e-3


def test_blocks_of_one_step_find_the_same_minimum():
    q = ec.NoisyQuadratic(ec.Spectrum([0.1383, 0.1468, 0.6868], [0.3394, 0.1489, 0.5117]), 0.0044)
    max_lr = 4 / q.spectrum.L
    found = search(BlockEvaluator(q.nodes), q.spectrum, 4, max_lr)
    assert_allclose(found.loss, q.search_best(4, max_lr).loss, rtol=1e-6)
    assert found.start.startswith("minimum")


@pytest.mark.parametrize("law", [(0.0, False), (0.9, False), (0.9, True)])
def test_the_minima_are_sorted_and_within_the_limits(law):
    q = ec.NoisyQuadratic(ec.PowerLaw(1.5, 1e-2, 1.0).spectrum(80), 3.0, 1.0, *law)
    known = [np.full(9, 0.3), np.linspace(1.0, 0.1, 9)]
    minima = low_minima(q.nodes, 1.5, known)
    losses = [q.expected_loss(ec.piecewise(9, np.arange(9.0), rates)) for rates in minima]
    assert len(minima) > 0
    assert losses == sorted(losses)
    assert losses[0] <= min(q.expected_loss(ec.piecewise(9, np.arange(9.0), rates)) for rates in known)
    assert all(0 <= rates.min() <= rates.max() <= 1.5 for rates in minima)
    for mine, again in zip(minima, low_minima(q.nodes, 1.5, known), strict=True):
        assert_array_equal(mine, again)


def test_random_shares_are_fractions_at_every_scale():
    shares = np.array(list(random_shares(np.random.default_rng(0), 5, 400)))
    assert shares.shape == (400, 5)
    assert 0 <= shares.min() <= shares.max() == 1
    peaks = shares.max(axis=1)
    assert (peaks < 0.03).sum() > 20
    assert (peaks == 1).sum() > 50
    falling = (np.diff(shares) <= 0).all(axis=1)
    assert falling[0::4].all()
    assert falling[1::4].all()
    assert not falling[2::4].all()


def test_a_loss_that_cancelled_is_not_reliable():
    """Above the largest stable rate the moments grow, and their rounding errors exceed what is left in the end."""
    q = ec.NoisyQuadratic(ec.Spectrum([0.1, 1.0], [1, 1]), 1.0, 1.0, 0.9, nesterov=True)
    calm, wild = np.full(40, 0.2), np.full(40, 4.0)
    wild[20:] = 0.5
    assert reliable(q.nodes, calm)
    assert not reliable(q.nodes, np.where(np.arange(60) < 30, 4.0, 0.5))
    assert reliable(ec.NoisyQuadratic(q.spectrum).nodes, wild)


@pytest.mark.parametrize("T", [20, 45])
@pytest.mark.parametrize("law", LAWS)
def test_the_loss_found_is_the_one_of_exact_sums(T, law):
    """With rates far above the stable ones, a search for the lowest computed loss would find rounding errors."""
    q = ec.NoisyQuadratic(ec.Spectrum([0.01, 0.2, 1.0], [1, 1, 1]), 0.01, 1.0, *law)
    found = q.search_best(T, 4.0)
    exact = exact_loss(q, found.schedule.values())
    assert found.loss == pytest.approx(exact, rel=2 * AGREEMENT)


@pytest.mark.parametrize("T", [SHORT_RUN, SHORT_RUN + 1])
def test_longer_runs_start_from_the_classic_schedules_only(monkeypatch, T):
    called = []
    monkeypatch.setattr("eigencurve.theory.optimal.low_minima", lambda *_: called.append(T) or [])
    ec.NoisyQuadratic(ec.Spectrum([0.1, 1.0], [1, 1])).search_best(T, 1.0)
    assert bool(called) == (T == SHORT_RUN)
