import eigencurve as ec
from paper.prediction.scales import KINDS, SCALES, Plan, pairs_of


def test_every_scale_plans_every_problem():
    for scale in SCALES.values():
        assert list(scale.plans) == ["ridge", "logistic", "last-layer", "network"]
        assert all(plan.shown_rate in plan.rates for plan in scale.plans.values())


def test_pairs_are_every_schedule_at_every_rate():
    spectrum = ec.Spectrum([1.0, 2.0, 8.0], [2, 1, 1])
    pairs = pairs_of(Plan(50, (0.2, 0.1), 0.1, 1, 1), spectrum)
    assert [(pair.kind, pair.rate) for pair in pairs] == [(kind, rate) for rate in (0.2, 0.1) for kind in KINDS]
    assert all(pair.schedule(0) == pair.rate and pair.schedule.total_steps == 50 for pair in pairs)
    assert pairs[4].schedule == ec.eigencurve(spectrum, 50, 0.2)
    assert pairs[3].schedule == ec.wsd(50, 0.2, decay_steps=10)
