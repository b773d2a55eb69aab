import torch

from paper.training.devices import num_gpus, own_device, threads


def test_threads_are_set_inside_the_block_only():
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_every_process_has_a_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert (own_device(), num_gpus()) == (torch.device("cpu"), 1)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert (own_device(), num_gpus()) == (torch.device("cuda", 1), 2)
