import pytest

import eigencurve as ec
from eigencurve.spectrum.zoo import ZOO, zoo_spectrum


@pytest.mark.parametrize("name", ZOO)
def test_every_entry_makes_a_schedule(name):
    spectrum = zoo_spectrum(name)
    prepared = ec.prepare(spectrum, ZOO[name].weight_decay)
    assert spectrum.dim is not None
    assert 1 < ec.extra_term(prepared) < len(ec.group(prepared))
    values = ec.eigencurve(prepared, 1000, 0.1).values()
    assert values[0] == 0.1
    assert (values[1:] <= values[:-1]).all()


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="'name' must be one of 'resnet20_cifar10'"):
        zoo_spectrum("vgg")


def test_the_measured_resnet20_is_near_the_published_one(data_path):
    published = ec.prepare(ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt")), 5e-4)
    ours = ec.prepare(zoo_spectrum("resnet20_cifar10"), 5e-4)
    assert ours.kappa / published.kappa == pytest.approx(1, abs=1)  # measured on other images: close, not equal
    assert ec.extra_term(ours) == pytest.approx(ec.extra_term(published), rel=0.15)
