"""Checkpoints of an estimate: interrupted, killed, damaged or foreign, a run resumes exactly or is refused."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.hessian.matrices import EIGENVALUES, MatrixOperator, matrix_operator
from tests.killed import output_after_a_kill

from eigencurve.hessian import checkpoint as checkpoint_module
from eigencurve.hessian import estimate_spectrum, shared_files
from eigencurve.hessian.basis import Basis
from eigencurve.hessian.estimate import Interrupted

LOCKED = 32 * 4 * 3000  # a budget of 32 vectors


def interrupted_at(step, **settings):
    """Run an estimate until a product raises what Ctrl-C raises, and return the error."""

    class Stopping(MatrixOperator):
        def __call__(self, vector):
            if self.num_products == step:
                raise KeyboardInterrupt
            return super().__call__(vector)

    with pytest.raises(KeyboardInterrupt) as caught:
        estimate_spectrum(Stopping(EIGENVALUES, torch.float32), **settings)
    return caught.value


@pytest.mark.parametrize("budget", [None, LOCKED])
@pytest.mark.parametrize("step", [0, 1, 25, 75])
def test_ctrl_c_saves_and_says_how_to_resume(tmp_path, budget, step):
    settings = {"num_steps": 40, "num_probes": 2, "settle": None, "memory_budget": budget}
    path = tmp_path / "run.npz"
    caught = interrupted_at(step, checkpoint=path, **settings)
    assert isinstance(caught, Interrupted)
    assert "run.npz. Call estimate_spectrum again with the same arguments to resume" in str(caught)
    source = matrix_operator()
    resumed = estimate_spectrum(source, checkpoint=path, **settings)
    whole = estimate_spectrum(matrix_operator(), **settings)
    assert source.num_products == 2 * (40 + 1) - step  # the first product of each probe is repeated
    for name in ("alphas", "betas"):
        assert all(map(np.array_equal, getattr(resumed, name), getattr(whole, name)))
    assert resumed.spectrum == whole.spectrum


@pytest.mark.parametrize("budget", [None, LOCKED])
def test_ctrl_c_in_the_middle_of_a_step_leaves_the_last_save(tmp_path, monkeypatch, budget):
    settings = {"num_steps": 60, "settle": None, "memory_budget": budget, "checkpoint": tmp_path / "run.npz"}
    interrupted_at(20, **settings)
    original = Basis.append

    def stop_inside(self, vector, scale):
        if self.coordinates.shape[1] == 45:
            raise KeyboardInterrupt
        original(self, vector, scale)

    monkeypatch.setattr(Basis, "append", stop_inside)
    with pytest.raises(Interrupted, match="saved to"):
        estimate_spectrum(matrix_operator(), **settings)
    monkeypatch.undo()
    whole = estimate_spectrum(matrix_operator(), **{**settings, "checkpoint": None})
    assert np.array_equal(estimate_spectrum(matrix_operator(), **settings).alphas[0], whole.alphas[0])


def test_without_a_checkpoint_ctrl_c_names_the_argument():
    assert "Pass a path as 'checkpoint'" in str(interrupted_at(3, num_steps=10))


KILLED = """
import sys, time, torch
sys.path.insert(0, sys.argv[3])
from eigencurve.hessian import HessianOperator, checkpoint, estimate_spectrum
from tests.hessian.models import problem, scramble
torch.set_num_threads(1)
checkpoint.SECONDS_BETWEEN = 0.05
model, loss_fn, batch = problem("conv")
operator = HessianOperator(model.float(), loss_fn, (batch[0].float(), batch[1]))
class Slow:
    num_calls = 0
    def __getattr__(self, name): return getattr(operator, name)
    def __call__(self, vector): time.sleep(0.01); self.num_calls += 1; return operator(vector)
