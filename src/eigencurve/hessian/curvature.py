"""CurvatureOperator: the shared part of all operators of a model's loss, from their arguments to their gradients."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, Self, TypedDict, Unpack

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from eigencurve import _check
from eigencurve.hessian.batches import Batches, Count, generators_of, hash_of_tensors
from eigencurve.hessian.differences import central_difference, first_step
from eigencurve.hessian.identity import joined_hashes
from eigencurve.hessian.isolation import MODES, generators_in, undisturbed
from eigencurve.hessian.objective import (
    Objective,
    as_objective,
    checked_loss,
    chosen_parameters,
    other_parameters,
    require_same_parameters,
    require_separate_examples,
    require_unsplit_batch_norm,
)
from eigencurve.hessian.preconditioned import Diagonal, PreconditionedOperator, precondition
from eigencurve.hessian.space import Space, own_part, whole_space
from eigencurve.hessian.verify import SEED, verify_operator


class OperatorOptions(TypedDict, total=False):
    """Keyword options of all operators; :class:`CurvatureOperator` holds their defaults."""

    parameters: str | Iterable[str] | None
    microbatch: int | None
    mode: str
    product: str | None
    count: Count | None
    check: bool


class CurvatureOperator(ABC):
    """The curvature of a mean loss; a subclass adds the gradient and, if it has any, exact products.

    Attributes:
        dim: Number of parameters d that the operator acts on.
        dtype, device: Type and device of the parameters and of all vectors.
        space: The vectors, and the part of them that this process holds.
        names: Names of the parameters.
        named_parameters: The parameters by name, in the order of the vectors.
        num_examples: Number of examples in the mean loss.
        num_rows: Number of rows of all batches; it differs from ``num_examples`` if you pass ``count``.
        product_error: Measured relative error of a product by finite differences, otherwise None.
        difference_step: Step of the finite differences, relative to the length of the vector of all parameters.
    """

    # Kinds of products; the first is the default.
    PRODUCTS: ClassVar[tuple[str, ...]] = ("autograd",)

    def __init__(
        self,
        model: nn.Module,
        loss_fn: Callable[[Any, Any], Tensor] | Objective,
        batches: Any,
        *,
        parameters: str | Iterable[str] | None = None,
        microbatch: int | None = None,
        mode: str = "eval",
        product: str | None = None,
        count: Count | None = None,
        check: bool = True,
    ) -> None:
        name = type(self).__name__
        if not isinstance(model, nn.Module):
            _check.wrong_type(name, "model", "a torch.nn.Module", model)
        self.mode = _check.choice(name, "mode", mode, MODES)
        self.product = _check.choice(name, "product", product or self.PRODUCTS[0], self.PRODUCTS)
        self.model, self._objective = model, as_objective(name, loss_fn)
        self._patterns = ["*"] if parameters is None else [parameters] if isinstance(parameters, str) else [*parameters]
        self.named_parameters = chosen_parameters(name, model, self._patterns)
        self.space = self._space()
        self.names, self.dim = tuple(self.named_parameters), self.space.dim
        self.dtype, self.device = self._parameters[0].dtype, self._parameters[0].device
        self._generators = [*generators_of(batches), *generators_in(model)]
        with self._undisturbed():
            pairs = not isinstance(loss_fn, Objective)
            self._batches = Batches(name, batches, pairs, self.device, microbatch, count)
            require_unsplit_batch_norm(name, model, self._batches)
        self._rows = self.space.gather(self._batches.num_rows)
        self.num_rows, self.num_examples = sum(self._rows), sum(self.space.gather(self._batches.num_examples))
        self.is_checked, self.difference_step = check, first_step(self.dtype)
        self.product_error = self._verify() if check else None

    @classmethod
    def from_objective(
        cls,
        model: nn.Module,
        objective: Callable[[nn.Module, Any], Tensor],
        batches: Any,
        **options: Unpack[OperatorOptions],
    ) -> Self:
        """The operator of ``objective(model, batch)``, a mean loss, with batches of any kind, such as dicts.

        Use it for a model that returns its own loss: ``lambda model, batch: model(**batch).loss``. If that loss is not
        a mean over rows, also pass ``count``. The options are the arguments of the class.
        """
        return cls(model, Objective(outputs=objective, loss=lambda loss, _batch: loss), batches, **options)

    def __call__(self, vector: Tensor) -> Tensor:
        """Product of the curvature matrix and ``vector``, a flat tensor of ``dim`` numbers, or this process's part."""
        self.space.require(type(self).__name__, "vector", vector, self.dtype, self.device)
        self._notice_changes()
        return self.fresh_product(vector, SEED, rebuild=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim:,} parameters, {self.num_examples:,} examples)"

    def fresh_product(
        self,
        vector: Tensor,
        seed: int,
        rebuild: bool = True,  # noqa: ARG002 -- see GraphOperator
        step: float | None = None,
    ) -> Tensor:
        r"""The product with all random states set to ``seed`` first; here by central differences of the gradient.

        .. math:: Hv \approx \frac{\nabla\ell(w + hv) - \nabla\ell(w - hv)}{2h}, \qquad
                  h = \text{step}\,\frac{1 + \|w\|}{\|v\|}

        Args:
            vector: The vector v.
            seed: Seed of all random states.
            rebuild: Whether to drop a kept graph first; differences have none.
            step: Relative step; None is ``difference_step``.
        """
        length = self.space.norm(vector)
        if length == 0:
            return torch.zeros_like(vector)
        h = (self.difference_step if step is None else step) * (1 + self.space.norm(self.parameter_vector())) / length

        def gradient_at(shift: float) -> Tensor:
            with self._shifted(vector, shift), self._running(seed):
                require_unsplit_batch_norm(type(self).__name__, self.model, self._batches)
                return self._gradient(iter(self._batches))

        return central_difference(gradient_at, h)

    def renew(self) -> None:
        """Forget everything that is kept between products, and read the examples again.

        Each estimate starts with this. It includes changes that no comparison can see, such as other examples behind
        a loader.
        """
        with self._undisturbed():
            self._batches.reread()

    def gradient(self, rows: Tensor | None = None) -> Tensor:
        r"""Gradient of the mean loss, or the part of it that is due to some of the rows.

        .. math:: g_R = \frac1N \sum_b n_{b \cap R}\, \nabla \ell_{b \cap R}(w)

        The parts of disjoint sets of rows add up to the gradient if the loss of a batch is the mean over its examples.

        Args:
            rows: One boolean for each of the ``num_rows`` rows, in the order of the batches, and of the ranks of the
                processes; None is all rows.

        Raises:
            ValueError: If ``rows`` splits a batch and the model has batch norm in train mode.
        """
        self._notice_changes()
        with self._running():
            if rows is None:
                return self._gradient(iter(self._batches))
            require_separate_examples(type(self).__name__, self.model, self.mode)
            first = sum(self._rows[: self.space.rank])
            return self._gradient(self._batches.selected(rows[first : first + self._batches.num_rows]))

    def mean_loss(self) -> float:
        """Mean loss over all examples."""
        self._notice_changes()
        with self._running():
            pieces = enumerate(self._batches)
            total = sum(size * float(self._loss(batch, index).detach()) for index, (size, batch) in pieces)
        return float(total / self.num_examples)

    def parameter_vector(self) -> Tensor:
        """Current values of the parameters, as one flat vector, or this process's part of it."""
        self._require_same_parameters()
        return flat(self._own_parts())

    def preconditioned_by(self, preconditioner: Optimizer | Diagonal) -> PreconditionedOperator:
        """Return this operator in the metric of an adaptive optimizer, P^(-1/2) H P^(-1/2).

        The diagonal of P and the weight decay are copied from the optimizer's current state;
        :class:`PreconditionedOperator` explains how the decay enters. If parameter groups have different learning
        rates, P includes their ratios to the rate of the first group.

        Args:
            preconditioner: Adam, AdamW, RMSprop or Adagrad of ``torch.optim`` after at least one step. Or the positive
                diagonal of P: a flat tensor, a list of tensors in the order of ``names``, or a mapping from names to
                tensors. A flat tensor may also be this process's part of the diagonal.

        Raises:
            TypeError: If the optimizer is of another kind.
            ValueError: If the optimizer has no state for a parameter, or if the diagonal is not positive or does not
                fit the parameters.
        """
        return precondition(self, preconditioner, self.named_parameters)

    def losses_of_halves(self, seed: int) -> tuple[float, float, float] | None:
        """Loss of the first microbatch, and the weighted mean and the sum of the losses of its two halves.

        None if the microbatch cannot be split, or if the model does not accept a part of it.
        """
        with self._undisturbed(seed), torch.no_grad():
            _, batch = next(iter(self._batches))
            halves = self._batches.halves(batch)
            if self.min_over_processes(len(halves)) < 2:
                return None
            try:
                whole, *parts = (self._plain_loss(each) for each in (batch, *(half for _, half in halves)))
            except Exception:  # later checks report errors of the whole microbatch
                return None
        mean = sum(size * loss for (size, _), loss in zip(halves, parts, strict=True)) / sum(n for n, _ in halves)
        return whole, mean, sum(parts)

    def wrong_functions(self) -> dict[str, float]:
        """Custom functions with a wrong double backward, and its relative error; differences need none."""
        return {}

    @property
    def is_split(self) -> bool:
        """Whether some batch is cut into several microbatches."""
        return self._batches.is_split

    def min_over_processes(self, value: int) -> int:
        """Minimum of ``value`` over all processes that share the vectors."""
        return int(min(self.space.gather(value)))

    @property
    def is_main_process(self) -> bool:
        """Whether this process shows progress and, if it holds whole vectors, writes files."""
        return self.space.rank == 0

    def fingerprint(self) -> str:
        """Hash of the parameters' values, the examples and all settings, as checkpoints of earlier releases have it."""
        step = f" {self.difference_step}" if self.product == "finite_difference" else ""
        text = f"{self._settings()}{step} {self._examples_hash()} {self.parameter_fingerprint()}"
        hashes = self.space.gather(hashlib.sha256(text.encode()).hexdigest())
        return hashlib.sha256(" ".join(hashes).encode()).hexdigest() if self.space.is_shared else str(hashes[0])

    def parameter_fingerprint(self) -> str:
        """Hash of the names, shapes and values of the parameters that this process holds."""
        return hash_of_tensors(dict(zip(self.names, self._own_parts(), strict=True)))

    def identity_parts(self) -> dict[str, str]:
        """Hashes of the settings, the parameters, the other parameters of the model, and the data, for checkpoints."""
        parts = {
            "settings": self._settings(),
            "parameters": self.parameter_fingerprint(),
            "frozen weights": hash_of_tensors(other_parameters(self.model, self.names)),
            "data": f"{self._examples_hash()} {self._batches.num_examples}",
        }
        return joined_hashes(self.space.gather(parts)) if self.space.is_shared else parts

    @abstractmethod
    def _gradient(self, pieces: Iterator[tuple[int, Any]]) -> Tensor:
        """Gradient of the mean loss over ``pieces``, times their share of all examples."""

    def _space(self) -> Space:
        """The vectors of the chosen parameters, all of which this process holds."""
        if any(hasattr(parameter, "to_local") for parameter in self._parameters):
            remedy = "Use ShardedHessianOperator for a model that fully_shard has distributed."
            got = "distributed tensors (DTensor)"
            _check.refuse(type(self).__name__, "model", "one with plain parameters", got, remedy)
        return whole_space(sum(parameter.numel() for parameter in self._parameters))

    @contextmanager
    def _shifted(self, vector: Tensor, shift: float) -> Iterator[None]:
        """Point the parameters to copies moved by ``shift · vector``; the originals are never written to."""
        originals = [parameter.data for parameter in self._parameters]
        try:
            for parameter, part in zip(self._parameters, self._split(vector), strict=True):
                parameter.data = torch.add(parameter.data, part, alpha=shift)
            yield
        finally:
            for parameter, original in zip(self._parameters, originals, strict=True):
                parameter.data = original

    def _undisturbed(self, seed: int | None = SEED) -> AbstractContextManager[None]:
        return undisturbed(self.model, self.mode, seed, self._generators, self.device)

    def _running(self, seed: int | None = SEED) -> AbstractContextManager[None]:
        """Run a block that differentiates the model."""
        return self._undisturbed(seed)

    def _notice_changes(self) -> None:
        """Refuse other parameters, and drop a graph that a change of the model, the examples or the loss made wrong."""
        self._require_same_parameters()

    def _verify(self) -> float | None:
        return verify_operator(self)

    def _require_same_parameters(self) -> None:
        require_same_parameters(
            type(self).__name__, self.model, self._patterns, self.named_parameters, self.dtype, self.device
        )

    @property
    def _parameters(self) -> tuple[nn.Parameter, ...]:
        return tuple(self.named_parameters.values())

    def _own_parts(self) -> list[Tensor]:
        """The parameters, or this process's parts of them, which share their memory."""
        return [own_part(parameter.detach()) for parameter in self._parameters]

    def _split(self, vector: Tensor) -> list[Tensor]:
        """Views of a flat vector in the shapes of the parameters."""
        parts = self._own_parts()
        pieces = torch.split_with_sizes(vector, [part.numel() for part in parts])
        return [piece.view_as(part) for piece, part in zip(pieces, parts, strict=True)]

    def _loss(self, batch: Any, index: int) -> Tensor:
        loss = self._objective.loss(self._objective.outputs(self.model, batch), batch)
        return checked_loss(type(self).__name__, loss, index)

    def _plain_loss(self, batch: Any) -> float:
        return float(self._objective.loss(self._objective.outputs(self.model, batch), batch))

    def _settings(self) -> str:
        """The settings that identify the operator in a checkpoint."""
        return f"{type(self).__name__} {self.mode} {self.product}"

    def _examples_hash(self) -> str:
        with self._undisturbed():
            return self._batches.fingerprint()


def flat(parts: Sequence[Tensor]) -> Tensor:
    """The numbers of all parts, one after the other."""
    return torch.cat([part.reshape(-1) for part in parts])
