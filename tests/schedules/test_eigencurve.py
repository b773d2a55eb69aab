import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tests.reference import schedules as reference

import eigencurve as ec
from eigencurve._check import ArgumentValueError
from eigencurve.schedules.eigencurve import curve_of

positive = st.floats(1e-6, 1e4)
spectra = st.lists(st.tuples(positive, st.floats(1e-3, 1)), min_size=2, max_size=12, unique_by=lambda pair: pair[0])


def spectrum_of(pairs):
    s = ec.Spectrum(*zip(*pairs, strict=True))
    return s, s.eigenvalues.tolist(), s.weights.tolist()


def assume_off_the_edges(s, beta):
    """Skip eigenvalues within 1e-12 of an edge: the code and the transcription may choose different groups there."""
    heights = np.log(s.eigenvalues / s.mu) / np.log(beta)
    assume((np.abs(heights - np.rint(heights))[s.eigenvalues > s.mu] > 1e-9).all())


def distance(f, g):
    return float(np.abs(np.log(f.values() / g.values())).max())


@given(pairs=spectra, T=st.integers(1, 300), lr=st.floats(1e-4, 10), beta=st.sampled_from([1.3, 1.9, 2.0, 3.0, 10.0]))
def test_matches_the_equations(pairs, T, lr, beta):
    s, eigenvalues, weights = spectrum_of(pairs)
    assume_off_the_edges(s, beta)
    f = ec.eigencurve(s, T, lr, beta=beta)
    assert_allclose(f.values(), reference.eigencurve(eigenvalues, weights, T, lr, beta), rtol=1e-9)


@given(pairs=spectra, extra=st.integers(0, 300), ratio=st.floats(0, 1), beta=st.sampled_from([1.9, 2.0, 3.0]))
def test_released_rounding_and_min_lr_match_the_equations(pairs, extra, ratio, beta):
    s, eigenvalues, weights = spectrum_of(pairs)
    assume_off_the_edges(s, beta)
    T = len(ec.spectrum.group(s, beta)) + extra
    literal = reference.eigencurve(eigenvalues, weights, T, 0.5, beta, rounding="released")
    assert_allclose(ec.eigencurve(s, T, 0.5, beta=beta, rounding="released").values(), literal, rtol=1e-9)
    if T > 1:
        mapped = ec.eigencurve(s, T, 0.5, beta=beta, rounding="released", min_lr=0.5 * ratio)
        literal = reference.eigencurve(eigenvalues, weights, T, 0.5, beta, "released", min_lr=0.5 * ratio)
        # The map divides by lr - f(T-1), which is small if the curve hardly decays.
        assert_allclose(mapped.values(), literal, rtol=1e-6)
        assert mapped(0) == 0.5
        assert mapped(T - 1) == 0.5 * ratio


@given(pairs=spectra, T=st.integers(1, 1000), scale=st.floats(1e-5, 1e5), beta=st.sampled_from([1, 1.000005, 1.5, 2.0]))
def test_does_not_depend_on_the_scale_of_the_eigenvalues(pairs, T, scale, beta):
    s, _, _ = spectrum_of(pairs)
    scaled = ec.Spectrum(s.eigenvalues * scale, s.weights)
    for allocation in ("sqrt", "optimal"):
        f, g = (ec.eigencurve(p, T, 1.0, beta=beta, allocation=allocation) for p in (s, scaled))
        # The optimal lengths are accurate to about kappa * 1e-16 steps, with kappa up to 1e10 here.
        assert_allclose(f.values(), g.values(), rtol=1e-5)


@given(
    pairs=spectra,
    T=st.integers(1, 10**7),
    beta=st.sampled_from([1, 1.1, 2.0]),
    allocation=st.sampled_from(["sqrt", "optimal"]),
)
def test_intervals_fill_the_run(pairs, T, beta, allocation):
    s, _, _ = spectrum_of(pairs)
    assume(beta > 1 or s.kappa > 1 + 1e-9)  # the limit has a density only if the eigenvalues differ
    f = ec.eigencurve(s, T, 1.0, beta=beta, allocation=allocation)
    assert f.times[0] == 0
    assert f.times[-1] == T
    assert (np.diff(f.times) > 0).all()
    if beta == 2.0 and allocation == "sqrt":
        assert_allclose(np.diff(f.times).sum(), T, rtol=1e-12)