slow = Slow()
e = estimate_spectrum(slow, 25, num_probes=2, settle=None, memory_budget=int(sys.argv[2]), checkpoint=sys.argv[1])
print([a.tobytes().hex() for a in e.alphas + e.betas])
print(slow.num_calls)
"""


@pytest.mark.parametrize("vectors", [100, 12])
def test_a_killed_run_resumes_to_the_same_bits(tmp_path, vectors):
    root = os.getcwd()

    def command(path):
        return [sys.executable, "-c", KILLED, str(path), str(vectors * 4 * 68), root]

    whole = subprocess.run(command(tmp_path / "whole.npz"), capture_output=True, text=True, check=True)
    path = tmp_path / "killed.npz"
    (numbers, calls), (others, fewer) = (
        whole.stdout.splitlines(),
        output_after_a_kill(command(path), path, 0.1).splitlines(),
    )
    assert others == numbers
    assert int(fewer) < int(calls) == 2 * (25 + 1)  # the second run continues from the checkpoint


def test_a_finished_checkpoint_needs_no_product_for_as_many_steps_or_fewer(tmp_path):
    path, again = tmp_path / "run.npz", matrix_operator()
    whole = estimate_spectrum(matrix_operator(), 30, settle=None, checkpoint=path)
    assert estimate_spectrum(again, 30, settle=None, checkpoint=path).spectrum == whole.spectrum
    fewer = estimate_spectrum(again, 20, settle=None, checkpoint=path)
    assert fewer.spectrum == estimate_spectrum(matrix_operator(), 20, settle=None).spectrum
    assert again.num_products == 0
    assert estimate_spectrum(again, 30, settle=None, checkpoint=path).spectrum == whole.spectrum


def test_an_interrupted_run_can_take_more_steps(tmp_path):
    path = tmp_path / "run.npz"
    interrupted_at(12, num_steps=20, settle=None, checkpoint=path)
    longer = estimate_spectrum(matrix_operator(), 35, settle=None, checkpoint=path)
    assert np.array_equal(longer.alphas[0], estimate_spectrum(matrix_operator(), 35, settle=None).alphas[0])


@pytest.mark.parametrize("budget", [None, LOCKED])
@pytest.mark.parametrize("first", [1, 35])
def test_a_finished_run_can_take_more_steps(tmp_path, budget, first):
    path, again = tmp_path / "run.npz", matrix_operator()
    settings = {"settle": None, "memory_budget": budget}
    estimate_spectrum(matrix_operator(), first, checkpoint=path, **settings)
    longer = estimate_spectrum(again, 45, checkpoint=path, **settings)
    whole = estimate_spectrum(matrix_operator(), 45, **settings)
    # The last step kept no vector to continue from, and the first product is repeated.
    assert again.num_products == 45 - first + 2
    assert np.array_equal(longer.alphas[0], whole.alphas[0])
    assert np.array_equal(longer.betas[0], whole.betas[0])


def test_finished_probes_cannot_take_more_steps(tmp_path):
    path = tmp_path / "run.npz"
    estimate_spectrum(matrix_operator(), 20, num_probes=2, settle=None, checkpoint=path)
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"'num_steps' must be <= 20, the number of steps of the finished probes"):
        estimate_spectrum(matrix_operator(), 30, num_probes=2, settle=None, checkpoint=path)
    assert path.read_bytes() == content
    assert len(estimate_spectrum(matrix_operator(), 20, num_probes=3, settle=None, checkpoint=path).alphas) == 3


def test_checkpoints_of_another_problem_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    estimate_spectrum(matrix_operator(), 5, settle=None, checkpoint=path)
    content = path.read_bytes()
    with pytest.raises(ValueError, match="checkpoint of another problem"):
        estimate_spectrum(MatrixOperator(EIGENVALUES + 1, torch.float32), 5, settle=None, checkpoint=path)
    with pytest.raises(ValueError, match="of seed 1, got 'a checkpoint of seed 0'"):
        estimate_spectrum(matrix_operator(), 5, settle=None, seed=1, checkpoint=path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("damage", ["truncated", "empty", "other", "short rows", "flipped rows"])
def test_damaged_checkpoints_are_refused_and_kept(tmp_path, damage):
    path = tmp_path / "run.npz"
    estimate_spectrum(matrix_operator(), 5, settle=None, checkpoint=path)
    rows = next(tmp_path.glob("run.npz.rows-*"))
    target = rows if damage.endswith("rows") else path
    flipped = bytearray(rows.read_bytes())
    flipped[len(flipped) // 2] ^= 1  # the length is right, one bit is wrong
    content = {
        "truncated": path.read_bytes()[:-40],
        "empty": b"",
        "other": b"PK nonsense",
        "short rows": rows.read_bytes()[:-9],
        "flipped rows": bytes(flipped),
    }
    target.write_bytes(content[damage])
    with pytest.raises(ValueError, match=r"'checkpoint' must be.*complete.*is unchanged"):
        estimate_spectrum(matrix_operator(), 5, settle=None, checkpoint=path)
    assert target.read_bytes() == content[damage]


def test_a_failed_save_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    monkeypatch.setattr(checkpoint_module, "SECONDS_BETWEEN", 0.0)
    interrupted_at(4, num_steps=20, settle=None, checkpoint=path)
    content = path.read_bytes()

    def full_disk(*_args):
        raise OSError("no space left")

    monkeypatch.setattr(shared_files, "write_atomically", full_disk)
    with pytest.raises(OSError, match="no space"):
        estimate_spectrum(matrix_operator(), 20, settle=None, checkpoint=path)
    assert path.read_bytes() == content
    monkeypatch.undo()
    resumed = estimate_spectrum(matrix_operator(), 20, settle=None, checkpoint=path)
    assert np.array_equal(resumed.alphas[0], estimate_spectrum(matrix_operator(), 20, settle=None).alphas[0])


def test_a_checkpoint_without_one_of_its_fields_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    estimate_spectrum(matrix_operator(), 5, settle=None, checkpoint=path)
    with np.load(path) as archive:
        fields = dict(archive)
    for name in fields.keys() - {"function"}:
        np.savez(path, **{other: value for other, value in fields.items() if other != name})
        with pytest.raises(ValueError, match=r"'checkpoint' must be a complete checkpoint, got .*is unchanged"):
            estimate_spectrum(matrix_operator(), 5, settle=None, checkpoint=path)


@pytest.mark.parametrize("name", ["lengths", "coordinates", "num_used", "sums", "alphas", "seed"])
def test_a_checkpoint_with_a_field_of_another_kind_is_refused(tmp_path, name):
    path = tmp_path / "run.npz"
    interrupted_at(6, num_steps=5, num_probes=2, settle=None, checkpoint=path)
    with np.load(path) as archive:
        fields = dict(archive)
    np.savez(path, **{**fields, name: np.array(["text", "more"])})
    with pytest.raises(ValueError, match=r"'checkpoint' must be .*complete.*is unchanged"):
        estimate_spectrum(matrix_operator(), 5, num_probes=2, settle=None, checkpoint=path)


TWO = """
import sys, time, torch
sys.path.insert(0, sys.argv[2])
from eigencurve.hessian import checkpoint, estimate_spectrum
from tests.hessian.matrices import EIGENVALUES, MatrixOperator
torch.set_num_threads(1)
checkpoint.SECONDS_BETWEEN = 0.0
class Slow(MatrixOperator):
    def __call__(self, vector):
        if self.num_products == 3: print("running", flush=True)
        time.sleep(0.02)
        return super().__call__(vector)
