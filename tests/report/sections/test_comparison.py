import pytest
from tests.report.measured import measured_subject, tables_of, text_of

from eigencurve.planning.comparison import NUMERICALLY_BEST, compare_schedules

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.report.sections.comparison import comparison_section


def test_losses_and_the_certificate_are_those_of_the_comparison():
    subject = measured_subject()
    compared = compare_schedules(subject, 300, noise=10.0, best=True)
    section = comparison_section(subject, compared, 10.0, lr=0.5)
    _, *rows, last = tables_of(section)["Expected loss per parameter after 300 steps"]
    assert [row[:3] for row in rows] == [[r.name, f"{r.peak:.4g}", f"{r.loss:.5g}"] for r in compared.rows]
    assert rows[0][0] == NUMERICALLY_BEST
    assert last[:3] == ["certificate", f"{compared.max_lr:.4g}", f"{compared.lower_bound:.5g}"]


def test_a_rate_beyond_the_limit_is_explained():
    subject = measured_subject()
    compared = compare_schedules(subject, 30)
    limit = 2 / subject.spectrum.L
    assert "higher than 2/L" in text_of(comparison_section(subject, compared, 1.0, lr=1.1 * limit))
    assert "higher than 2/L" not in text_of(comparison_section(subject, compared, 1.0, lr=limit))


def test_a_diverged_schedule_has_no_numbers():
    subject = measured_subject()
    compared = compare_schedules(subject, 3000, lr=2.0)
    rows = tables_of(comparison_section(subject, compared, 1.0, lr=0.1))[
        "Expected loss per parameter after 3,000 steps"
    ]
    assert ["constant", "2", "diverged", "", "", ""] in rows
