import numpy as np
import pytest
import torch
from benchmarks.resnet20_spectrum import (
    noise_table,
    octave_table,
    overview_table,
    probe_table,
    resnet20_examples,
    resnet20_operator,
    rows_of,
    settled_rows,
)
from tests.hessian.matrices import MatrixOperator, hessian_like
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from benchmarks import resnet20_spectrum
from eigencurve.hessian import HessianOperator, Settling, estimate_noise, estimate_spectrum, log_curve
from eigencurve.spectrum.files import load_measurement, load_noise
from paper.engine.request import Request


@pytest.fixture(scope="module")
def estimate():
    operator = MatrixOperator(hessian_like(2000, 20), torch.float32)
    return estimate_spectrum(operator, 120, num_probes=3, settle=None, progress=False)


def test_rows_hold_the_errors_of_every_probe(estimate, monkeypatch):
    monkeypatch.setattr(resnet20_spectrum, "COUNTS", (60, 100, 250))
    rows = rows_of(estimate)
    assert [(row.num_products, row.probe) for row in rows] == [(k, i) for k in (60, 100, 120) for i in range(3)]
    last = rows[-3:]
    assert all(row.along == 0 for row in last)
    assert max(row.actual for row in last) == estimate.distance_between_probes
    assert all(row.actual < row.weighted for row in last)
    assert all(0 < row.predicted < 4 * estimate.distance_between_probes for row in last)
    assert last[0].reference < estimate.distance_between_probes < last[0].raw


def test_tables_have_a_line_for_each_row(estimate):
    rows = rows_of(estimate)
    counts = len({row.num_products for row in rows})
    assert len(overview_table(rows).splitlines()) == 2 + counts
    assert len(probe_table(rows).splitlines()) == 2 + len(rows)
    assert len(octave_table(estimate.octaves, None).splitlines()) == 2 + len(estimate.octaves.index)
    published = ec.Spectrum([0.0, 1e3], [1, 1])
    assert octave_table(estimate.octaves, published).splitlines()[-1] == "| 20 | - | - | 5.000e-01 |"


def test_settled_rows_say_where_each_probe_stops(estimate):
    early, never = settled_rows(estimate, settle=0.5), settled_rows(estimate, settle=1e-9)
    assert [row[0] for row in early] == ["0", "1", "2"]
    assert all(int(row[1]) < 120 for row in early)
    assert all(row[1] == "120" and row[3] == "0.000" for row in never)
    k, settling = int(early[1][1]), Settling(5e-4, 39_100, torch.float32, 2000)
    curves = [settling.curve(estimate.alphas[1][:j], estimate.betas[1][:j]) for j in (k, 120)]
    distances = [np.abs(curves[0] - other).max() for other in (curves[1], log_curve(estimate.spectrum, 5e-4, 39_100))]
    assert [early[1][3], early[1][5]] == [f"{distance:.3f}" for distance in distances]


def test_missing_weights_are_named(tmp_path):
    for make in (resnet20_operator, resnet20_examples):
        with pytest.raises(FileNotFoundError, match=r"checkpoints/resnet20_cifar10\.npz is missing"):
            make(tmp_path)


def test_the_page_has_the_spectrum_and_its_noise_next_to_it(tmp_path, monkeypatch):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 3))
    batch = torch.randn(200, 20), torch.randint(0, 3, (200,))
    few, many = (HessianOperator(model, F.cross_entropy, tuple(part[:n] for part in batch)) for n in (40, 200))
    monkeypatch.setattr(resnet20_spectrum, "COUNTS", (40, 60))
    monkeypatch.setattr(resnet20_spectrum, "NUM_STEPS", 20)
    monkeypatch.setattr(resnet20_spectrum, "resnet20_operator", lambda _data: few)
    monkeypatch.setattr(resnet20_spectrum, "resnet20_examples", lambda _data: many)
    monkeypatch.setattr(resnet20_spectrum, "keep_freed_memory", lambda: True)
    page = resnet20_spectrum.make(Request(tmp_path / "s.sqlite", data=tmp_path))
    assert "3 random probes of 60 products each" in page.body
    assert "200 images and 4 sign vectors give σ² = " in page.body
    assert list(page.files) == ["resnet20_spectrum.npz"]
    path = tmp_path / "spectrum.npz"
    path.write_bytes(page.files["resnet20_spectrum.npz"])
    record, noise = load_measurement(path), load_noise(path)
    assert record.made_by == "python -m benchmarks.resnet20_spectrum, seed 0"
    assert record.num_probes == 3
    assert record.distance_between_probes > 0
    assert (noise.batch_size, noise.num_examples, noise.num_samples) == (128, 200, 4)
    with pytest.warns(UserWarning, match="has not settled"):
        spectrum = ec.load_spectrum(path)
    wanted = estimate_noise(few, spectrum, 128, examples=many, num_samples=4, num_products=20, progress=False)
    assert noise.trace == pytest.approx(wanted.trace)
    assert (record.seconds, noise.seconds) == (0, 0)
    assert "products, 4 sign vectors" in str(noise)
    same = wanted.with_batch_size(64)
    head, _, first, *others = noise_table(noise, same).splitlines()
    assert head == "| octave i | eigenvalues | σ², 200 images | σ², 200 images |"
    assert f"| {noise.octaves.sigma2[0]:.2e} ± " in first
    assert f"| {same.octaves.sigma2[0]:.2e} ± " in first
    assert len(others) == len(noise.octaves.index) - 1
    assert not (tmp_path / "s.sqlite").exists()
