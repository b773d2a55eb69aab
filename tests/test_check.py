import math

import numpy as np
import pytest

from eigencurve import _check


def test_a_message_names_function_argument_constraint_value_and_remedy():
    with pytest.raises(ValueError, match=r"^cosine: 'lr' must be > 0, got -1\.0\. Raise it\.$"):
        _check.positive("cosine", "lr", -1, "Raise it.")
    with pytest.raises(ValueError, match=r"^f: 'x' must be odd, got 2\.$"):
        _check.refuse("f", "x", "odd", 2)


def test_long_values_are_shortened_to_one_line():
    assert _check.shown(list(range(1000))).endswith("...")
    assert len(_check.shown(list(range(1000)))) == 160
    assert _check.shown(np.eye(2)) == "array([[1., 0.], [0., 1.]])"


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_become_int(value):
    assert type(_check.whole("f", "n", value, minimum=3)) is int


@pytest.mark.parametrize("value", [3.0, True, np.True_, "3", None, np.float64(3)])
def test_other_types_are_not_whole_numbers(value):
    with pytest.raises(TypeError, match=r"^f: 'n' must be an integer, got "):
        _check.whole("f", "n", value, minimum=0)


@pytest.mark.parametrize("value", ["0.1", b"1", True, np.True_, None, [1.0], 1j])
def test_other_types_are_not_numbers(value):
    with pytest.raises(TypeError, match=r"^f: 'x' must be a number, got "):
        _check.real("f", "x", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_numbers_are_finite(value):
    for check in (_check.real, _check.positive):
        with pytest.raises(ValueError, match="'x' must be finite"):
            check("f", "x", value)


@pytest.mark.parametrize(
    ("check", "allowed", "refused", "constraint"),
    [
        (lambda x: _check.whole("f", "x", x, minimum=2), 2, 1, ">= 2"),
        (lambda x: _check.positive("f", "x", x), 5e-324, 0.0, "> 0"),
        (lambda x: _check.at_least("f", "x", x, 1.5), 1.5, 1.4999, ">= 1.5"),
        (lambda x: _check.last_rate("f", x, lr=0.1), 0.1, 0.1001, "<= lr = 0.1"),
        (lambda x: _check.last_rate("f", x, lr=0.1), 0.0, -1e-9, ">= 0"),
        (lambda x: _check.choice("f", "x", x, ("a", "b")), "b", "c", "one of 'a', 'b'"),
    ],
)
def test_the_end_of_a_range_is_allowed_and_what_is_beyond_is_refused(check, allowed, refused, constraint):
    assert check(allowed) == allowed
    with pytest.raises(ValueError, match=f"must be {constraint}, got {refused!r}"):
        check(refused)


def test_a_vector_is_float64_with_one_axis():
    found = _check.vector("f", "x", (1, 2))
    assert (found.dtype, found.tolist()) == (np.float64, [1.0, 2.0])
    for values in ([], 3.0, [[1.0]]):
        with pytest.raises(ValueError, match="'x' must be a non-empty one-dimensional sequence, got 'shape"):
            _check.vector("f", "x", values)
    with pytest.raises(TypeError, match="'x' must be a sequence of real numbers, got"):
        _check.vector("f", "x", ["a"])


def test_a_vector_with_a_number_that_is_not_finite_names_its_position():
    with pytest.raises(ValueError, match=r"'x' must be finite, got nan\. It is at position 1\."):
        _check.vector("f", "x", [1.0, math.nan, math.inf])


@pytest.mark.parametrize("digits", [400, 5000])
def test_integers_that_no_float_or_array_can_hold_are_refused_in_one_short_line(digits):
    for check in (
        lambda n: _check.whole("f", "x", n, minimum=0),
        lambda n: _check.real("f", "x", n),
        lambda n: _check.vector("f", "x", [1, n]),
    ):
        with pytest.raises(ValueError, match=r"^f: 'x' must be ") as caught:
            check(10**digits)
        assert len(str(caught.value)) < 300
    assert _check.whole("f", "x", 2**63 - 1, minimum=0) == 2**63 - 1


@pytest.mark.filterwarnings("error")
def test_complex_numbers_are_not_real():
    for values in (np.array([1 + 2j, 3]), [1 + 2j, 3]):
        with pytest.raises(TypeError, match="'x' must be a sequence of real numbers, got"):
            _check.vector("f", "x", values)


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("cosin", "cosine"),
        ("COSINE", "cosine"),
        ("linera", "linear"),
        ("mult", "multistep"),
        ("bert", None),
        ("", None),
    ],
)
def test_a_misspelled_option_gets_a_suggestion(word, near):
    options = ("cosine", "linear", "multistep")
    assert _check.suggestion(word, options) == ("" if near is None else f"Did you mean {near!r}?")
    with pytest.raises(ValueError, match=r"^f: 'kind' must be one of 'cosine', 'linear', 'multistep', got") as refused:
        _check.choice("f", "kind", word, options)
    assert str(refused.value).endswith(f"Did you mean {near!r}?" if near else f"got {word!r}.")


def test_there_is_no_suggestion_for_what_is_not_a_word():
    assert _check.suggestion(3, ("3",)) == _check.suggestion("a", ()) == ""


def test_a_misspelt_choice_is_corrected():
    with pytest.raises(
        ValueError, match=r"f: 'x' must be one of 'cosine', 'linear', got 'cosin'\. Did you mean 'cosine'\?$"
    ):
        _check.choice("f", "x", "cosin", ("cosine", "linear"))
    with pytest.raises(ValueError, match=r"got 'zzz'\.$"):
        _check.choice("f", "x", "zzz", ("cosine", "linear"))
