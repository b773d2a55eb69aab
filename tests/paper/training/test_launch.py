import pytest
import torch
import torch.distributed as dist
from tests.paper.training.training_job import Blobs, net, settings

from paper.training.launch import in_processes
from paper.training.loop import train


def rank_and_sum(number):
    total = torch.tensor(number * (1 + dist.get_rank()))
    dist.all_reduce(total)
    return dist.get_rank(), int(total)


def test_the_processes_cooperate_and_the_first_one_answers():
    assert in_processes(2, rank_and_sum, 5) == (0, 5 + 10)


class Failing(Blobs):
    """A task whose loss cannot be computed in one of the processes."""

    def loss(self, model, batch):
        if torch.distributed.get_rank() == 1:
            raise ValueError("these labels are not numbers")
        return super().loss(model, batch)


def failing():
    train(net(random=False), Failing(), settings(max_norm=0.5))


def test_a_process_that_fails_ends_them_all_and_says_why():
    with pytest.raises(RuntimeError, match="Process 1 of 2 failed: ValueError: these labels are not numbers"):
        in_processes(2, failing)
