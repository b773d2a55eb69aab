"""PyTorch optimizers, and the rates that they step with, whoever drives them."""

import torch


def make_optimizer(*groups, lr):
    """An SGD optimizer with one parameter per group."""
    return torch.optim.SGD([{"params": [torch.nn.Parameter(torch.ones(2))], **group} for group in groups], lr=lr)


def recorded(optimizer):
    """A list that grows by the rates of all groups at every step of ``optimizer``."""
    seen = []
    optimizer.register_step_pre_hook(
        lambda stepping, *_: seen.append([float(group["lr"]) for group in stepping.param_groups])
    )
    return seen
