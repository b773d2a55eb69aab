import dataclasses
import math

import pytest

import eigencurve as ec
from eigencurve.spectrum import zoo
from eigencurve.spectrum.zoo import ZOO, zoo_file, zoo_spectrum, zoo_summary


@pytest.mark.parametrize("name", ZOO)
def test_every_entry_makes_a_schedule(name):
    spectrum = zoo_spectrum(name)
    prepared = ec.spectrum.prepare(spectrum, ZOO[name].weight_decay)
    assert spectrum.dim is not None
    assert 1 < ec.extra_term(prepared) < len(ec.spectrum.group(prepared))
    values = ec.eigencurve(prepared, 1000, 0.1).values()
    assert values[0] == 0.1
    assert (values[1:] <= values[:-1]).all()


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="'name' must be one of 'resnet20_cifar10'"):
        zoo_spectrum("vgg")
    with pytest.raises(ValueError, match=r"got 'resnet_20'\. Did you mean 'resnet20_cifar10'\?"):
        zoo_summary("resnet_20")


def test_the_summary_of_a_file_with_a_record_comes_from_it():
    file, summary = zoo_file("resnet20_cifar10"), zoo_summary("resnet20_cifar10")
    record, noise = file.measurement, file.noise
    assert (summary.num_products, summary.num_counted) == (record.num_products, len(record.counted))
    assert (summary.error_along_probe, summary.error_between_probes) == (
        record.schedule_change,
        record.error_between_probes,
    )
    assert (summary.sigma2, summary.batch_size, summary.gamma) == (noise.sigma2, noise.batch_size, noise.exponent)
    assert summary.dim == file.spectrum.dim == 272_474


def test_what_a_file_does_not_know_comes_from_the_entry_or_is_none(monkeypatch):
    file = zoo_file("resnet20_cifar10")
    bare = dataclasses.replace(file, measurement=None, noise=None)
    monkeypatch.setattr(zoo, "zoo_file", lambda _name: bare)
    summary = zoo_summary("resnet18_cifar10")
    assert (summary.num_products, summary.error_along_probe) == (60, 0.087)
    assert {summary.num_counted, summary.error_between_probes, summary.sigma2, summary.batch_size, summary.gamma} == {
        None
    }
    unknown = dataclasses.replace(file.measurement, schedule_change=math.inf, error_between_probes=math.nan)
    noise = dataclasses.replace(file.noise, exponent=math.nan)
    monkeypatch.setattr(zoo, "zoo_file", lambda _name: dataclasses.replace(file, measurement=unknown, noise=noise))
    summary = zoo_summary("resnet18_cifar10")
    assert (summary.error_along_probe, summary.error_between_probes, summary.gamma) == (None, None, None)
    assert summary.num_products == file.measurement.num_products


def test_the_shipped_resnet20_is_counted_and_its_probes_agree():
    """The schedules of two probes that are weighted without counting differ by a factor of 1.7 to 4."""
    record = zoo_file("resnet20_cifar10").measurement
    assert record.num_probes == 3
    assert len(record.counted) > 50
    assert record.error_between_probes < 0.05
    assert record.distance_between_probes < 0.1


def test_the_measured_resnet20_is_near_the_published_one(data_path):
    published = ec.spectrum.prepare(ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt")), 5e-4)
    ours = ec.spectrum.prepare(zoo_spectrum("resnet20_cifar10"), 5e-4)
    assert ours.kappa / published.kappa == pytest.approx(1, abs=1)  # measured on other images: close, not equal
    assert ec.extra_term(ours) == pytest.approx(ec.extra_term(published), rel=0.15)
