import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import eigencurve as ec
from eigencurve.spectrum import prepare

finite = st.floats(-1e6, 1e6)
pairs = st.lists(st.tuples(finite, st.floats(0, 1e3)), min_size=1, max_size=30).filter(
    lambda p: sum(w for _, w in p) > 1e-6
)


@given(pairs=pairs)
def test_is_sorted_normalised_and_read_only(pairs):
    s = ec.Spectrum(*zip(*pairs, strict=True))
    assert (np.diff(s.eigenvalues) >= 0).all()
    assert_allclose(s.weights.sum(), 1, rtol=1e-12)
    assert len(s) == len(pairs)
    assert (s.mu, s.L) == (min(lam for lam, _ in pairs), max(lam for lam, _ in pairs))
    with pytest.raises(ValueError, match="read-only"):
        s.weights[0] = 2


@given(pairs=pairs)
def test_making_it_again_changes_no_bit(pairs):
    s = ec.Spectrum(*zip(*pairs, strict=True), dim=7)
    for twin in (ec.Spectrum(s.eigenvalues, s.weights, s.dim), pickle.loads(pickle.dumps(s))):
        assert_array_equal(twin.weights, s.weights)
        assert twin == s
        assert hash(twin) == hash(s)
    assert s != ec.Spectrum(s.eigenvalues, s.weights, dim=8)


def test_keeps_its_own_copy_of_what_it_is_given():
    mine = np.array([1.0, 2.0])
    s = ec.Spectrum(mine, [1, 1])
    mine[0] = 5
    assert s.mu == 1.0


@pytest.mark.parametrize(
    ("eigenvalues", "weights", "error", "match"),
    [
        ([1.0, float("nan")], [1, 1], ValueError, r"'eigenvalues' must be finite, got nan. It is at position 1"),
        ([float("inf")], [1], ValueError, r"'eigenvalues' must be finite, got inf"),
        ([1.0, 2.0], [1, float("nan")], ValueError, r"'weights' must be finite"),
        ([1.0, 2.0], [1, -0.5], ValueError, r"'weights' must be >= 0, got -0.5"),
        ([1.0, 2.0], [0, 0], ValueError, r"'weights' must be above zero somewhere, got 'all zero'"),
        ([1.0, 2.0], [1], ValueError, r"'weights' must be as long as 'eigenvalues' \(2\)"),
        ([], [], ValueError, r"'eigenvalues' must be a non-empty one-dimensional"),
        ([[1.0]], [1], ValueError, r"'eigenvalues' must be a non-empty one-dimensional"),
        (["a"], [1], TypeError, r"'eigenvalues' must be a sequence of real numbers"),
        ([1j], [1], TypeError, r"'eigenvalues' must be a sequence of real numbers"),
        ([1.0, 2.0], [1e308, 1e308], ValueError, r"'weights' must be small enough to be summed"),
    ],
)
def test_refuses_bad_values(eigenvalues, weights, error, match):
    with pytest.raises(error, match="Spectrum: " + match):
        ec.Spectrum(eigenvalues, weights)


@pytest.mark.parametrize(("dim", "error"), [(0, ValueError), (1.5, TypeError), (True, TypeError)])
def test_refuses_a_bad_dimension(dim, error):
    with pytest.raises(error, match="Spectrum: 'dim' must be"):
        ec.Spectrum([1.0], [1], dim=dim)


def test_from_matrix_is_exact():
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    eigenvalues = np.array([-2.0, 0.5, 0.5, 1.0, 3.0, 100.0])
    matrix = q @ np.diag(eigenvalues) @ q.T
    s = ec.Spectrum.from_matrix(matrix)
    assert_allclose(s.eigenvalues, eigenvalues, atol=1e-12)
    assert_allclose(s.weights, 1 / 6)
    assert s.dim == 6


@pytest.mark.parametrize(
    ("matrix", "match"),
    [
        (np.ones((2, 3)), "must be square"),
        (np.ones(3), "must be square"),
        ([[1.0, 2.0], [0.0, 1.0]], r"must be symmetric, got .*Pass \(A \+ A.T\) / 2"),
        ([[1.0, np.nan], [np.nan, 1.0]], "must be finite"),
    ],
)
def test_from_matrix_refuses(matrix, match):
    with pytest.raises(ValueError, match=r"Spectrum.from_matrix: 'matrix' " + match):
        ec.Spectrum.from_matrix(matrix)


@given(pairs=pairs, decay=st.floats(1e-6, 1.0))
def test_prepare_adds_the_weight_decay_to_absolute_values(pairs, decay):
    s = ec.Spectrum(*zip(*pairs, strict=True), dim=10)
    assume(s.L > 0 or s.mu == 0)
    p = prepare(s, weight_decay=decay)
    expected = sorted((abs(lam) + decay, w) for lam, w in zip(s.eigenvalues, s.weights, strict=True))
    assert_allclose(p.eigenvalues, [lam for lam, _ in expected], rtol=1e-15)
    assert_allclose(np.sort(p.weights), np.sort(s.weights), rtol=1e-12)
    assert p.mu >= decay
    assert p.dim == 10


@pytest.mark.parametrize("negatives", ["abs", "drop"])
@pytest.mark.parametrize("eigenvalues", [[-3.0, -1.0], [-3.0, 0.0]])
def test_a_spectrum_without_positive_curvature_is_refused(eigenvalues, negatives):
    """It is that of a maximum: every rate leads away from it."""
    match = r"prepare: 'spectrum' must be positive somewhere, got .* from -3 to .* All .*: check the sign of the loss"
    with pytest.raises(ValueError, match=match):
        prepare(ec.Spectrum(eigenvalues, [1, 1]), 5e-4, negatives)


