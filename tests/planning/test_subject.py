import pytest
from tests.report.measured import SPECTRUM, measured_subject

import eigencurve as ec
from eigencurve.planning.subject import bytes_subject, file_subject, law_subject, zoo_subject
from eigencurve.spectrum.files import spectrum_bytes
from eigencurve.spectrum.zoo import ZOO, zoo_spectrum


def test_a_spectrum_of_the_zoo_has_its_weight_decay_and_is_read_once():
    subject = zoo_subject("resnet20_cifar10")
    assert subject.weight_decay == ZOO["resnet20_cifar10"].weight_decay
    assert subject.raw == zoo_spectrum("resnet20_cifar10")
    assert zoo_subject("resnet20_cifar10", 1e-3).raw is subject.raw
    assert zoo_subject("resnet20_cifar10", 1e-3).spectrum == ec.spectrum.prepare(subject.raw, 1e-3)
    with pytest.raises(ValueError, match="zoo_spectrum: 'name' must be one of"):
        zoo_subject("resnet21")


def test_a_file_needs_a_weight_decay_only_if_it_has_none_and_is_not_positive(tmp_path):
    known = measured_subject().measurement
    assert bytes_subject(spectrum_bytes(SPECTRUM, ".json", known), ".json", "a").weight_decay == known.weight_decay
    assert bytes_subject(b"1 1\n2 1\n", ".txt", "a").weight_decay == 0.0
    assert bytes_subject(b"-1 1\n2 1\n", ".txt", "a", 0.1).weight_decay == 0.1
    with pytest.raises(ValueError, match="'weight_decay' must be given for this spectrum"):
        bytes_subject(b"-1 1\n2 1\n", ".txt", "a")
    with pytest.raises(ValueError, match="'weight_decay' must be >= 0"):
        bytes_subject(b"1 1\n2 1\n", ".txt", "a", -0.1)
    path = tmp_path / "late.npz"
    ec.save_spectrum(SPECTRUM, path, known)
    subject = file_subject(path)
    assert (subject.name, subject.raw, subject.weight_decay) == ("late", SPECTRUM, known.weight_decay)
    with pytest.raises(ValueError, match="'path' must be a file name ending in"):
        file_subject(tmp_path / "late.pkl")


@pytest.mark.parametrize("name", ["hedgehog 🦔.npz", 'double " quote.npz', "not UTF-8 \udcff.npz"])
def test_the_code_of_a_file_opens_it_whatever_its_name(name, tmp_path):
    ec.save_spectrum(SPECTRUM, tmp_path / name)
    code = file_subject(tmp_path / name, 0.1).code
    code.encode()  # can be printed
    assert eval(code, {"ec": ec}) == SPECTRUM


def test_a_power_law_begins_at_the_weight_decay():
    law = law_subject(1.5, 1e3, 1e-2)
    assert law.raw == law.prepared == ec.PowerLaw(1.5, 1e-2, 10.0)
    assert law.spectrum == law.raw.spectrum()
    assert law.fraction_negative == 0.0
    assert eval(law.code, {"ec": ec}) == law.raw
    with pytest.raises(ValueError, match="power law: 'weight_decay' must be > 0"):
        law_subject(1.5, 1e3, 0.0)


def test_error_bars_are_for_one_weight_decay():
    assert (
        measured_subject().octaves is measured_subject().measurement.octaves or measured_subject().octaves is not None
    )
    assert measured_subject(decay=1e-3).octaves is None
    assert measured_subject().fraction_negative == pytest.approx(4 / 31)
