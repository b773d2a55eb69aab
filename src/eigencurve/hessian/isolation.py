"""Using a model without leaving a trace in it, or in any random state."""

from __future__ import annotations

import random
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
    model: nn.Module, mode: str, seed: int, generators: Sequence[torch.Generator], device: torch.device
) -> Iterator[None]:
    """Run a block with ``model`` in ``mode`` and all random states set to ``seed``; put all of it back after.

    Back come each module's own training flag, the buffers (the block works on copies of them), and the states of
    torch's, NumPy's and Python's global generators and of ``generators``; also after an exception. Gradients are
    recorded in the block even where the caller has switched them off.
    """
    with ExitStack() as stack:
        stack.enter_context(_mode(model, mode))
        stack.enter_context(_copied_buffers(model))
        stack.enter_context(_random_states(seed, generators, device))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        yield


@contextmanager
def twice_differentiable_kernels(plain: bool, device: torch.device) -> Iterator[None]:
    """Choose kernels that have a double backward.

    Attention always runs as plain matrix products; convolutions and fixed batch norms get a faster double backward.
    With ``plain``, cuDNN and oneDNN are switched off instead: their recurrent layers have no double backward, and
    convolutions are slower without them.
    """
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        if not plain:
            stack.enter_context(FastKernels())
        if plain:
            stack.enter_context(_without_onednn())
        if plain and device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        yield


@contextmanager
def _without_onednn() -> Iterator[None]:
    """torch.backends.mkldnn.flags would do, but it sets other flags too, and one of them warns."""
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
    """Put copies in the place of all buffers, so that the originals are not even written to.

    Copying back instead would change the version of tensors that a gradient graph still refers to.
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
