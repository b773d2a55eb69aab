import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from rich.console import Console
from tests.hessian.matrices import MatrixOperator, hessian_like
from tests.hessian.models import problem

import eigencurve as ec
from eigencurve.hessian import checkpoint as checkpoint_module
from eigencurve.hessian import estimate_spectrum
from eigencurve.hessian.basis import Basis
from eigencurve.hessian.estimate import Interrupted
from eigencurve.hessian.octaves import octave_shares
from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.progress import progress_bar

EIGENVALUES = hessian_like(3000, 20)
LOCKED = 32 * 4 * 3000


def operator(dtype=torch.float32):
    return MatrixOperator(EIGENVALUES, dtype)


def exact_shares(octaves):
    heights = np.abs(EIGENVALUES) + 5e-4
    edges = np.append(octaves.lower, np.inf)
    return np.array([np.mean((heights >= a) & (heights < 2 * a)) for a in edges[:-1]])


def test_settled_runs_stop_and_say_why():
    estimate = estimate_spectrum(operator(), num_steps=150, settle=0.2)
    assert estimate.reason == "settled"
    assert estimate.moved < 0.2
    assert estimate.num_products < 150
    assert "stopped (settled)" in str(estimate)
    longer = estimate_spectrum(operator(), num_steps=60, settle=1e-9)
    assert (longer.reason, longer.num_products) == ("num_steps", 60)
    assert np.array_equal(longer.alphas[0][:40], estimate.alphas[0][:40])


def test_small_models_are_found_exactly():
    model, loss_fn, batch = problem("mlp")
    estimate = estimate_spectrum(HessianOperator(model, loss_fn, batch), num_steps=250)
    assert (estimate.reason, estimate.spectrum.dim) == ("exact", 26)
    assert estimate.num_products <= 26


def test_same_seed_same_numbers():
    first, second, other = (estimate_spectrum(operator(), 40, settle=None, seed=seed) for seed in (3, 3, 4))
    assert first.spectrum == second.spectrum
    assert first.spectrum != other.spectrum


def test_error_bars_cover_the_exact_shares():
    """Of all octaves with some weight, nearly all lie within three standard errors, and the bars are no excuses."""
    inside = []
    for seed in range(3):
        octaves = estimate_spectrum(operator(), 120, num_probes=2, settle=None, seed=seed).octaves
        expected = exact_shares(octaves)
        weighty = expected > 0.005
        inside += (np.abs(octaves.share - expected) <= 3 * octaves.error)[weighty].tolist()
        assert np.median(octaves.error[weighty]) < 0.03
    assert np.mean(inside) > 0.8


def test_a_single_probe_has_the_variance_of_the_beta_distribution():
    spectrum = ec.Spectrum([1.0, 3.0], [1, 3])
    octaves = octave_shares(spectrum, [spectrum], [], weight_decay=1e-9, dim=100)
    np.testing.assert_allclose(octaves.error, np.sqrt(2 * 0.25 * 0.75 / 102))


def test_several_probes_are_averaged():
    estimate = estimate_spectrum(operator(), 30, num_probes=3, settle=None)
    assert (len(estimate.alphas), estimate.num_products, len(estimate.nodes)) == (3, 90, 90)
    assert estimate.weights.sum() == pytest.approx(1)


def interrupted_at(step, **settings):
    """Run until a product fails the way Ctrl-C does, then once more."""

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
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path, budget, step):
    settings = {"num_steps": 40, "num_probes": 2, "settle": None, "memory_budget": budget}
    path = tmp_path / "run.npz"
    caught = interrupted_at(step, checkpoint=path, **settings)
    assert isinstance(caught, Interrupted)
    assert "run.npz. Call estimate_spectrum again with the same arguments to go on" in str(caught)
    source = operator()
    resumed = estimate_spectrum(source, checkpoint=path, **settings)
    whole = estimate_spectrum(operator(), **settings)
    assert source.num_products == 80 - step
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
        estimate_spectrum(operator(), **settings)
    monkeypatch.undo()
    whole = estimate_spectrum(operator(), **{**settings, "checkpoint": None})
    assert np.array_equal(estimate_spectrum(operator(), **settings).alphas[0], whole.alphas[0])


def test_without_a_checkpoint_ctrl_c_says_what_was_missing():
    assert "Give 'checkpoint' a path" in str(interrupted_at(3, num_steps=10))


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
    def __getattr__(self, name): return getattr(operator, name)
    def __call__(self, vector): time.sleep(0.01); return operator(vector)