def test_a_flat_spectrum_is_not_a_maximum():
    assert prepare(ec.Spectrum([0.0], [1]), 5e-4).L == 5e-4
    with pytest.raises(ValueError, match=r"must be positive \(smallest eigenvalue mu > 0\), got 0"):
        prepare(ec.Spectrum([0.0], [1]))


@pytest.mark.parametrize(
    ("eigenvalues", "weights", "share"),
    [
        ([-1.0, 0.0, 3.0], [1, 1, 2], 1 / 7), ([1.0, 2.0], [1, 1], 0.0), ([-2.0, -1.0], [1, 1], 1.0), ([0.0], [1], 0.0),
        ([-1e308, 1e308], [3, 1], 0.75), ([-1.0, 3.0], [0, 1], 0.0), ([-1e-310, 1e-310], [1, 1], 0.5),
    ],
)  # fmt: skip
def test_the_share_of_the_curvature_that_is_negative(eigenvalues, weights, share):
    assert ec.Spectrum(eigenvalues, weights).negative_share == pytest.approx(share, abs=1e-12)


def test_prepare_drops_or_refuses_negatives():
    s = ec.Spectrum([-1.0, 0.0, 3.0], [1, 1, 2], dim=400)
    dropped = prepare(s, weight_decay=0.5, negatives="drop")
    assert_array_equal(dropped.eigenvalues, [0.5, 3.5])
    assert_allclose(dropped.weights, [1 / 3, 2 / 3])
    assert dropped.dim == 300
    assert_array_equal(prepare(s, negatives="drop").eigenvalues, [3.0])
    with pytest.raises(ValueError, match=r"without negative eigenvalues, got -1.0. Use negatives='abs' or 'drop'"):
        prepare(s, weight_decay=0.5, negatives="error")
    assert prepare(ec.Spectrum([0.0, 1.0], [1, 1]), 0.1, negatives="error").mu == 0.1


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda s: prepare(s),
            ValueError,
            r"mu > 0\), got 0.0. Call prepare .*weight decay above 0, or with negatives='drop'",
        ),
        (lambda s: prepare(s, weight_decay=-1.0), ValueError, r"'weight_decay' must be >= 0"),
        (
            lambda s: prepare(s, negatives="clip"),
            ValueError,
            r"'negatives' must be one of 'abs', 'drop', 'error'",
        ),
        (
            lambda _: prepare(ec.Spectrum([-1.0, 3.0], [1, 0]), negatives="drop"),
            ValueError,
            r"Nothing is left",
        ),
        (lambda _: prepare([1.0]), TypeError, r"'spectrum' must be a Spectrum"),
        (lambda s: s.kappa, ValueError, r"kappa: 'spectrum' must be positive"),
        (lambda s: s.describe(), ValueError, r"describe: 'spectrum' must be positive"),
    ],
)
def test_refuses_what_cannot_be_prepared(call, error, match):
    with pytest.raises(error, match=match):
        call(ec.Spectrum([-1.0, 0.0, 3.0], [1, 1, 2]))


@pytest.mark.filterwarnings("error")
def test_a_condition_number_beyond_float64_is_refused_before_it_divides_by_zero():
    wide = ec.Spectrum([1e-300, 1e300], [1, 1], dim=2)
    calls = [
        lambda: wide.kappa,
        wide.describe,
        lambda: prepare(wide),
        lambda: ec.spectrum.group(wide),
        lambda: ec.log_density(wide),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"of a condition number that float64 can hold, got .*weight decay"):
            call()
    assert prepare(wide, weight_decay=1e-5).kappa == 1e305
    with pytest.raises(ValueError, match="'weight_decay' must be small enough to be added to the eigenvalues"):
        prepare(ec.Spectrum([1e308], [1]), weight_decay=1.7e308)


def test_a_number_of_parameters_fits_an_int64():
    assert ec.Spectrum([1.0], [1], dim=2**63 - 1).dim == 2**63 - 1
    with pytest.raises(ValueError, match="'dim' must be <= 9223372036854775807, got 9223372036854775808"):
        ec.Spectrum([1.0], [1], dim=2**63)


@pytest.mark.filterwarnings("error")
def test_complex_values_are_refused_instead_of_losing_their_imaginary_part():
    with pytest.raises(TypeError, match="'eigenvalues' must be a sequence of real numbers"):
        ec.Spectrum(np.array([1 + 2j, 3]), [1, 1])
    with pytest.raises(TypeError, match="'matrix' must be a matrix of real numbers, got"):
        ec.Spectrum.from_matrix(np.array([[1, 1j], [-1j, 1]]))


def test_the_condition_number_is_a_ratio():
    assert ec.Spectrum([0.5, 4.0], [1, 1]).kappa == 8.0
    assert ec.PowerLaw(1.5, 0.5, 4.0).kappa == 8.0


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_matrix_may_be_asymmetric_by_rounding_only(size):
    for gap, is_symmetric in ((0.5e-8, True), (2e-8, False)):
        matrix = size * np.array([[1.0, 0.5], [0.5 + gap, 0.2]])
        if is_symmetric:
            assert ec.Spectrum.from_matrix(matrix).dim == 2
        else:
            with pytest.raises(ValueError, match=r"'matrix' must be symmetric, got '\|A - A\^T\|"):
                ec.Spectrum.from_matrix(matrix)
