import dataclasses

import pytest
from tests.report.measured import measured_subject, tables_of, text_of
from tests.spectrum.test_noise import noise
from tests.spectrum.test_start import START

from eigencurve.planning.comparison import NUMERICALLY_BEST, compare_schedules
from eigencurve.planning.inputs import inputs_of
from eigencurve.planning.limits import rate_limit

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.report.sections.comparison import comparison_section


def test_losses_and_the_certificate_are_those_of_the_comparison():
    subject = measured_subject()
    inputs = inputs_of(subject, 10.0)
    compared = compare_schedules(subject, 300, inputs, best=True)
    section = comparison_section(compared, inputs, rate_limit(subject), lr=0.5)
    _, *rows, last = tables_of(section)["Expected loss per parameter after 300 steps"]
    assert [row[:3] for row in rows] == [[r.name, f"{r.peak_lr:.4g}", f"{r.loss:.5g}"] for r in compared.rows]
    assert rows[0][0] == NUMERICALLY_BEST
    assert last[:3] == ["certificate", f"{compared.max_lr:.4g}", f"{compared.lower_bound:.5g}"]


def test_a_rate_beyond_the_limit_is_explained():
    subject = measured_subject()
    compared = compare_schedules(subject, 30)
    limit, inputs = rate_limit(subject), inputs_of(subject)
    above = text_of(comparison_section(compared, inputs, limit, lr=1.5 * limit.rate))
    assert f"is 1.5 times the stability limit 2/L = {limit.rate:.3g}" in above
    within = text_of(comparison_section(compared, inputs, limit, lr=limit.rate))
    assert "the stability limit" not in within
    assert str(limit) in above
    assert str(limit) in within


@pytest.mark.parametrize(("nesterov", "kind"), [(False, "heavy-ball momentum 0.9"), (True, "Nesterov momentum 0.9")])
def test_with_momentum_there_is_no_certificate(nesterov, kind):
    subject = measured_subject()
    compared = compare_schedules(subject, 30, momentum=0.9, nesterov=nesterov, best=True)
    limit = rate_limit(subject, "sgd", 0.9, nesterov)
    section = comparison_section(compared, inputs_of(subject), limit, 2 * compared.max_lr, 0.9, nesterov)
    head, *rows = tables_of(section)["Expected loss per parameter after 30 steps"]
    assert head == ["schedule", "peak rate", "expected loss", "bias", "variance"]
    assert rows[0][0] == NUMERICALLY_BEST
    text = text_of(section)
    assert kind in text
    assert "There is no certificate with momentum" in text
    formula = "2(1+m)/((1+2m)L)" if nesterov else "2(1+m)/L"
    assert f"is 2.0 times the stability limit {formula} = {compared.max_lr:.3g}" in text


def test_the_source_of_noise_and_start_is_shown():
    subject = measured_subject()
    for known, expected in (
        (subject, ("Noise: assumed, σ² = 10,000; measure it with eigencurve estimate --noise", "Start: assumed")),
        (dataclasses.replace(subject, noise=noise()), ("Noise: measured, σ² = 0.9 (B = 4, γ = 1.10)", "own σ²")),
        (dataclasses.replace(subject, start=START), ("Start: measured, excess loss 5 (from the gradient)",)),
    ):
        inputs = inputs_of(known)
        section = comparison_section(compare_schedules(known, 30, inputs), inputs, rate_limit(known), 0.1)
        assert all(text in text_of(section) for text in expected)
        assert "`" not in text_of(section)


def test_a_diverged_schedule_has_no_numbers():
    subject = measured_subject()
    compared = compare_schedules(subject, 3000, lr=2.0)
    rows = tables_of(comparison_section(compared, inputs_of(subject), rate_limit(subject), lr=0.1))[
        "Expected loss per parameter after 3,000 steps"
    ]
    assert ["constant", "2", "diverged", "", "", ""] in rows
