from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spectrum.test_measurement import record

import eigencurve as ec
from eigencurve.hessian import estimate_spectrum
from eigencurve.planning.from_spectrum import SEARCHED, SIMPLEST, WSD, plan_from_subject
from eigencurve.planning.inputs import inputs_of
from eigencurve.planning.limits import ROUNDING, rate_limit
from eigencurve.planning.subject import Subject, law_subject

T = 2000


@pytest.fixture(scope="module")
def subject():
    return law_subject(alpha=1.2, kappa=1000)


@pytest.fixture(scope="module")
def plan(subject):
    return plan_from_subject(subject, T, "sgd", inputs_of(subject, noise=50.0, initial_error=1.0))


def test_the_table_has_the_usual_schedules_at_their_own_rates(plan):
    assert {row.name for row in plan.table} == set(SIMPLEST)
    assert plan.table[0].name == SEARCHED
    assert plan[plan.name].behind == 0
    assert len({row.schedule.values().max() for row in plan.table}) > 2


def test_the_comparison_is_that_of_the_exact_recursion(subject, plan):
    exact = ec.NoisyQuadratic(subject.spectrum, 50.0, 1.0)
    losses = {row.name: exact.expected_loss(row.schedule) for row in plan.table}
    for row in plan.table:
        assert losses[row.name] / losses[plan.name] - 1 == pytest.approx(row.behind, abs=3e-3)


def test_the_gap_is_that_to_the_certificate(subject, plan):
    exact = ec.NoisyQuadratic(subject.spectrum, 50.0, 1.0)
    bound = exact.lower_bound(T, 2 / subject.spectrum.L)
    assert plan.gap == pytest.approx(exact.expected_loss(plan.schedule) / bound - 1, rel=1e-2)


def test_rates_in_the_range_are_nearly_as_good(subject, plan):
    exact = ec.NoisyQuadratic(subject.spectrum, 50.0, 1.0)
    best = exact.expected_loss(plan.schedule)
    for rate in (plan.rates.low, plan.rates.high):
        scaled = ec.piecewise(T, np.arange(T, dtype=float), plan.schedule.values() * rate / plan.rates.best)
        assert exact.expected_loss(scaled) <= 1.06 * best
    assert plan.rates.high <= 2 / subject.spectrum.L * (1 + 1e-9)
    assert "2/L" in plan.rates.limit


def test_assumed_noise_widens_the_intervals_and_says_what_it_changes(subject, plan):
    assumed = plan_from_subject(subject, T, "sgd", inputs_of(subject))
    known = {entry.name: entry for entry in assumed.inputs}
    assert known["gradient noise"].source == known["start"].source == "assumed"
    assert "ten times" in known["gradient noise"].effect
    assert any("estimate --noise" in note for note in assumed.notes)
    given = {entry.name: entry for entry in plan.inputs}
    assert given["gradient noise"].source == "given"
    assert not given["gradient noise"].effect
    widths = [max(row.behind_high - row.behind_low for row in p.table) for p in (assumed, plan)]
    assert widths[0] > widths[1]


@pytest.mark.parametrize(("noise", "is_wsd"), [(1.0, False), (100.0, True)])
def test_wsd_is_named_as_an_alternative_unless_it_is_the_recommendation(noise, is_wsd):
    subject = law_subject(alpha=1.5, kappa=1e5)
    plan = plan_from_subject(subject, 1000, "sgd", inputs_of(subject, noise, 1.0))
    assert (plan.name == WSD) == is_wsd
    assert any("accurate with WSD" in note for note in plan.notes) != is_wsd


