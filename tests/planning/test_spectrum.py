from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spectrum.test_measurement import record

import eigencurve as ec
from eigencurve.hessian import estimate_spectrum
from eigencurve.planning.spectrum import (
    COMPARED,
    SIMPLEST,
    WSD,
    choose,
    compare_schedules,
    measured_source,
    plan_from_spectrum,
)
from eigencurve.planning.warnings import ROUNDING, rate_limit
from eigencurve.spectrum.source import ASSUMED_NOISE, SpectrumSource, law_source, with_inputs

T = 2000
LAW = law_source(alpha=1.2, kappa=1000)
LIMIT = 2 / LAW.spectrum.L
GIVEN = {"noise": 50.0, "initial_error": 1.0}


@pytest.fixture(scope="module")
def plan():
    return plan_from_spectrum(LAW, T, **GIVEN)


@pytest.fixture(scope="module")
def exact():
    return ec.NoisyQuadratic(LAW.spectrum, 50.0, 1.0)


def sources(plan):
    return {entry.name: entry.source for entry in plan.inputs}


def test_the_table_has_the_usual_schedules_at_their_own_rates(plan):
    assert {row.name for row in plan.table.rows} == set(SIMPLEST)
    assert plan.table.best.name == "optimum"
    assert plan[plan.name].excess == 0
    assert len({row.peak_lr for row in plan.table.rows}) > 2


def test_the_comparison_is_that_of_the_exact_recursion(plan, exact):
    losses = {row.name: exact.expected_loss(row.schedule) for row in plan.table.rows}
    for row in plan.table.rows:
        # The blocks of the search agree with the exact recursion to 0.3 %.
        assert losses[row.name] / losses[plan.name] - 1 == pytest.approx(row.excess, abs=3e-3)


def test_the_gap_is_that_to_the_certificate(plan, exact):
    bound = exact.lower_bound(T, LIMIT)
    assert plan.gap == pytest.approx(exact.expected_loss(plan.schedule) / bound - 1, rel=1e-2)


def test_rates_in_the_range_are_nearly_as_good(plan, exact):
    best = exact.expected_loss(plan.schedule)
    for rate in plan.lr_range:
        scaled = ec.piecewise(T, np.arange(T, dtype=float), plan.schedule.values() * rate / plan.lr)
        assert exact.expected_loss(scaled) <= 1.06 * best
    assert plan.lr_range[1] <= LIMIT * (1 + 1e-9)
    assert "2/L" in plan.lr_limit


@pytest.mark.parametrize(
    ("regrets", "expected"),
    [
        ({"cosine_0": 0.009, "optimum": 0.0}, "cosine_0"),
        ({"cosine_0": 0.05, "wsd_20": 0.03, "eigencurve": 0.025, "optimum": 0.02}, "wsd_20"),
        ({"cosine_0": 0.05, "wsd_20": 0.03, "optimum": 0.0}, "optimum"),
    ],
)
def test_the_rule_prefers_the_simplest_of_nearly_equal_schedules(regrets, expected):
    assert choose(regrets) == expected


def test_assumed_noise_widens_the_intervals_and_says_what_it_changes(plan):
    assumed = plan_from_spectrum(LAW, T)
    entries = {entry.name: entry for entry in assumed.inputs}
    assert entries["gradient noise"].source == entries["start"].source == "assumed"
    assert "ten times" in entries["gradient noise"].effect
    assert any("estimate --noise" in sentence for sentence in assumed.warnings)
    entries = {entry.name: entry for entry in plan.inputs}
    assert (entries["gradient noise"].source, entries["gradient noise"].effect) == ("given", "")
    widths = [max(row.excess_high - row.excess_low for row in p.table.rows) for p in (assumed, plan)]
    assert widths[0] > widths[1]


@pytest.mark.parametrize(("noise", "is_wsd"), [(1.0, False), (100.0, True)])
def test_wsd_is_named_as_an_alternative_unless_it_is_the_recommendation(noise, is_wsd):
    plan = plan_from_spectrum(law_source(alpha=1.5, kappa=1e5), 1000, noise=noise, initial_error=1.0)
    assert (plan.name == WSD) == is_wsd
    assert any("accurate with WSD" in sentence for sentence in plan.warnings) != is_wsd


