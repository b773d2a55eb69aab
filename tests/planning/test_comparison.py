import json

import pytest

import eigencurve as ec
from eigencurve.planning.comparison import NUMERICALLY_BEST, compare_schedules, comparison_fields, settings_text
from eigencurve.planning.inputs import ASSUMED_NOISE, inputs_of
from eigencurve.planning.subject import law_subject

LAW = law_subject(1.5, 1e3)
GIVEN = inputs_of(LAW, 5.0, 2.0)
Q = ec.NoisyQuadratic(LAW.spectrum, 5.0, 2.0)


def test_each_schedule_is_tuned_unless_a_rate_is_given():
    own = {"mine": ec.linear(40, 0.123)}
    tuned = compare_schedules(LAW, 40, GIVEN, own=own)
    fixed = compare_schedules(LAW, 40, GIVEN, lr=0.1, own=own)
    assert fixed["mine"].peak_lr == 0.123
    assert fixed["cosine"].loss == pytest.approx(Q.expected_loss(ec.cosine(40, 0.1)))
    assert tuned["cosine"].loss == pytest.approx(Q.compare({"c": ec.cosine(40, 0.1)}, tune_lr=True)["c"].loss, rel=1e-6)
    assert all(tuned[row.name].loss <= row.loss * (1 + 1e-6) for row in fixed.rows if row.name != "mine")
    with pytest.raises(ValueError, match="compare: 'lr' must be > 0"):
        compare_schedules(LAW, 40, lr=0.0)


def test_the_numerically_best_schedule_comes_first():
    compared = compare_schedules(LAW, 40, GIVEN, best=True)
    assert compared.rows[0].name == NUMERICALLY_BEST
    assert compared.rows[0].gap >= 0


@pytest.mark.parametrize(("nesterov", "limit"), [(False, 3.0), (True, 1.5)])
def test_with_momentum_there_is_no_bound_and_another_limit(nesterov, limit):
    compared = compare_schedules(LAW, 40, momentum=0.5, nesterov=nesterov, best=True)
    assert compared.lower_bound is None
    assert compared.max_lr == pytest.approx(limit / LAW.spectrum.L)
    assert compared.rows[0].name == NUMERICALLY_BEST
    assert compared.rows[0].gap is None


def test_the_fields_are_plain_values():
    compared = compare_schedules(LAW, 40, lr=10.0, max_lr=10.0)
    fields = comparison_fields(compared, GIVEN)
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    assert [row["name"] for row in fields["rows"]] == [row.name for row in compared.rows]
    assert fields["rows"][-1]["status"] == "diverged"
    assert fields["noise"] == {"source": "given", "sigma2": 5.0}


def test_without_inputs_the_defaults_are_used():
    default = compare_schedules(LAW, 40, lr=0.01)
    assert (
        default["cosine"].loss == compare_schedules(LAW, 40, inputs_of(LAW, ASSUMED_NOISE, 1.0), lr=0.01)["cosine"].loss
    )


def test_the_settings_of_every_row_are_shown():
    compared = compare_schedules(LAW, 40, lr=0.1, own={"mine": ec.wsd(40, 0.1, decay=0.5, tail="1-sqrt")})
    head, *lines = settings_text(compared).splitlines()
    assert head.startswith("settings")
    assert all(line.startswith(f"{row.name} ") for line, row in zip(lines, compared.rows, strict=True))
    shown = dict(zip((row.name for row in compared.rows), lines, strict=True))
    assert shown["exponential"].endswith(" min_lr=0.0001")
    assert shown["step decay"].endswith(" num_intervals=5, factor=2")
    assert shown["mine"].endswith("20 steps of constant, 20 of one_minus_power (min_lr=0, power=0.5)")
    fields = comparison_fields(compared, inputs_of(LAW, ASSUMED_NOISE, 1.0))
    assert all(row["settings"] in shown[row["name"]] for row in fields["rows"])
