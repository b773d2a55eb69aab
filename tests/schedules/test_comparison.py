import json

import pytest

import eigencurve as ec
from eigencurve import ComparisonRow, ComparisonTable
from eigencurve.schedules.comparison import aligned, percent, ranked

NOTE = "The rates are above all logged rates."
FULL = ComparisonRow(
    "wsd_20", ec.wsd(1000, 0.1), loss=2.5, low=2.4, high=2.625, excess=0.0125, excess_low=0.01, excess_high=0.02,
    bias=1.5, variance=1.0, gap=0.25, label="WSD, 20 %", beyond=(NOTE,),
)  # fmt: skip
REFERENCE = ComparisonRow("cosine", ec.cosine(1000, 0.1), loss=2.46914, excess=0.0)
DIVERGED = ComparisonRow("constant", ec.constant(1000, 0.1))


def table(*rows, **settings):
    return ComparisonTable(ranked(rows), "cosine", **settings)


def cells(shown):
    return [line.split("  ") for line in str(shown).splitlines()]


def test_rows_are_ordered_by_loss_or_excess_and_those_that_diverge_are_last():
    relative = [ComparisonRow(name, ec.linear(10, 0.1), excess=excess) for name, excess in (("a", 0.2), ("b", -0.1))]
    assert [row.name for row in ranked([DIVERGED, FULL, REFERENCE])] == ["cosine", "wsd_20", "constant"]
    assert [row.name for row in ranked([*relative, DIVERGED])] == ["b", "a", "constant"]
    assert table(FULL, REFERENCE).best is REFERENCE


def test_rows_are_found_by_name():
    shown = table(FULL, REFERENCE)
    assert shown["wsd_20"] is FULL
    assert len(shown) == 2
    assert (FULL.label, REFERENCE.label) == ("WSD, 20 %", "cosine")
    assert FULL.peak_lr == pytest.approx(0.1)


def test_every_column_that_has_a_value_is_printed():
    shown = table(FULL, REFERENCE, DIVERGED, lower_bound=2.0, max_lr=0.5)
    assert str(shown).replace("\u00a0", " ").splitlines() == [
        "schedule     peak lr      loss   80 % interval   bias  variance     excess        excess, 80 %      gap",
        "cosine           0.1    2.4691               -      -         -  reference                   -        -",
        "WSD, 20 % *      0.1    2.5000  2.400 to 2.625  1.500     1.000    +1.25 %  +1.00 % to +2.00 %  +25.0 %",
        "constant         0.1  diverged               -      -         -          -                   -        -",
        "lower bound: 2.00000 for every schedule of 1,000 steps and rates up to 0.5",
        f"* {NOTE}",
    ]


def test_columns_without_values_are_left_out():
    assert list(table(REFERENCE, DIVERGED).columns()) == ["schedule", "peak lr", "loss", "excess"]
    assert list(table(DIVERGED).columns()) == ["schedule", "peak lr", "excess"]
    assert not table(REFERENCE, lower_bound=1.0).footer()


def test_relative_losses_alone_have_no_column_of_losses():
    relative = ComparisonRow("linear", ec.linear(1000, 0.1), excess=-0.5)
    columns = table(relative, ComparisonRow("cosine", ec.cosine(1000, 0.1), excess=0.0), DIVERGED).columns()
    assert "loss" not in columns
    assert columns["excess"] == ["-50.0\u00a0%", "reference", "diverged"]


def test_steps_are_shown_only_if_they_differ():
    shown = table(REFERENCE, ComparisonRow("long", ec.cosine(20_000, 0.1), loss=1.0))
    assert shown.columns()["steps"] == ["20,000", "1,000"]
    assert shown.total_steps == 20_000
    assert "steps" not in table(REFERENCE, FULL).columns()


@pytest.mark.parametrize(
    ("loss", "text"),
    [(0.0, "0.0000"), (1.5e-9, "1.5000e-09"), (0.289, "0.28900"), (3.21461, "3.2146"), (98765.4, "98765")],
)
def test_losses_have_five_digits(loss, text):
    assert table(ComparisonRow("a", ec.linear(10, 0.1), loss=loss)).columns()["loss"] == [text]


@pytest.mark.parametrize(
    ("value", "text"), [(0.0999, "+9.99"), (0.09996, "+10.0"), (-0.9996, "-100"), (12.0, "+1200"), (4e-5, "0")]
)
def test_percent_has_three_digits(value, text):
    assert percent(value) == text + "\u00a0%"


def test_as_plain_values():
    plain = table(FULL, REFERENCE, DIVERGED, lower_bound=2.0, max_lr=0.5).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert (plain["reference"], plain["lower_bound"], plain["max_lr"]) == ("cosine", 2.0, 0.5)
    best, full, diverged = plain["rows"]
    assert (full["name"], full["label"], full["gap"], full["beyond"]) == ("wsd_20", "WSD, 20 %", 0.25, [NOTE])
    assert "gap" not in best
    assert (diverged["diverged"], "loss" in diverged) == (True, False)
    assert "lower_bound" not in table(REFERENCE).to_dict()


def test_words_are_aligned_to_the_left_and_numbers_to_the_right():
    lines = aligned({"schedule": ["a", "bcdefghij"], "loss": ["1", "10"], "settings": ["-", "power=2"]})
    assert lines == ["schedule   loss  settings", "a             1  -", "bcdefghij    10  power=2"]