def test_without_noise_the_rate_is_held():
    plan = plan_from_spectrum(LAW, T, noise=0.0, initial_error=1.0)
    assert plan.schedule(T // 2) == pytest.approx(plan.schedule(0), rel=0.05)


def test_a_run_shorter_than_the_condition_number_is_told_so():
    plan = plan_from_spectrum(law_source(alpha=1.2, kappa=1e5), 500)
    assert plan.verdict.startswith("Your run is 200 times shorter than the condition number")


def test_a_rate_above_the_limit_is_pointed_out():
    plan = plan_from_spectrum(LAW, T, lr=10 * LIMIT, **GIVEN)
    assert plan.lr == plan.schedule.values().max() == pytest.approx(10 * LIMIT)
    assert "is above the range" in plan.verdict
    assert f"is 10 times the stability limit 2/L = {LIMIT:.3g}" in plan.verdict


def test_momentum_raises_the_limit_and_has_no_certificate():
    plan = plan_from_spectrum(LAW, 300, momentum=0.9, **GIVEN)
    assert plan.gap is None
    assert f"2(1+m)/L = {3.8 / LAW.spectrum.L:.3g}" in plan.lr_limit


def test_adam_is_heavy_ball_at_a_tenth_of_the_rate():
    sgd, adam = (plan_from_spectrum(LAW, 300, optimizer=o, momentum=0.9, **GIVEN) for o in ("sgd", "adamw"))
    assert adam.lr == pytest.approx(10 * sgd.lr)
    assert np.allclose(adam.schedule.values(), 10 * sgd.schedule.values())
    assert adam.training.momentum == sgd.training.momentum == 0.9


def test_a_warmup_comes_first():
    plan = plan_from_spectrum(LAW, T, warmup_steps=100, **GIVEN)
    assert plan.schedule.total_steps == T
    assert plan.schedule(99) < plan.schedule(100)


def test_a_spectrum_that_has_not_settled_is_noted():
    estimate = estimate_spectrum(np.diag(np.geomspace(1e-3, 1, 200)), 5, weight_decay=1e-3, progress=False)
    measurement = replace(estimate.measurement(), reason="num_steps", schedule_change=0.41)
    plan = plan_from_spectrum(SpectrumSource("mine", estimate.spectrum, 1e-3, measurement), 100)
    assert any("still moved by 41 %" in sentence for sentence in plan.warnings)


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
    source = SpectrumSource("random", spectrum, 1e-4, record(preconditioner="AdamW") if law == "Adam" else None)
    nesterov = law == "Nesterov" and momentum > 0
    limit = rate_limit(source, None, momentum, nesterov).rate
    max_lr = None if allowed is None else allowed * limit
    plan = plan_from_spectrum(
        source, total_steps, noise=noise, momentum=momentum, nesterov=nesterov, max_lr=max_lr, warmup_steps=1
    )
    highest = max(plan.lr, *plan.lr_range, *(row.peak_lr for row in plan.table.rows))
    assert highest <= max(limit, max_lr or 0.0) * (1 + 1e-9)
    said = f"you allow rates up to {max_lr or 0.0:.3g}" in plan.verdict
    assert said == (plan.lr > limit * (1 + ROUNDING))


@pytest.mark.parametrize("name", ["lr", "max_lr"])
def test_a_rate_that_cannot_be_meant_is_refused(name):
    with pytest.raises(ValueError, match=rf"'{name}' must be <= 1,000 times the stability limit 2/L = .*range test"):
        plan_from_spectrum(LAW, 60, **{name: 1e9})


def test_the_settings_of_the_run_are_in_the_inputs_with_their_sources():
    silent = plan_from_spectrum(LAW, 60)
    assert {sources(silent)[name] for name in ("optimizer", "momentum", "weight decay")} == {"assumed"}
    told = plan_from_spectrum(law_source(1.2, 1000, 0.01), 60, optimizer="sgd", momentum=0.9, nesterov=True)
    values = {entry.name: (entry.value, entry.source) for entry in told.inputs}
    assert values["optimizer"] == ("sgd", "given")
    assert values["momentum"] == ("0.9, Nesterov", "given")
    assert values["weight decay"] == ("0.01", "given")


COMPARED_LAW = with_inputs(law_source(1.5, 1e3), 5.0, 2.0)
Q = ec.NoisyQuadratic(COMPARED_LAW.spectrum, 5.0, 2.0)


def test_each_compared_schedule_is_tuned_unless_a_rate_is_given():
    own = {"mine": ec.linear(40, 0.123)}
    tuned, fixed = (compare_schedules(COMPARED_LAW, 40, lr=lr, own=own) for lr in (None, 0.1))
    assert {row.name for row in fixed.rows} == {*COMPARED, "mine"}
    assert fixed["mine"].peak_lr == 0.123
    assert (fixed["cosine_0"].label, fixed["mine"].label) == ("cosine to 0", "mine")
    assert fixed["cosine_0"].loss == pytest.approx(Q.expected_loss(ec.cosine(40, 0.1)))
    best = Q.compare({"c": ec.cosine(40, 0.1)}, tune_lr=True)["c"].loss
    assert tuned["cosine_0"].loss == pytest.approx(best, rel=1e-6)
    assert all(tuned[row.name].loss <= row.loss * (1 + 1e-6) for row in fixed.rows if row.name != "mine")
    with pytest.raises(ValueError, match="compare: 'lr' must be > 0"):
        compare_schedules(COMPARED_LAW, 40, lr=0.0)


@pytest.mark.parametrize(("momentum", "nesterov", "limit"), [(0.0, False, 2.0), (0.5, False, 3.0), (0.5, True, 1.5)])
def test_the_numerically_best_schedule_comes_first_and_has_a_gap_without_momentum(momentum, nesterov, limit):
    table = compare_schedules(COMPARED_LAW, 40, momentum, nesterov, best=True)
    assert table.max_lr == pytest.approx(limit / COMPARED_LAW.spectrum.L)
    assert table.best.name == "optimum"
    assert (table.lower_bound is None) == (table.best.gap is None) == bool(momentum)


def test_compare_assumes_the_inputs_that_are_not_known():
    plain = law_source(1.5, 1e3)
    assumed, told = (compare_schedules(s, 40, lr=0.01) for s in (plain, with_inputs(plain, ASSUMED_NOISE, 1.0)))
    assert assumed == told


@pytest.fixture(scope="module")
def operator():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from eigencurve.hessian import HessianOperator

    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(60, 5, generator=generator), torch.randn(60, 1, generator=generator)
    torch.manual_seed(0)
    return HessianOperator(torch.nn.Linear(5, 1), torch.nn.MSELoss(), (x, y))


def test_a_plan_from_the_hessian_of_a_model_measures_spectrum_and_noise(operator):
    from eigencurve.hessian import estimate_noise

    plan = ec.plan(operator, total_steps=100, batch_size=8, momentum=0.5)
    estimate = estimate_spectrum(operator, total_steps=100, progress=False)
    noise = estimate_noise(operator, estimate, 8, progress=False)
    assert plan.verdict == ec.plan(estimate, total_steps=100, noise=noise, momentum=0.5).verdict
    assert sources(plan)["gradient noise"] == "measured"
    given = ec.plan(operator, total_steps=100, noise=2.0, initial_error=1.0)
    assert sources(given)["gradient noise"] == "given"


def test_a_model_needs_the_batch_size(operator):
    with pytest.raises(ValueError, match=r"'batch_size' must be given with the Hessian of a model.*or pass 'noise'"):
        ec.plan(operator, total_steps=100)


def test_a_preconditioned_operator_is_planned_for_its_optimizer(operator):
    plain = measured_source(operator, 100, None, 8, measure_noise=True)
    metric = operator.preconditioned_by(np.full(operator.dim, 2.0))
    halved = measured_source(metric, 100, 1e-3, 8, measure_noise=True)
    assert (plain.weight_decay, plain.decay_source) == (5e-4, "assumed")
    assert (halved.weight_decay, halved.decay_source) == (1e-3, "given")
    assert pytest.approx(plain.raw.L / 2, rel=1e-4) == halved.raw.L


def test_a_function_has_no_examples():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from eigencurve.hessian import MatvecOperator

    matrix = np.diag(np.geomspace(0.01, 1, 20))
    source = measured_source(MatvecOperator(lambda v: matrix @ v, 20), 100, None, None, measure_noise=True)
    assert source.noise is None
    assert pytest.approx(1.0, rel=1e-5) == source.raw.L
