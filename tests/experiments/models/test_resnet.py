import numpy as np
import pytest
import torch
from tests.hessian.matrices import MatrixOperator, hessian_like, start

from eigencurve.experiments.models.resnet import load_npz, resnet20
from eigencurve.experiments.studies.resnet20_spectrum import cifar_batch, octaves_of, rows_of, settled_at, table_of
from eigencurve.hessian.lanczos import lanczos


def test_the_real_checkpoint_knows_its_images(data_path):
    model = resnet20()
    load_npz(model, data_path("checkpoints/resnet20_cifar10.npz"))
    x, y = cifar_batch(data_path("cifar10_lossless_subset.npz"))
    with torch.no_grad():
        accuracy = (model.eval()(x).argmax(1) == y).double().mean().item()
    assert accuracy > 0.95  # training images of a network with 92 % test accuracy


def test_checkpoints_with_missing_names_are_refused(tmp_path):
    np.savez(tmp_path / "short.npz", **{"fc.bias": np.zeros(10, dtype=np.float32)})
    with pytest.raises(RuntimeError, match="Missing key"):
        load_npz(resnet20(), tmp_path / "short.npz")


def test_rows_end_at_the_settled_curve():
    operator = MatrixOperator(hessian_like(2000, 20), torch.float32)
    run = lanczos(operator, start(2000, torch.float32), 160)
    rows, spectrum = rows_of(run.alphas, run.betas)
    assert [row.num_products for row in rows] == [100, 150, 160]
    assert rows[-1].sharpened_error == 0
    assert rows[0].top == pytest.approx(300, rel=1e-4)
    assert len(table_of(rows)) == 5
    assert "ends after" in settled_at(run.alphas, run.betas, settle=0.5)
    assert len(octaves_of(spectrum, None)) > 10
