import dataclasses

import pytest
from tests.report.measured import SPECTRUM, measured_subject, tables_of, text_of

import eigencurve as ec
from eigencurve.planning.limits import rate_limit
from eigencurve.planning.subject import law_subject, zoo_subject

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.report.sections.spectrum import spectrum_section


def test_the_numbers_are_those_of_the_description():
    text, described = text_of(spectrum_section(measured_subject())), SPECTRUM.describe(1e-2)
    assert f"{described.kappa:.4g}" in text
    assert f"{described.fraction_negative:.2%} of all" in text
    assert f"exponent {described.exponent:.2f}" in text


def test_each_octave_has_a_row_and_its_error():
    head, *rows = tables_of(spectrum_section(measured_subject()))["Octaves that contain eigenvalues"]
    groups = ec.spectrum.group(ec.spectrum.prepare(SPECTRUM, 1e-2))
    assert head[-1] == "standard error"
    assert [row[3:] for row in rows] == [[f"{share:.3e}", f"{share / 10:.1e}"] for share in groups.share]


def test_error_bars_for_another_weight_decay_are_not_shown():
    text = text_of(spectrum_section(measured_subject(decay=1e-3)))
    assert "belong to another weight decay (0.01)" in text
    assert "standard error" not in text


def test_assumed_and_unexplained_spectra_say_so():
    assert "assumed and not measured" in text_of(spectrum_section(law_subject(1.5, 1e3)))
    assert "no error bars" in text_of(spectrum_section(zoo_subject("resnet18_cifar10")))


def test_the_limit_of_stability_is_a_fact():
    subject = measured_subject()
    text = text_of(spectrum_section(subject, rate_limit(subject, "sgd", 0.9)))
    assert f"largest stable rate 2(1+m)/L {3.8 / subject.spectrum.L:.4g}" in text
    assert f"largest stable rate 2/L {2 / subject.spectrum.L:.4g}" in text_of(spectrum_section(subject))


def test_an_unsettled_estimate_has_error_bars_and_a_note():
    subject = measured_subject()
    unsettled = dataclasses.replace(subject.measurement, reason="num_steps", schedule_change=0.41)
    section = spectrum_section(dataclasses.replace(subject, measurement=unsettled))
    assert f'<p class="note">{unsettled.warning}</p>' in section.blocks
    assert "Error bars: one standard error" in text_of(section)
    assert unsettled.warning not in text_of(spectrum_section(subject))
