"""The problems on which predictions are compared with real runs: a model, its loss, its data and where runs start."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from eigencurve.hessian import HessianOperator
from paper.ridge.experiment import RidgeProblem

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Training of a model by SGD on independently drawn examples.

    .. math:: f(w) = \frac1n\sum_i \ell_i(w) + \tfrac12\,\text{weight decay}\,\|w\|^2
    """

    name: str  # name in the store and in file names
    title: str  # name on the page
    model: nn.Module  # model; its own weights are not used
    loss_fn: Loss  # mean loss of a batch, without weight decay
    inputs: Tensor  # inputs of all examples
    labels: Tensor  # labels of all examples
    weight_decay: float  # weight decay
    batch_size: int  # number of examples per step
    end: Tensor  # flat weights of the minimum, or of the end of an earlier run
    starts: Mapping[str, Tensor]  # flat weights that runs start from, by name; the first is the usual start
    is_minimum: bool = True  # whether ``end`` is a minimum
    # The same problem for the compiled SGD of ridge regression, if it is one.
    ridge: RidgeProblem | None = field(default=None, repr=False)

    @property
    def dim(self) -> int:
        """Number of parameters d."""
        return self.end.numel()

    @property
    def first(self) -> str:
        """Name of the usual start."""
        return next(iter(self.starts))

    @cached_property
    def end_loss(self) -> float:
        """The loss f at ``end``."""
        return self.loss(self.end)

    def batch_loss(self, weights: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
        """Mean loss of a batch at flat weights, without weight decay."""
        named = dict(self.model.named_parameters())
        parts = torch.split(weights, [parameter.numel() for parameter in named.values()])
        values = {n: part.view_as(p) for (n, p), part in zip(named.items(), parts, strict=True)}
        return self.loss_fn(functional_call(self.model, values, (inputs,)), labels)

    def objective(self, weights: Tensor) -> Tensor:
        """The loss f at flat weights."""
        return self.batch_loss(weights, self.inputs, self.labels) + 0.5 * self.weight_decay * weights @ weights

    def loss(self, weights: Tensor) -> float:
        """The loss f at flat weights, as a number."""
        with torch.no_grad():
            return float(self.objective(weights))

    def excess(self, weights: Tensor) -> float:
        """The loss f at flat weights, minus that at ``end``."""
        return self.loss(weights) - self.end_loss

    def operator_at(self, weights: Tensor) -> HessianOperator:
        """The Hessian of the mean loss, without weight decay, at flat weights."""
        model = copy.deepcopy(self.model)
        vector_to_parameters(weights.detach().clone(), model.parameters())
        return HessianOperator(model, self.loss_fn, (self.inputs, self.labels))

    @cached_property
    def digest(self) -> str:
        """A hash of everything that runs depend on."""
        found = hashlib.sha256(f"{self.name} {self.weight_decay!r} {self.batch_size}".encode())
        for tensor in (self.inputs, self.labels, self.end, *self.starts.values()):
            found.update(tensor.detach().contiguous().numpy().tobytes())
        return found.hexdigest()[:12]


def flat_weights(model: nn.Module) -> Tensor:
    """The parameters of a model as one flat vector."""
    return parameters_to_vector(model.parameters()).detach()