def test_without_noise_the_rate_is_held(subject):
    plan = plan_from_subject(subject, T, "sgd", inputs_of(subject, noise=0.0, initial_error=1.0))
    assert plan.schedule(T // 2) == pytest.approx(plan.schedule(0), rel=0.05)


def test_a_run_shorter_than_the_condition_number_is_told_so():
    subject = law_subject(alpha=1.2, kappa=1e5)
    plan = plan_from_subject(subject, 500, "sgd", inputs_of(subject))
    assert plan.verdict.startswith("Your run is 200 times shorter than the condition number")


def test_a_rate_above_the_limit_is_pointed_out(subject):
    limit = 2 / subject.spectrum.L
    plan = plan_from_subject(subject, T, "sgd", inputs_of(subject, 50.0, 1.0), lr=10 * limit)
    assert plan.schedule.values().max() == pytest.approx(10 * limit)
    assert "is above the range" in plan.verdict
    assert f"is 10 times the stability limit 2/L = {limit:.3g}" in plan.verdict
    assert "networks often tolerate that" in plan.verdict


def test_momentum_raises_the_limit_and_has_no_certificate(subject):
    plan = plan_from_subject(subject, 300, "sgd", inputs_of(subject, 50.0, 1.0), momentum=0.9)
    assert plan.gap is None
    assert plan.momentum == 0.9
    assert f"2(1+m)/L = {3.8 / subject.spectrum.L:.3g}" in plan.rates.limit


def test_adam_is_heavy_ball_at_a_tenth_of_the_rate(subject):
    sgd = plan_from_subject(subject, 300, "sgd", inputs_of(subject, 50.0, 1.0), momentum=0.9)
    adam = plan_from_subject(subject, 300, "adamw", inputs_of(subject, 50.0, 1.0), momentum=0.9)
    assert adam.rates.best == pytest.approx(10 * sgd.rates.best)
    assert np.allclose(adam.schedule.values(), 10 * sgd.schedule.values())
    assert (adam.momentum, sgd.momentum) == (0.9, 0.9)


def test_a_warmup_comes_first(subject):
    plan = plan_from_subject(subject, T, "sgd", inputs_of(subject, 50.0, 1.0), warmup_steps=100)
    assert plan.schedule.total_steps == T
    assert plan.schedule(99) < plan.schedule(100)


def test_a_spectrum_that_has_not_settled_is_noted():
    matrix = np.diag(np.geomspace(1e-3, 1, 200))
    estimate = estimate_spectrum(matrix, 5, weight_decay=1e-3, progress=False)
    record = replace(estimate.measurement(), reason="num_steps", schedule_change=0.41)
    unsettled = Subject("mine", estimate.spectrum, 1e-3, record)
    notes = plan_from_subject(unsettled, 100, "sgd", inputs_of(unsettled)).notes
    assert any("still moved by 41 %" in note for note in notes)


def test_an_optimizer_and_a_momentum_that_nobody_gave_are_assumed(subject):
    def sources(optimizer, momentum):
        plan = plan_from_subject(subject, 300, optimizer, inputs_of(subject, 50.0, 1.0), momentum)
        return {known.name: known.source for known in plan.inputs}

    silent, told = sources(None, None), sources("sgd", 0.0)
    assert silent["optimizer"] == silent["momentum"] == "assumed"
    assert told["optimizer"] == told["momentum"] == "given"


@settings(max_examples=25)
@given(
    logs=st.lists(st.floats(-7, 4), min_size=1, max_size=8, unique=True),
    momentum=st.sampled_from([0.0, 0.3, 0.9, 0.99]),
    law=st.sampled_from(["heavy ball", "Nesterov", "Adam"]),
    noise=st.none() | st.floats(1e-3, 1e4),
    total_steps=st.sampled_from([2, 7, 60, 300]),
    allowed=st.none() | st.floats(0.01, 20.0),
)
def test_a_recommended_rate_is_stable_unless_higher_ones_are_allowed(logs, momentum, law, noise, total_steps, allowed):
    """``allowed``: the highest rate, as a multiple of the largest stable one."""
    spectrum = ec.Spectrum(np.exp(logs), np.arange(1.0, len(logs) + 1), dim=100)
    known = record(preconditioner="AdamW") if law == "Adam" else None
    found = Subject("random", spectrum, 1e-4, known)
    nesterov = law == "Nesterov" and momentum > 0
    limit = rate_limit(found, None, momentum, nesterov).rate
    max_lr = None if allowed is None else allowed * limit
    plan = plan_from_subject(
        found, total_steps, None, inputs_of(found, noise), momentum, nesterov, max_lr=max_lr, warmup_steps=1
    )
    highest = max(plan.rates.best, plan.rates.high, plan.schedule.values().max(), max(_peaks(plan)))
    assert highest <= max(limit, max_lr or 0.0) * (1 + 1e-9)
    said = f"you allow rates up to {max_lr or 0.0:.3g}" in plan.verdict
    assert said == (plan.rates.best > limit * (1 + ROUNDING))


def _peaks(plan):
    return [row.schedule.values().max() for row in plan.table]


def test_a_rate_above_the_limit_is_recommended_only_with_the_highest_rate_in_the_sentence(subject):
    limit = 2 / subject.spectrum.L
    plan = plan_from_subject(subject, 60, "sgd", inputs_of(subject, 1e-3, 1.0), max_lr=1.05 * limit)
    assert plan.rates.best > limit
    assert (
        f"the largest stable rate is 2/L = {limit:.3g}, and you allow rates up to {1.05 * limit:.3g}." in plan.verdict
    )


@pytest.mark.parametrize("name", ["lr", "max_lr"])
def test_a_rate_that_cannot_be_meant_is_refused(subject, name):
    with pytest.raises(ValueError, match=rf"'{name}' must be <= 1,000 times the stability limit 2/L = .*range test"):
        plan_from_subject(subject, 60, "sgd", inputs_of(subject), **{name: 1e9})


def test_the_settings_of_the_run_are_in_the_inputs_with_their_sources(subject):
    silent = plan_from_subject(subject, 60, None, inputs_of(subject))
    found = {known.name: known for known in silent.inputs}
    assert found["momentum"].source == "assumed"
    assert found["momentum"].effect == "pass --momentum if your optimizer has some"
    assert found["weight decay"].source == "assumed"
    given = plan_from_subject(law_subject(1.2, 1000, 0.01), 60, "sgd", inputs_of(subject), 0.9, nesterov=True)
    values = {known.name: (known.value, known.source) for known in given.inputs}
    assert values["momentum"] == ("0.9, Nesterov", "given")
    assert values["weight decay"] == ("0.01", "given")