e = estimate_spectrum(Slow(), 25, num_probes=2, settle=None, memory_budget=int(sys.argv[2]), checkpoint=sys.argv[1])
print([a.tobytes().hex() for a in e.alphas + e.betas])
"""


@pytest.mark.parametrize("vectors", [100, 12])
def test_killed_and_started_again_ends_bit_for_bit_as_if_never_killed(tmp_path, vectors):
    root = os.getcwd()

    def command(path):
        return [sys.executable, "-c", KILLED, str(path), str(vectors * 4 * 68), root]

    whole = subprocess.run(command(tmp_path / "whole.npz"), capture_output=True, text=True, check=True)
    path = tmp_path / "killed.npz"
    process = subprocess.Popen(command(path), stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists():
            time.sleep(0.1)
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    ended = subprocess.run(command(path), capture_output=True, text=True, check=True)
    assert ended.stdout == whole.stdout


def test_a_finished_checkpoint_needs_no_product_for_as_many_steps_or_fewer(tmp_path):
    path, again = tmp_path / "run.npz", operator()
    whole = estimate_spectrum(operator(), 30, settle=None, checkpoint=path)
    assert estimate_spectrum(again, 30, settle=None, checkpoint=path).spectrum == whole.spectrum
    fewer = estimate_spectrum(again, 20, settle=None, checkpoint=path)
    assert fewer.spectrum == estimate_spectrum(operator(), 20, settle=None).spectrum
    assert again.num_products == 0
    assert estimate_spectrum(again, 30, settle=None, checkpoint=path).spectrum == whole.spectrum


def test_a_stopped_run_can_be_given_more_steps(tmp_path):
    path = tmp_path / "run.npz"
    interrupted_at(12, num_steps=20, settle=None, checkpoint=path)
    longer = estimate_spectrum(operator(), 35, settle=None, checkpoint=path)
    assert np.array_equal(longer.alphas[0], estimate_spectrum(operator(), 35, settle=None).alphas[0])


@pytest.mark.parametrize("budget", [None, LOCKED])
@pytest.mark.parametrize("first", [1, 35])
def test_a_run_that_had_used_up_its_steps_can_be_given_more(tmp_path, budget, first):
    path, again = tmp_path / "run.npz", operator()
    settings = {"settle": None, "memory_budget": budget}
    estimate_spectrum(operator(), first, checkpoint=path, **settings)
    longer = estimate_spectrum(again, 45, checkpoint=path, **settings)
    whole = estimate_spectrum(operator(), 45, **settings)
    assert again.num_products == 45 - first + 1  # the last step had kept no vector to go on from
    assert np.array_equal(longer.alphas[0], whole.alphas[0])
    assert np.array_equal(longer.betas[0], whole.betas[0])


def test_finished_probes_cannot_be_given_more_steps(tmp_path):
    path = tmp_path / "run.npz"
    estimate_spectrum(operator(), 20, num_probes=2, settle=None, checkpoint=path)
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"'num_steps' must be <= 20, the steps of the probes that are finished"):
        estimate_spectrum(operator(), 30, num_probes=2, settle=None, checkpoint=path)
    assert path.read_bytes() == content
    assert len(estimate_spectrum(operator(), 20, num_probes=3, settle=None, checkpoint=path).alphas) == 3


def test_checkpoints_of_another_problem_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    estimate_spectrum(operator(), 5, settle=None, checkpoint=path)
    content = path.read_bytes()
    with pytest.raises(ValueError, match="checkpoint of another problem"):
        estimate_spectrum(MatrixOperator(EIGENVALUES + 1, torch.float32), 5, settle=None, checkpoint=path)
    with pytest.raises(ValueError, match="of seed 1, got 'the checkpoint of seed 0'"):
        estimate_spectrum(operator(), 5, settle=None, seed=1, checkpoint=path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("damage", ["truncated", "empty", "other", "rows"])
def test_damaged_checkpoints_are_refused_and_kept(tmp_path, damage):
    path = tmp_path / "run.npz"
    estimate_spectrum(operator(), 5, settle=None, checkpoint=path)
    rows = next(tmp_path.glob("run.npz.rows-*"))
    target = rows if damage == "rows" else path
    content = {
        "truncated": path.read_bytes()[:-40],
        "empty": b"",
        "other": b"PK nonsense",
        "rows": rows.read_bytes()[:-9],
    }
    target.write_bytes(content[damage])
    with pytest.raises(ValueError, match=r"'checkpoint' must be.*complete.*left as it is"):
        estimate_spectrum(operator(), 5, settle=None, checkpoint=path)
    assert target.read_bytes() == content[damage]


def test_a_failed_save_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    monkeypatch.setattr(checkpoint_module, "SECONDS_BETWEEN", 0.0)
    interrupted_at(4, num_steps=20, settle=None, checkpoint=path)
    content = path.read_bytes()

    def full_disk(*_args):
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint_module, "write_atomically", full_disk)
    with pytest.raises(OSError, match="no space"):
        estimate_spectrum(operator(), 20, settle=None, checkpoint=path)
    assert path.read_bytes() == content
    monkeypatch.undo()
    resumed = estimate_spectrum(operator(), 20, settle=None, checkpoint=path)
    assert np.array_equal(resumed.alphas[0], estimate_spectrum(operator(), 20, settle=None).alphas[0])


def test_progress_shows_steps_speed_and_time_left_on_a_terminal_only():
    for shown, terminal in [(True, True), (False, True), (True, False)]:
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=100)
        with progress_bar(shown, 10, "the plan", console) as advance:
            advance(3)
            advance(10)
        text = stream.getvalue()
        assert all(part in text for part in ("the plan", "10/10", "products/s", "0:00:00")) == (shown and terminal)
        assert bool(text) == (shown and terminal)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"num_steps": 0}, "'num_steps' must be >= 1"),
        ({"num_probes": 0}, "'num_probes' must be >= 1"),
        ({"settle": 0.0}, "'settle' must be > 0"),
        ({"weight_decay": 0.0}, "'weight_decay' must be > 0"),
        ({"memory_budget": 100}, "'memory_budget' must be >="),
        ({"checkpoint": "no/such/folder/run.npz"}, "a folder that exists"),
    ],
)
def test_bad_arguments(settings, match):
    with pytest.raises(ValueError, match=match):
        estimate_spectrum(operator(), **settings)
