import pytest
import torch
from tests.hessian.matrices import MatrixOperator, hessian_like, start

from eigencurve.experiments.engine.request import Request
from eigencurve.experiments.studies import resnet20_spectrum
from eigencurve.experiments.studies.resnet20_spectrum import (
    octaves_of,
    resnet20_operator,
    rows_of,
    settled_at,
    table_of,
)
from eigencurve.hessian.lanczos import lanczos


def test_rows_end_at_the_settled_curve():
    operator = MatrixOperator(hessian_like(2000, 20), torch.float32)
    run = lanczos(operator, start(2000, torch.float32), 160)
    rows, spectrum = rows_of(run.alphas, run.betas, 2000)
    assert [row.num_products for row in rows] == [100, 150, 160]
    assert rows[-1].sharpened_error == 0
    assert rows[0].top == pytest.approx(300, rel=1e-4)
    assert len(table_of(rows).splitlines()) == 5
    assert "ends after" in settled_at(run.alphas, run.betas, 2000, settle=0.5)
    assert len(octaves_of(spectrum, None).splitlines()) > 10


def test_missing_weights_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"checkpoints/resnet20_cifar10\.npz is missing"):
        resnet20_operator(tmp_path)


def test_the_page_has_the_spectrum_next_to_it(tmp_path, monkeypatch):
    operator = MatrixOperator(hessian_like(2000, 20), torch.float32)
    monkeypatch.setattr(resnet20_spectrum, "COUNTS", (100, 120))
    monkeypatch.setattr(resnet20_spectrum, "resnet20_operator", lambda _data: operator)
    monkeypatch.setattr(resnet20_spectrum, "keep_freed_memory", lambda: True)
    page = resnet20_spectrum.make(Request(tmp_path / "s.sqlite", data=tmp_path))
    assert "120 products took" in page.body
    assert "| 120 |" in page.body
    assert list(page.files) == ["resnet20_spectrum.npz"]
    assert not (tmp_path / "s.sqlite").exists()
