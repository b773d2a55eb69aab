import contextlib

import pytest
import torch
from torch import nn

from paper.training.checkpoint import TrainingCheckpoint, checkpoint_for, identity_of


def test_files_of_a_finished_run_are_removed_and_those_of_a_failed_run_kept(tmp_path):
    (tmp_path / "other.pt").touch()
    with contextlib.suppress(KeyboardInterrupt), checkpoint_for(tmp_path, "key") as path:
        path.touch()
        path.with_suffix(".npz").touch()
        raise KeyboardInterrupt
    assert {file.name for file in tmp_path.iterdir()} == {"key.pt", "key.npz", "other.pt"}
    with checkpoint_for(tmp_path, "key") as path:
        assert path == tmp_path / "key.pt"
    assert {file.name for file in tmp_path.iterdir()} == {"other.pt"}
    with checkpoint_for(None, "key") as path:
        assert path is None


def test_only_the_same_run_can_continue(tmp_path):
    identity = identity_of([1], nn.Linear(2, 1))
    assert identity == identity_of([1], nn.Linear(2, 1))
    assert len({identity, identity_of([2], nn.Linear(2, 1)), identity_of([1], nn.Linear(3, 1))}) == 3
    TrainingCheckpoint(tmp_path / "a.pt", identity).save({"step": 3})
    assert TrainingCheckpoint(tmp_path / "a.pt", identity).load()["step"] == 3
    with pytest.raises(ValueError, match=r"'checkpoint' must be of this run, .* a\.pt is unchanged"):
        TrainingCheckpoint(tmp_path / "a.pt", "another").load()
    (tmp_path / "b.pt").write_bytes((tmp_path / "a.pt").read_bytes()[:100])
    with pytest.raises(ValueError, match="must be a complete checkpoint of a training run"):
        TrainingCheckpoint(tmp_path / "b.pt", identity).load()


def test_a_flipped_bit_never_changes_a_weight(tmp_path):
    weights = torch.linspace(0, 1, 500)
    file = TrainingCheckpoint(tmp_path / "a.pt", "x")
    file.save({"weights": weights})
    content = file.path.read_bytes()
    for place in range(0, len(content), 37):
        file.path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with contextlib.suppress(ValueError):
            assert torch.equal(file.load()["weights"], weights)


def test_a_damaged_weight_is_named(tmp_path):
    file = TrainingCheckpoint(tmp_path / "a.pt", "x")
    file.save({"weights": torch.full((500,), 1.5)})
    file.path.write_bytes(file.path.read_bytes().replace(torch.full((500,), 1.5).numpy().tobytes()[:8], b"damaged!", 1))
    with pytest.raises(ValueError, match=r"a complete checkpoint of a training run.*data/0.*CRC|data/0 does not match"):
        file.load()
