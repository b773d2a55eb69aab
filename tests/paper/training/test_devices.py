from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional as F

from paper.training import devices
from paper.training.devices import ProductsInFloat32, half_type, kernels_for, num_gpus, own_device, threads


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


CPU = torch.device("cpu")


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(8 * 64, 16), torch.nn.Unflatten(1, (4, 4)), Squares(), torch.nn.Flatten(),
    )  # fmt: skip


class Squares(torch.nn.Module):
    """Batched matrix products."""

    def forward(self, x):
        return x @ x.transpose(1, 2)


def gradients(kernels, is_mixed=True):
    """The loss of one step and its gradients, as one vector."""
    model, source = network(), torch.Generator().manual_seed(1)
    x, y = torch.randn(32, 3, 8, 8, generator=source), torch.randint(0, 16, (32,), generator=source)
    with kernels:
        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
    return loss.detach(), torch.cat([p.grad.flatten() for p in model.parameters()])


def test_products_are_those_of_bfloat16():
    loss, ours = gradients(ProductsInFloat32())
    native_loss, native = gradients(nullcontext())
    _, full = gradients(nullcontext(), is_mixed=False)
    torch.testing.assert_close(loss, native_loss, rtol=2e-3, atol=0)
    # Sums in another order are rounded differently now and then; float32 differs in every number.
    assert (ours - native).norm() < 0.5 * (full - native).norm()
    assert not torch.equal(ours, full)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_a_product_keeps_its_type_and_is_rounded_once(dtype):
    source = torch.Generator().manual_seed(0)
    a, b = (torch.randn(20, 20, generator=source).to(dtype) for _ in range(2))
    with ProductsInFloat32():
        found = a @ b
    exact = (a.double() @ b.double()).to(dtype)
    assert found.dtype == dtype
    # One unit in the last place, for the order of the sums.
    torch.testing.assert_close(found, exact, rtol=float(torch.finfo(dtype).eps) * 4, atol=1e-6)


def test_it_is_used_where_pytorch_has_no_kernels(monkeypatch):
    def kernels(half, supported):
        monkeypatch.setattr(devices, "has_bfloat16_kernels", lambda: supported)
        return isinstance(kernels_for(half, CPU), ProductsInFloat32)

    assert kernels(torch.bfloat16, supported=False)
    assert not kernels(torch.bfloat16, supported=True)
    assert not kernels(None, supported=False)
    monkeypatch.undo()
    assert isinstance(devices.has_bfloat16_kernels(), bool)


def test_the_type_of_mixed_precision():
    assert half_type("bfloat16", CPU) is torch.bfloat16
    assert half_type("float32", CPU) is half_type("auto", CPU) is None
