import os

import pytest
from tests.torchrun import run_alone

from eigencurve._files import companion
from eigencurve.hessian.shared_files import newest_common, next_path, replace_together, require_number_of_parts
from eigencurve.hessian.space import whole_space


class Offers:
    """A space in which the other processes offer given states."""

    def __init__(self, *others):
        self.others = list(others)

    def gather(self, mine):
        return [mine, *self.others]


def refuse(constraint, got):
    raise ValueError(f"must be {constraint}, got {got}")


def test_one_process_replaces_its_file_at_once(tmp_path):
    path = tmp_path / "run.npz"
    replace_together(whole_space(3), path, b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(
    ("mine", "other", "chosen"),
    [
        ({(0, 5)}, {(0, 5)}, (0, 5)),
        ({(0, 5), (0, 6)}, {(0, 5)}, (0, 5)),  # killed before all had written the new file
        ({(0, 6)}, {(0, 5), (0, 6)}, (0, 6)),  # killed while the old files were being replaced
        ({(0, 9), (1, 2)}, {(0, 9), (1, 2)}, (1, 2)),
    ],
)
def test_the_newest_state_that_all_have_is_chosen(tmp_path, mine, other, chosen):
    path = tmp_path / "run.npz"
    path.touch()
    assert newest_common(Offers((True, other)), path, {key: key for key in mine}, refuse) == chosen


def test_without_a_common_state_there_is_nothing_to_resume_or_a_refusal(tmp_path):
    path = tmp_path / "run.npz"
    assert newest_common(Offers((False, {(0, 1)})), path, {}, refuse) is None
    assert newest_common(whole_space(3), path, {}, refuse) is None
    path.touch()
    with pytest.raises(ValueError, match="a file of every process, got files without a common step"):
        newest_common(Offers((False, set())), path, {(0, 4): "mine"}, refuse)


def test_another_number_of_processes_is_refused(tmp_path):
    path, own = tmp_path / "run.npz", tmp_path / "run.npz.part-0-of-2"
    for name in ("run.npz.part-0-of-2", "run.npz.part-1-of-2.rows-0-0", "run.npz.part-1-of-2.next"):
        (tmp_path / name).touch()
    require_number_of_parts(path, own, refuse)
    require_number_of_parts(path, path, refuse)
    with pytest.raises(ValueError, match="of 4 processes, got a checkpoint of 2 processes"):
        require_number_of_parts(path, tmp_path / "run.npz.part-0-of-4", refuse)
    path.touch()
    with pytest.raises(ValueError, match="of 2 processes, got one of whole vectors"):
        require_number_of_parts(path, own, refuse)
    assert next_path(own).name == "run.npz.part-0-of-2.next"


KILLED = """
import os, signal, sys, time
from pathlib import Path
import numpy as np, torch, torch.distributed as dist
from eigencurve.hessian import checkpoint, estimate_spectrum, shared_files
from eigencurve.hessian.space import Space, even_space
from tests.forks import in_group
from tests.hessian.matrices import MatrixOperator, hessian_like

checkpoint.SECONDS_BETWEEN = 0.0  # save after every step
FOLDER = Path(sys.argv[1])
EIGENVALUES = hessian_like(400, 10)
STEPS = 24

class Part(MatrixOperator):
    def __init__(self):
        self.space = even_space(len(EIGENVALUES), None)
        super().__init__(self.space.part(torch.from_numpy(EIGENVALUES)).numpy())
        self.dim = len(EIGENVALUES)
    fingerprint = lambda self: "the same"
    min_over_processes = lambda self, value: min(self.space.gather(value))
    is_main_process = property(lambda self: dist.get_rank() == 0)

def run(path, vectors, write=None):
    operator = Part()
    budget = vectors * 8 * operator.space.size if dist.get_rank() == 0 else 10**9
    found = estimate_spectrum(operator, STEPS, settle=None, memory_budget=budget, checkpoint=path, progress=False)
    if write is not None:
        np.savez(FOLDER / f"{write}-{dist.get_rank()}.npz", alphas=found.alphas[0], betas=found.betas[0],
                 calls=operator.num_products)

def die(path, vectors, stage, save):
    # Process 1 kills itself at one stage of one save.
    count = 0
    original = {"write": shared_files.write_atomically, "wait": Space.wait, "replace": os.replace}
    def at(name):
        def changed(*arguments):
            nonlocal count
            count += name == "write"
            if dist.get_rank() == 1 and count >= save and name == stage:
                os.kill(os.getpid(), signal.SIGKILL)
            return original[name](*arguments)
        return changed
    shared_files.write_atomically, Space.wait, shared_files.os = at("write"), at("wait"), Replacing(at("replace"))
    run(path, vectors)

class Replacing:
    def __init__(self, replace): self.replace = replace

for vectors in (30, 14):  # the whole basis, and a few rows with locked Ritz vectors
    assert in_group(2, run, FOLDER, FOLDER / f"whole-{vectors}.npz", vectors, f"whole-{vectors}") == [0, 0]
    assert in_group(1, run, FOLDER, FOLDER / f"alone-{vectors}.npz", vectors, f"alone-{vectors}") == [0]
    for stage in ("write", "wait", "replace"):
        for save in (1, 15):
            path, name = FOLDER / f"{stage}-{save}-{vectors}.npz", f"{stage}-{save}-{vectors}"
            codes = in_group(2, die, FOLDER, path, vectors, stage, save)
            assert codes[1] == -signal.SIGKILL and codes[0] != 0, codes
            assert in_group(2, run, FOLDER, path, vectors, name) == [0, 0]
            whole, resumed = np.load(FOLDER / f"whole-{vectors}-0.npz"), np.load(FOLDER / f"{name}-1.npz")
            assert np.array_equal(whole["alphas"], resumed["alphas"]), name
            assert np.array_equal(whole["betas"], resumed["betas"]), name
            assert resumed["calls"] <= STEPS - save + 3, (name, resumed["calls"])
    whole, alone = np.load(FOLDER / f"whole-{vectors}-0.npz"), np.load(FOLDER / f"alone-{vectors}-0.npz")
    # With locked vectors, later steps amplify rounding: a copy of an eigenvalue appears a little sooner or later.
    for key in ("alphas", "betas"):
        first = slice(None if vectors == 30 else 16)
        assert np.allclose(whole[key][first], alone[key][first], rtol=0, atol=1e-12 * EIGENVALUES.max()), key
codes = in_group(4, run, FOLDER, FOLDER / "whole-30.npz", 30)
assert codes == [1] * 4, codes
"""


def test_a_killed_process_leaves_a_state_that_all_can_resume(tmp_path):
    """Killed at every stage of a save, early and late, the run ends with the same bits as an uninterrupted one."""
    program = tmp_path / "program.py"
    program.write_text(KILLED)
    run_alone(program, tmp_path)


def test_the_parts_of_another_checkpoint_are_not_mistaken_for_those_of_a_name_with_brackets(tmp_path):
    for name in ("run1.npz.part-0-of-3", "run[1].npz.part-old-of-5"):
        (tmp_path / name).touch()
    path = tmp_path / "run[1].npz"
    require_number_of_parts(path, tmp_path / "run[1].npz.part-0-of-2", refuse)
    (tmp_path / "run[1].npz.part-1-of-4.next").touch()
    with pytest.raises(ValueError, match="of 2 processes, got a checkpoint of 4 processes"):
        require_number_of_parts(path, tmp_path / "run[1].npz.part-0-of-2", refuse)


@pytest.mark.parametrize("size", [230, 255])
def test_the_parts_of_a_long_name_are_found(tmp_path, size):
    path = tmp_path / ("é" * (size // 2))
    own, other = companion(path, ".part-0-of-2"), companion(path, ".part-11-of-12")
    for file in (own, next_path(own), companion(own, ".rows-10-10")):
        assert len(os.fsencode(file.name)) <= 255
    require_number_of_parts(path, own, refuse)
    next_path(other).touch()
    with pytest.raises(ValueError, match="of 2 processes, got a checkpoint of 12 processes"):
        require_number_of_parts(path, own, refuse)