def test_the_slopes_are_powers_of_beta_over_kappa():
    s = ec.Spectrum([1.0, 1.5, 4.0, 64.0], [4, 4, 4, 4])
    f = ec.eigencurve(s, 1000, 1.0)
    assert_allclose(np.diff(f.denominators) / np.diff(f.times), np.array([1, 4, 64]) / 64)
    assert_allclose(np.diff(f.times) / 1000, np.sqrt([0.5, 0.25, 0.25]) / np.sqrt([0.5, 0.25, 0.25]).sum())


@pytest.mark.parametrize(
    "law", [ec.PowerLaw(1.1, 1e-3, 500.0), ec.PowerLaw(1.55, 5e-4, 180.0), ec.PowerLaw(2.5, 1e-2, 3.0)]
)
@pytest.mark.parametrize("allocation", ["sqrt", "optimal"])
def test_beta_one_is_the_limit(law, allocation):
    limit = ec.eigencurve(law, 39_100, 0.1, beta=1, allocation=allocation)
    gaps = [distance(ec.eigencurve(law, 39_100, 0.1, beta=b, allocation=allocation), limit) for b in (1.1, 1.01, 1.001)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 2e-3
    if allocation == "sqrt":  # the optimal one is already within 0.2 % at 1.1
        assert gaps[1] < gaps[0] / 5


@pytest.mark.parametrize("alpha", [1.1, 1.55, 2.5])
def test_the_limit_does_not_depend_on_the_number_of_nodes(alpha):
    law = ec.PowerLaw(alpha, 5e-4, 180.0)
    limit = ec.eigencurve(law, 39_100, 0.1, beta=1)
    for num in (64, 128, 256, 512, 1024, 5000):
        assert distance(ec.eigencurve(law.spectrum(num), 39_100, 0.1, beta=1), limit) < 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_the_limit_does_not_depend_on_the_positions_of_the_nodes(seed):
    """Random nodes, each with the mass between the midpoints to its neighbours."""
    law = ec.PowerLaw(1.55, 5e-4, 180.0)
    limit = ec.eigencurve(law, 39_100, 0.1, beta=1)
    for num in (500, 1000, 2000):
        inner = np.random.default_rng(seed).uniform(np.log(law.mu), np.log(law.L), num)
        u = np.sort(np.concatenate(([np.log(law.mu)], inner, [np.log(law.L)])))
        below = law.cumulative(np.exp((u[1:] + u[:-1]) / 2))
        s = ec.Spectrum(np.exp(u), np.diff(np.concatenate(([0], below, [1]))))
        assert distance(ec.eigencurve(s, 39_100, 0.1, beta=1), limit) < 0.01


def test_the_limit_of_a_folded_spectrum_with_half_the_nodes(data_path):
    """Merging pairs of neighbours in a published spectrum does not change the density or the curve."""
    s = ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt"))
    pairs = s.weights[1:-1].reshape(-1, 2)
    middles = (s.eigenvalues[1:-1].reshape(-1, 2) * pairs).sum(1) / np.maximum(pairs.sum(1), 1e-300)
    middles[pairs.sum(1) == 0] = s.eigenvalues[1:-1].reshape(-1, 2).mean(1)[pairs.sum(1) == 0]
    half = ec.Spectrum(
        np.concatenate((s.eigenvalues[:1], middles, s.eigenvalues[-1:])),
        np.concatenate((s.weights[:1], pairs.sum(1), s.weights[-1:])),
    )
    zero = lambda x: ec.Spectrum(np.append(x.eigenvalues, 0.0), np.append(x.weights, 1e-12))  # noqa: E731
    full, merged = (ec.eigencurve(ec.spectrum.prepare(zero(x), 5e-4), 39_100, 0.1, beta=1) for x in (s, half))
    body = slice(0, 38_300)  # the last 2 % belong to about thirty isolated outliers, which have no density
    assert np.abs(np.log(full.values() / merged.values()))[body].max() < 0.01


def test_the_limit_of_eigenvalues_that_differ_in_the_last_bit():
    close = ec.eigencurve(ec.Spectrum([1.0, 1e4, 9999.999999999998], [1, 1, 1]), 100, 0.1, beta=1)
    assert distance(close, ec.eigencurve(ec.Spectrum([1.0, 1e4], [1, 2]), 100, 0.1, beta=1)) < 1e-9


def test_a_power_law_needs_no_estimate():
    law = ec.PowerLaw(1.5, 1e-3, 100.0)
    exact = ec.eigencurve(law, 10_000, 0.1)
    sampled = ec.eigencurve(law.spectrum(num=20_000), 10_000, 0.1)
    assert distance(exact, sampled) < 0.01


def test_three_million_groups_cost_no_more_than_the_nodes():
    """beta = 1.000005 on kappa = 7e6: the number of knots stays that of the nodes."""
    law = ec.PowerLaw(1.3, 1e-4, 700.0)
    assert len(ec.eigencurve(law.spectrum(5000), 10**6, 0.1, beta=1.000005).times) <= 5001
    assert len(ec.eigencurve(law, 10**6, 0.1, beta=1.000005).times) <= 4097
    assert len(ec.eigencurve(law, 10**15, 0.1, beta=1).times) <= 4097


def test_the_optimal_allocation_lowers_the_variance_term():
    from eigencurve.schedules.allocation import optimal_allocation, sqrt_allocation, variance_term

    g = ec.spectrum.group(ec.PowerLaw(1.2, 1e-3, 100.0))
    slope = g.lower / 100.0
    best, root = (make(g.share, *rest, 5000) for make, rest in ((optimal_allocation, [slope]), (sqrt_allocation, [])))
    assert variance_term(g.share, slope, best) < variance_term(g.share, slope, root)


def test_description_has_a_row_per_interval():
    f = ec.eigencurve(ec.Spectrum([1.0, 2.0, 4.0], [16, 4, 1]), total_steps=700, lr=1.0)
    rows = f.describe().splitlines()[-3:]
    assert [row.split()[0] for row in rows] == ["0", "1", "2"]
    assert [row.split()[3] for row in rows] == ["57.14%", "28.57%", "14.29%"]
    many = ec.eigencurve(ec.PowerLaw(1.5, 1e-3, 100.0), 10_000, 0.1, beta=1.01).describe()
    assert "shorter intervals" in many
    assert len(many.splitlines()) < 30


GOOD = ec.Spectrum([1.0, 3.0], [1, 1])


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"beta": 0.9}, "beta"),
        ({"beta": float("nan")}, "beta"),
        ({"min_lr": 0.2}, "min_lr"),
        ({"min_lr": -0.2}, "min_lr"),
        ({"lr": 0}, "lr"),
        ({"total_steps": 0}, "total_steps"),
        ({"allocation": "best"}, "allocation"),
        ({"rounding": "up"}, "rounding"),
        ({"rounding": "released", "beta": 1}, "beta"),
        ({"spectrum": ec.Spectrum([2.0], [1])}, "spectrum"),
        ({"spectrum": ec.Spectrum([2.0, 2.0], [1, 1])}, "spectrum"),
        ({"spectrum": ec.Spectrum([2.0], [1]), "beta": 1}, "spectrum"),
        ({"spectrum": ec.Spectrum([0.0, 2.0], [1, 1])}, "spectrum"),
        ({"spectrum": ec.Spectrum([-1.0, 2.0], [1, 1]), "beta": 1}, "spectrum"),
    ],
)
def test_bad_settings_are_refused(settings, argument):
    arguments = {"spectrum": GOOD, "total_steps": 10, "lr": 0.1, **settings}
    with pytest.raises(ArgumentValueError) as error:
        ec.eigencurve(**arguments)
    assert error.value.argument == argument


def test_refuses_what_is_no_spectrum():
    with pytest.raises(TypeError, match=r"eigencurve: 'spectrum' must be a Spectrum or a PowerLaw"):
        ec.eigencurve([1.0, 2.0], 10, 0.1)


def test_arrays_cannot_be_changed():
    f = ec.eigencurve(GOOD, 10, 0.1)
    with pytest.raises(ValueError, match="read-only"):
        f.times[0] = 3
    assert_array_equal(f.times, ec.eigencurve(GOOD, 10, 0.1).times)


def test_a_run_too_short_to_decay_is_warned_about():
    law = ec.PowerLaw(1.5, 1e-3, 1e3)
    with pytest.warns(UserWarning, match="eigencurve: The run of 50 steps is 20,000 times shorter.*min_lr.*plan"):
        curve = ec.eigencurve(law, 50, lr=0.1)
    assert curve(49) > 0.08
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ec.eigencurve(law, 50, lr=0.1, min_lr=0.0)
        ec.eigencurve(law, 5000, lr=0.1)
        assert curve_of(law, 50, lr=0.1) == curve
