import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from eigencurve.cli.measuring import checkpoint_of, size_of


@pytest.mark.parametrize(("text", "size"), [("2GB", 2 * 10**9), ("500 MB", 5 * 10**8), ("1.5GiB", 1610612736)])
def test_sizes(text, size):
    assert size_of(text) == size
    with pytest.raises(ValueError, match="--memory-budget must be a size"):
        size_of("2XB")


def test_the_checkpoints_of_noise_and_start_have_legal_names(tmp_path):
    assert checkpoint_of(tmp_path / "run.npz", "noise").name == "run.npz.noise"
    paths = {checkpoint_of(tmp_path / (name * 255), what) for name in "ab" for what in ("noise", "start")}
    assert len(paths) == 4
    assert all(len(path.name) <= 255 for path in paths)
