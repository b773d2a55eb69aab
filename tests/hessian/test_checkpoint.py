"""Checkpoints of an estimate: interrupted, killed, damaged or foreign, a run resumes exactly or is refused."""

import errno
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.hessian.matrices import EIGENVALUES, Counting, MatrixOperator, matrix_operator
from tests.hessian.models import problem, scramble, small_operator
from tests.killed import output_after_a_kill
from torch import nn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve import _files
from eigencurve.hessian import (
    HessianOperator,
    estimate_noise,
    estimate_spectrum,
    shared_files,
    start_from_gradient,
)
from eigencurve.hessian import checkpoint as checkpoint_module
from eigencurve.hessian.basis import Basis
from eigencurve.hessian.checkpoint import CheckpointError
from eigencurve.hessian.loop import Interrupted

pytestmark = pytest.mark.slow


IDENTITY = 1  # the product that makes sure that the checkpoint belongs to the operator
LOCKED = 32 * 4 * 3000  # a budget of 32 vectors


def interrupted_at(step, **settings):
    """Run an estimate until a product raises what Ctrl-C raises, and return the error."""
    with pytest.raises(KeyboardInterrupt) as caught:
        estimate_spectrum(Counting(matrix_operator(), step + IDENTITY), **settings)
    return caught.value


@pytest.mark.parametrize("budget", [None, LOCKED])
@pytest.mark.parametrize("step", [0, 1, 25, 75])
def test_ctrl_c_saves_and_says_how_to_resume(tmp_path, budget, step):
    settings = {"num_products": 40, "num_probes": 2, "settle": None, "memory_budget": budget}
    path = tmp_path / "run.npz"
    caught = interrupted_at(step, checkpoint=path, **settings)
    assert isinstance(caught, Interrupted)
    assert (caught.function, caught.checkpoint) == ("estimate_spectrum", path)
    source = matrix_operator()
    resumed = estimate_spectrum(source, checkpoint=path, **settings)
    whole = estimate_spectrum(matrix_operator(), **settings)
    assert source.num_products == IDENTITY + 2 * (40 + 1) - step  # the first product of each probe is repeated
    for name in ("alphas", "betas"):
        assert all(map(np.array_equal, getattr(resumed, name), getattr(whole, name)))
    assert resumed.spectrum == whole.spectrum


@pytest.mark.parametrize("budget", [None, LOCKED])
def test_ctrl_c_in_the_middle_of_a_step_leaves_the_last_save(tmp_path, monkeypatch, budget):
    settings = {"num_products": 60, "settle": None, "memory_budget": budget, "checkpoint": tmp_path / "run.npz"}
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
    assert interrupted_at(3, num_products=10).checkpoint is None


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
    assert int(fewer) < int(calls) == IDENTITY + 2 * (25 + 1)  # the second run continues from the checkpoint


def test_a_finished_checkpoint_needs_no_step_for_as_many_steps_or_fewer(tmp_path):
    path, again = tmp_path / "run.npz", matrix_operator()
    whole = estimate_spectrum(matrix_operator(), 30, settle=None, checkpoint=path)
    assert estimate_spectrum(again, 30, settle=None, checkpoint=path).spectrum == whole.spectrum
    fewer = estimate_spectrum(again, 20, settle=None, checkpoint=path)
    assert fewer.spectrum == estimate_spectrum(matrix_operator(), 20, settle=None).spectrum
    assert again.num_products == 2 * IDENTITY
    assert estimate_spectrum(again, 30, settle=None, checkpoint=path).spectrum == whole.spectrum


def test_an_interrupted_run_can_take_more_steps(tmp_path):
    path = tmp_path / "run.npz"
    interrupted_at(12, num_products=20, settle=None, checkpoint=path)
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
    assert again.num_products == IDENTITY + 45 - first + 2
    assert np.array_equal(longer.alphas[0], whole.alphas[0])
    assert np.array_equal(longer.betas[0], whole.betas[0])


def test_finished_probes_cannot_take_more_steps(tmp_path):
    path = tmp_path / "run.npz"
    estimate_spectrum(matrix_operator(), 20, num_probes=2, settle=None, checkpoint=path)
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"'num_products' must be <= 20, the number of steps of the finished runs"):
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
    interrupted_at(4, num_products=20, settle=None, checkpoint=path)
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


