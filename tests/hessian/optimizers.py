"""Adaptive optimizers with their settings, and steps with them on a whole batch."""

import torch
from torch import optim

# Without a first moment, so that a step is exactly -lr (g + decay) / P.
ADAM = {"lr": 0.01, "betas": (0.0, 0.9), "eps": 1e-3}
OPTIMIZERS = {
    "adam": (optim.Adam, ADAM),
    "adam, L2": (optim.Adam, {**ADAM, "weight_decay": 0.3}),
    "adam, amsgrad": (optim.Adam, {**ADAM, "amsgrad": True}),
    "adam, no foreach": (optim.Adam, {**ADAM, "foreach": False}),
    "adam, fused": (optim.Adam, {**ADAM, "fused": True}),
    "adam, decoupled": (optim.Adam, {**ADAM, "weight_decay": 0.3, "decoupled_weight_decay": True}),
    "adam, tensor rate": (optim.Adam, {**ADAM, "lr": torch.tensor(0.01, dtype=torch.float64)}),
    "adamw": (optim.AdamW, {**ADAM, "weight_decay": 0.3}),
    "adamw, amsgrad": (optim.AdamW, {**ADAM, "weight_decay": 0.3, "amsgrad": True}),
    "adamw, fused": (optim.AdamW, {**ADAM, "weight_decay": 0.3, "fused": True}),
    "rmsprop": (optim.RMSprop, {"lr": 0.01, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.3}),
    "rmsprop, centered": (optim.RMSprop, {"lr": 0.01, "alpha": 0.9, "eps": 1e-3, "centered": True}),
    "adagrad": (optim.Adagrad, {"lr": 0.01, "eps": 1e-3, "weight_decay": 0.3, "initial_accumulator_value": 0.1}),
    "adagrad, fused": (optim.Adagrad, {"lr": 0.01, "eps": 1e-3, "fused": True}),
}


def flat(tensors):
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).clone()


def take_steps(model, loss_fn, batch, optimizer, num_steps):
    for _ in range(num_steps):
        optimizer.zero_grad()
        loss_fn(model(batch[0]), batch[1]).backward()
        optimizer.step()
    return optimizer