estimate_spectrum(Slow(EIGENVALUES, torch.float32), 60, settle=None, checkpoint=sys.argv[1])
print("done", flush=True)
"""


def test_a_second_process_is_refused_and_the_first_one_finishes(tmp_path):
    path = tmp_path / "run.npz"
    first = subprocess.Popen([sys.executable, "-c", TWO, str(path), os.getcwd()], stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout.readline() == "running\n"
        with pytest.raises(ValueError, match=r"'checkpoint' must be used by one process at a time, got .*another path"):
            estimate_spectrum(matrix_operator(), 60, settle=None, checkpoint=path)
        assert first.stdout.readline() == "done\n"
    finally:
        first.kill()
        first.communicate()
    again = matrix_operator()
    estimate_spectrum(again, 60, settle=None, checkpoint=path)
    assert again.num_products == 0
    assert not list(tmp_path.glob("*.lock"))


def test_a_checkpoint_of_version_1_resumes(tmp_path):
    """Its probes leave out no parameters, and neither does the rest of the run."""
    path = tmp_path / "run.npz"
    whole = estimate_spectrum(matrix_operator(), 12, settle=None)
    estimate_spectrum(matrix_operator(), 5, settle=None, checkpoint=path)
    with np.load(path) as archive:
        fields = {**archive, "version": np.int64(1)}
    del fields["num_unused"]
    np.savez(path, **fields)
    resumed = estimate_spectrum(matrix_operator(), 12, settle=None, checkpoint=path)
    np.testing.assert_array_equal(resumed.alphas[0], whole.alphas[0])
    assert resumed.num_unused == 0