def test_a_checkpoint_with_a_field_that_is_missing_or_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    interrupted_at(6, num_products=5, num_probes=2, settle=None, checkpoint=path)
    with np.load(path) as archive:
        fields = dict(archive)
    missing = [{other: fields[other] for other in fields.keys() - {name}} for name in fields.keys() - {"function"}]
    kinds = ("lengths", "coordinates", "num_used", "sums", "alphas", "seed")
    for damaged in (*missing, *({**fields, name: np.array(["text", "more"])} for name in kinds)):
        np.savez(path, **damaged)
        with pytest.raises(ValueError, match=r"'checkpoint' must be a complete checkpoint, got .*is unchanged"):
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
    assert again.num_products == IDENTITY
    assert not list(tmp_path.glob("*.lock"))


EARLIER = Path(__file__).parent / "version_2"  # files of version 2, of the estimates below


def earlier(folder, name, version):
    """A checkpoint of an earlier release; one of version 1 has no number of unused parameters."""
    path = Path(shutil.copy(EARLIER / f"{name}.npz", folder))
    shutil.copy(EARLIER / f"{name}.npz.rows-1-0", folder)
    if version == 1:
        with np.load(path) as archive:
            fields = {**archive, "version": np.int64(1)}
        del fields["num_unused"]
        np.savez(path, **fields)
    return path


def small_spectrum(operator, path=None):
    return estimate_spectrum(operator, 12, num_probes=2, settle=None, checkpoint=path, progress=False)


def small_noise(operator, path=None):
    spectrum = ec.Spectrum(np.geomspace(1e-4, 2.0, operator.dim), np.ones(operator.dim), dim=operator.dim)
    settings = {"batch_size": 4, "num_products": 8, "weight_decay": 1e-3, "progress": False}
    return estimate_noise(operator, spectrum, **settings, checkpoint=path, examples=small_operator())


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("name", "estimate"), [("spectrum", small_spectrum), ("noise", small_noise)])
def test_a_checkpoint_of_an_earlier_release_resumes_with_a_warning(tmp_path, name, estimate, version):
    path, operator = earlier(tmp_path, name, version), Counting(small_operator())
    with pytest.warns(UserWarning, match=rf"{name}\.npz is of an earlier release.*loss.*buffers.*start again"):
        resumed = estimate(operator, path)
    assert (
        operator.num_products == IDENTITY + {"spectrum": 13 - 5, "noise": 9 - 3}[name]
    )  # the first product is repeated
    whole = estimate(small_operator())
    found, wanted = (
        (each.nodes, each.weights) if name == "spectrum" else (each.octaves.mass, [each.trace])
        for each in (resumed, whole)
    )
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)  # the files are of another processor and library
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(small_operator(), path)  # saved again, now with the loss and the product


def test_a_checkpoint_of_an_earlier_release_of_another_model_is_refused(tmp_path):
    path, operator = earlier(tmp_path, "spectrum", 2), small_operator()
    with torch.no_grad():
        operator.model[0].bias += 1
    content = path.read_bytes()
    with pytest.raises(ValueError, match="of this model, these parameters and this data, got 'a checkpoint of another"):
        small_spectrum(operator, path)
    assert path.read_bytes() == content


