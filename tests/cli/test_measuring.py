import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
import torch

from eigencurve.cli.measuring import _beside, measure, size_of
from eigencurve.hessian import HessianOperator, estimate_noise, estimate_spectrum
from eigencurve.hessian.checkpoint import saved_steps
from eigencurve.hessian.settings import EstimateSettings


@pytest.fixture
def operator():
    source = torch.Generator().manual_seed(0)
    x, y = torch.randn(30, 4, generator=source), torch.randn(30, 1, generator=source)
    return HessianOperator(torch.nn.Linear(4, 1), torch.nn.MSELoss(), (x, y))


def test_it_measures_what_the_functions_measure(operator):
    found = measure(operator, EstimateSettings(10, total_steps=500), batch_size=8)
    expected = estimate_spectrum(operator, 10, total_steps=500, progress=False)
    assert found.spectrum.spectrum == expected.spectrum
    assert found.noise.sigma2 == pytest.approx(estimate_noise(operator, expected, 8).sigma2)
    assert found.start is None
    assert measure(operator, EstimateSettings(10, total_steps=500)).noise is None


def test_it_says_where_it_resumes(operator, tmp_path, capsys):
    path = tmp_path / "run.npz"
    assert saved_steps(path) == 0
    measure(operator, EstimateSettings(3, total_steps=500, checkpoint=path))
    assert saved_steps(path) == 3
    assert "resuming" not in capsys.readouterr().err
    found = measure(operator, EstimateSettings(5, total_steps=500, checkpoint=path))
    assert f"resuming from step 3 of {path}" in capsys.readouterr().err
    np.testing.assert_allclose(found.spectrum.spectrum.L, estimate_spectrum(operator, 5, progress=False).spectrum.L)


def test_a_damaged_checkpoint_has_no_steps(tmp_path):
    (tmp_path / "run.npz").write_bytes(b"PK nothing")
    assert saved_steps(tmp_path / "run.npz") == 0


@pytest.mark.parametrize(("text", "size"), [("2GB", 2 * 10**9), ("500 MB", 5 * 10**8), ("1.5GiB", 1610612736)])
def test_sizes(text, size):
    assert size_of(text) == size
    with pytest.raises(ValueError, match="--memory-budget must be a size"):
        size_of("2XB")


def test_the_checkpoints_of_noise_and_start_have_legal_names(tmp_path):
    assert _beside(tmp_path / "run.npz", "noise").name == "run.npz.noise"
    found = {_beside(tmp_path / (name * 255), what) for name in "ab" for what in ("noise", "start")}
    assert len(found) == 4
    assert all(len(path.name) <= 255 for path in found)
