import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from tests.hessian.matrices import MatrixOperator
from tests.hessian.models import generator
from tests.torchrun import run_alone

from eigencurve.hessian import space as module
from eigencurve.hessian.space import Space, even_range, own_part, space_of, whole_space


def test_dot_is_exact_in_float64():
    a = torch.randn(3_000_000, generator=generator())
    assert whole_space(len(a)).dot(a, a) == pytest.approx(float((a.double() ** 2).sum()), rel=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-310, 1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_the_norm_neither_underflows_nor_overflows(scale):
    vector, space = scale * torch.tensor([3.0, 4.0, -12.0], dtype=torch.float64), whole_space(3)
    assert space.norm(vector) == pytest.approx(13 * scale, rel=1e-12)
    assert np.isnan(space.norm(vector * float("nan")))
    assert whole_space(2).norm(torch.tensor([1.0, float("inf")])) == np.inf


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(st.integers(1, 400), st.lists(st.integers(0, 400), max_size=6), st.sampled_from([16, 64, 96]))
def test_the_parts_of_normal_vectors_are_those_of_one_long_vector(dtype, dim, ends, chunk):
    """Two vectors are drawn one after the other, because the first must use as many random numbers as torch.randn."""
    inside = sorted({end for end in ends if end < dim} | {0, dim})
    pieces = tuple(zip(inside[:-1:2], inside[1::2], strict=False))
    space, own, whole = Space(dim, pieces, group=lambda: None), generator(3), generator(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "NORMAL_CHUNK", chunk)
        for _ in range(2):
            expected = torch.randn(dim, generator=whole, dtype=dtype)
            assert torch.equal(space.normal(own, dtype), space.part(expected))


def test_a_part_of_another_length_is_returned_unchanged():
    space = Space(6, ((1, 3), (5, 6)), group=lambda: None)
    assert space.part(torch.arange(6)).tolist() == [1, 2, 5]
    assert space.part(torch.arange(3)).tolist() == [0, 1, 2]
    assert Space(6, (), group=lambda: None).part(torch.arange(6)).tolist() == []


@given(st.integers(1, 100), st.integers(1, 20))
def test_even_parts_hold_every_entry_once(dim, count):
    parts = [even_range(dim, rank, count) for rank in range(count)]
    assert [entry for part in parts for entry in range(*part)] == list(range(dim))


def test_an_operator_without_a_space_has_whole_vectors():
    space = space_of(MatrixOperator(np.eye(4)))
    assert (space.size, space.is_shared, space.gather("mine")) == (4, False, ["mine"])
    assert own_part(torch.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("vector", "error"),
    [([1.0, 2.0], TypeError), (torch.ones(3), ValueError), (torch.ones(2, dtype=torch.float64), ValueError)],
)
def test_vectors_of_another_space_are_refused(vector, error):
    with pytest.raises(error, match="'v' must be a tensor"):
        whole_space(2).require("f", "v", vector, torch.float32, torch.device("cpu"))


PROGRAM = """
import sys
from pathlib import Path
import torch, torch.distributed as dist
from tests.forks import in_group
from eigencurve.hessian.space import even_space

def work():
    space, rank = even_space(5, None), dist.get_rank()
    assert space.pieces == (((0, 2),), ((2, 4),), ((4, 5),))[rank]
    whole = torch.tensor([3.0, 0.0, 4.0, 0.0, 12.0], dtype=torch.float64)
    mine = space.part(whole)
    assert space.dot(mine, mine) == 169.0
    assert abs(space.norm(mine * 1e-300) / 13e-300 - 1) < 1e-12
    assert torch.isnan(torch.tensor(space.norm(mine * (float("nan") if rank == 1 else 1.0))))
    assert space.gather(rank) == [0, 1, 2]
    assert space.own_path(Path("run.npz")).name == f"run.npz.part-{rank}-of-3"
    assert even_space(2, None).size == (1, 1, 0)[rank]
    empty = even_space(2, None)
    assert empty.norm(torch.full((empty.size,), 1e-300, dtype=torch.float64)) > 0

assert in_group(3, work, Path(sys.argv[1])) == [0, 0, 0]
"""


def test_three_processes_have_one_inner_product(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run_alone(program, tmp_path)