class Headed(nn.Module):
    """A frozen body with batch norm, and a trainable head."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh()).requires_grad_(False)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.body(x))


def headed(change="nothing"):
    """The operator of a small model, with one change that its trainable parameters and its data do not show."""
    model = scramble(Headed().double())
    x = torch.randn(16, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    y = torch.arange(16) % 2
    loss, options = F.cross_entropy, {}
    match change:
        case "loss times ten":
            loss = lambda z, y: 10 * F.cross_entropy(z, y)  # noqa: E731
        case "loss plus one":
            loss = lambda z, y: F.cross_entropy(z, y) + 1  # noqa: E731
        case "linear term":
            loss = lambda z, y: F.cross_entropy(z, y) + (z.mean() - z.mean().detach())  # noqa: E731
        case "buffer":
            model.body[1].running_mean += 0.3
        case "frozen weights":
            model.body[0].weight += 1e-12
        case "hook":
            model.body.register_forward_hook(lambda _module, _inputs, outputs: outputs * 1.1)
        case "code":
            model.forward = lambda x: model.head(torch.relu(model.body(x)))
        case "parameters":
            with torch.no_grad():
                model.head.bias += 1e-12
        case "data":
            x = x + 1e-12
        case "settings":
            options = {"product": "finite_difference"}
    return HessianOperator(model, loss, (x, y), **options)


HIDDEN = "The parameters, the data and the settings are the same, so the loss function, a buffer or the code"
CHANGES = {
    "loss times ten": f"different product, gradient, loss'. {HIDDEN}", "loss plus one": f"different loss'. {HIDDEN}",
    "linear term": f"different gradient'. {HIDDEN}", "buffer": f"different product, gradient, loss'. {HIDDEN}",
    "hook": f"different product, gradient, loss'. {HIDDEN}", "code": f"different product, gradient, loss'. {HIDDEN}",
    "frozen weights": "different frozen weights'. The file", "parameters": "different parameters'. The file",
    "data": "different data'. The file", "settings": "different settings'. The file",
}  # fmt: skip


@pytest.mark.parametrize("wrap", ["plain", "preconditioned"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_anything_that_the_estimate_depends_on_is_refused_by_name(tmp_path, change, wrap):
    path, settings = tmp_path / "run.npz", {"settle": None, "progress": False}

    def made(change):
        operator = headed(change)
        return operator if wrap == "plain" else operator.preconditioned_by(torch.full((14,), 2.0))

    first = estimate_spectrum(made("nothing"), 5, checkpoint=path, **settings)
    content = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=re.escape(f"got 'a checkpoint of another problem: {CHANGES[change]}")):
        estimate_spectrum(made(change), 9, checkpoint=path, **settings)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == content
    again = estimate_spectrum(made("nothing"), 5, checkpoint=path, **settings)
    assert np.array_equal(again.alphas, first.alphas)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("which", ["operator", "examples"])
def test_the_checkpoint_of_a_noise_estimate_knows_the_loss_of_both_its_operators(tmp_path, change, which):
    spectrum, path = ec.Spectrum(np.geomspace(1e-4, 2.0, 14), np.ones(14), dim=14), tmp_path / "run.npz"
    settings = {"batch_size": 4, "num_products": 4, "weight_decay": 1e-3, "checkpoint": path, "progress": False}
    estimate_noise(headed(), spectrum, examples=headed(), **settings)
    content = path.read_bytes()
    operators = {"operator": headed(), "examples": headed(), which: headed(change)}
    if which == "examples" and change == "loss plus one":
        pytest.skip("the gradients of the examples are the same")
    with pytest.raises(ValueError, match="a checkpoint of another problem: different"):
        estimate_noise(operators["operator"], spectrum, examples=operators["examples"], **settings)
    assert path.read_bytes() == content


def test_a_start_of_another_gradient_is_refused(tmp_path):
    """The start vector is the gradient with its weight decay, which no hash of the operator knows."""
    operator, path = headed(), tmp_path / "run.npz"
    spectrum = estimate_spectrum(operator, 5, settle=None, progress=False).spectrum
    for decay in (1e-3, 1.0):
        noise = estimate_noise(operator, spectrum, 4, num_products=4, weight_decay=decay, progress=False)
        settings = {"num_products": 4, "checkpoint": path, "progress": False}
        if decay == 1e-3:
            start_from_gradient(operator, noise, spectrum, **settings)
        else:
            with pytest.raises(ValueError, match="another problem: different start vector'"):
                start_from_gradient(operator, noise, spectrum, **settings)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_does_not_make_another_problem(tmp_path, dtype):
    """Another order of summation, as with another number of threads, resumes."""
    model, loss_fn, (x, y) = problem("conv", num_examples=12)
    model, path = model.to(dtype), tmp_path / "run.npz"
    whole = HessianOperator(model, loss_fn, (x.to(dtype), y))

    class Rounded(Counting):
        def __call__(self, vector):
            product = super().__call__(vector)
            noise = torch.randn(len(product), generator=torch.Generator().manual_seed(self.num_products), dtype=dtype)
            return product + 100 * torch.finfo(dtype).eps * noise * product.norm() / len(product) ** 0.5

    estimate_spectrum(whole, 5, settle=None, checkpoint=path, progress=False)
    resumed = estimate_spectrum(Rounded(whole), 9, settle=None, checkpoint=path, progress=False)
    assert len(resumed.alphas[0]) == 9


ODD = ["run[1].npz", "run*.npz", "run?.npz", "a" * 200, "a" * 245 + ".npz", "a" * 251 + ".npz", "é" * 127, "日" * 85]


@pytest.mark.parametrize("name", ODD, ids=lambda name: ascii(name[:8]) + str(len(name.encode())))
def test_every_legal_name_saves_resumes_and_deletes_only_its_own_rows(tmp_path, name):
    strangers = [tmp_path / f"{other}.rows-0-0" for other in ("run1.npz", "runs.npz", "b" * 200)]
    for stranger in strangers:
        stranger.write_text("kept")
    path, other = tmp_path / name, tmp_path / (name[:-1] + "x")
    settings = {"num_probes": 2, "settle": None, "progress": False}
    for number, own in enumerate((path, other)):
        interrupted_at(27, num_products=20, checkpoint=own, **settings)
        assert len(list(tmp_path.iterdir())) == len(strangers) + 2 * (number + 1)
    for own in (path, other):
        source = matrix_operator()
        resumed = estimate_spectrum(source, 20, checkpoint=own, **settings)
        assert source.num_products == IDENTITY + 2 * (20 + 1) - 27  # the first product of each probe is repeated
        assert np.array_equal(resumed.alphas, estimate_spectrum(matrix_operator(), 20, **settings).alphas)
    assert all(stranger.read_text() == "kept" for stranger in strangers)


@pytest.mark.parametrize("linked", ["the first run", "the second run", "both runs"])
def test_a_link_and_its_target_are_one_checkpoint(tmp_path, linked):
    target, link = tmp_path / "real" / "run.npz", tmp_path / "link.npz"
    target.parent.mkdir()
    link.symlink_to(target)
    first, second = (link if linked in (run, "both runs") else target for run in ("the first run", "the second run"))
    interrupted_at(7, num_products=12, settle=None, checkpoint=first, progress=False)
    for steps in (12, 15):
        resumed = estimate_spectrum(matrix_operator(), steps, settle=None, checkpoint=second, progress=False)
        whole = estimate_spectrum(matrix_operator(), steps, settle=None, progress=False)
        assert np.array_equal(resumed.alphas, whole.alphas)
    assert sorted(file.name for file in target.parent.iterdir()) == ["run.npz", "run.npz.rows-0-0"]
    assert link.is_symlink()


def test_a_relative_path_stays_in_the_folder_of_the_call(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkpoint_module, "SECONDS_BETWEEN", 0.0)

    class Moving(MatrixOperator):
        def __call__(self, vector):
            os.chdir(tmp_path / "other")
            return super().__call__(vector)

    estimate_spectrum(Moving(EIGENVALUES, torch.float32), 5, settle=None, checkpoint="run.npz", progress=False)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other", "run.npz", "run.npz.rows-0-0"]
    assert not list((tmp_path / "other").iterdir())


def test_a_folder_that_is_removed_during_a_run_is_one_clear_line(tmp_path, monkeypatch):
    path = tmp_path / "gone" / "run.npz"
    path.parent.mkdir()
    monkeypatch.setattr(checkpoint_module, "SECONDS_BETWEEN", 0.0)

    class Removing(MatrixOperator):
        def __call__(self, vector):
            shutil.rmtree(path.parent, ignore_errors=True)
            return super().__call__(vector)

    with pytest.raises(CheckpointError, match=r"estimate_spectrum: the checkpoint .*run\.npz cannot be saved: No such"):
        estimate_spectrum(Removing(EIGENVALUES, torch.float32), 5, settle=None, checkpoint=path, progress=False)


def test_a_path_that_cannot_be_a_file_is_refused_before_the_first_product(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    source = matrix_operator()
    for name, message in (
        ("folder", "must be the path of a file, got .*folder, a folder"),
        ("a", "must be a file that can be written, got"),
        ("x" * 256, "must be a file that can be written, got .File name too long"),
    ):
        with pytest.raises(ValueError, match=message):
            estimate_spectrum(source, 5, checkpoint=tmp_path / name, progress=False)

    def denied(_lock):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def full(_lock):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_files, "_locked", denied)  # no folder is read-only for root
    with pytest.raises(ValueError, match=r"must be a file that can be written, got .Permission denied: .*run\.npz"):
        estimate_spectrum(source, 5, checkpoint=tmp_path / "run.npz", progress=False)
    monkeypatch.setattr(_files, "_locked", full)
    with pytest.raises(CheckpointError, match=r"the checkpoint .*run\.npz cannot be saved: No space left on device"):
        estimate_spectrum(source, 5, checkpoint=tmp_path / "run.npz", progress=False)
    assert source.num_products == 0
