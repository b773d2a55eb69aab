"""Contexts that use a model without changing the model or any random state."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from eigencurve.hessian.kernels import FastKernels

MODES = ("eval", "train", "keep")


@contextmanager
def undisturbed(
    model: nn.Module, mode: str, seed: int | None, generators: Sequence[torch.Generator], device: torch.device
) -> Iterator[None]:
    """Run a block with ``model`` in ``mode`` and all random states set to ``seed``, then restore everything.

    Restored, also after an exception, are the training flag of each module, the buffers (the block works on copies),
    and the states of ``generators`` and of the global generators of torch, NumPy and Python. The block records
    gradients even if the caller has disabled them. With ``seed=None``, for a backward pass, random states are left
    alone.
    """
    with ExitStack() as stack:
        stack.enter_context(_mode(model, mode))
        stack.enter_context(_copied_buffers(model))
        if seed is not None:
            stack.enter_context(_random_states(seed, generators, device))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        yield


def generators_in(model: nn.Module) -> list[torch.Generator]:
    """Random generators that the modules of ``model`` own."""
    owned = [field for module in model.modules() for field in vars(module).values()]
    return list({id(field): field for field in owned if isinstance(field, torch.Generator)}.values())


@contextmanager
def twice_differentiable_kernels(plain: bool, device: torch.device) -> Iterator[None]:
    """Run a block with kernels that have a double backward.

    Modules compiled by ``torch.compile`` run uncompiled, and attention runs as plain matrix products. Some layers get a
    faster double backward (:class:`FastKernels`). With ``plain``, cuDNN and oneDNN are disabled instead, because their
    recurrent layers have no double backward; convolutions are slower without them.
    """
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        if "torch._dynamo" in sys.modules:  # imported by torch.compile, whose functions have no double backward
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(_without_onednn() if plain else FastKernels())
        if plain and device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        yield


@contextmanager
def _without_onednn() -> Iterator[None]:
    """Disable oneDNN; torch.backends.mkldnn.flags also sets other flags, one of which warns."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


@contextmanager
def _mode(model: nn.Module, mode: str) -> Iterator[None]:
    before = [(module, module.training) for module in model.modules()]
    try:
        if mode != "keep":
            model.train(mode == "train")
        yield
    finally:
        for module, training in before:
            module.training = training


@contextmanager
def _copied_buffers(model: nn.Module) -> Iterator[None]:
    """Replace all buffers by copies, so that the originals are never written to.

    Copying values back would change the version of tensors that a gradient graph may still refer to.
    """
    before = [(module, dict(module._buffers)) for module in model.modules() if module._buffers]
    copies: dict[int, Tensor] = {}
    try:
        for module, buffers in before:
            for name, buffer in buffers.items():
                if buffer is not None:
                    module._buffers[name] = copies.setdefault(id(buffer), buffer.detach().clone())
        yield
    finally:
        for module, buffers in before:
            module._buffers.clear()
            module._buffers.update(buffers)


@contextmanager
def _random_states(seed: int, generators: Sequence[torch.Generator], device: torch.device) -> Iterator[None]:
    python, legacy = random.getstate(), np.random.get_state()
    states = [(generator, generator.get_state()) for generator in generators]
    devices = [device] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices=devices):
            torch.default_generator.manual_seed(seed)
            if devices:
                torch.cuda.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed)
            for generator in generators:
                generator.manual_seed(seed)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
        for generator, state in states:
            generator.set_state(state)
