"""CurvatureOperator: what the operators of a model's loss share: examples, isolation, kept graphs, and checks."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, TypedDict

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from eigencurve import _check
from eigencurve.hessian.batches import Batches, Count, generators_of, hash_of_tensors
from eigencurve.hessian.custom_functions import wrong_functions
from eigencurve.hessian.differences import first_step
from eigencurve.hessian.isolation import MODES, generators_in, twice_differentiable_kernels, undisturbed
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
from eigencurve.hessian.products import (
    GraphProduct,
    Product,
    difference_product,
    with_hooks_noticed,
)
from eigencurve.hessian.space import whole_space
from eigencurve.hessian.verify import SEED, verify_operator
from eigencurve.hessian.watched import Change, Snapshot

# Parts of PyTorch's messages about kernels that cannot be differentiated twice.
NO_DOUBLE_BACKWARD = (
    "is not implemented", "once_differentiable", "cudnn RNN backward", "does not support double backward",
)  # fmt: skip


class OperatorOptions(TypedDict, total=False):
    """Keyword options of both operators; :class:`CurvatureOperator` holds their defaults."""

    parameters: str | Iterable[str] | None
    microbatch: int | None
    mode: str
    product: str
    count: Count | None
    check: bool


class CurvatureOperator(ABC):
    """The part that both operators share: examples, parameters, isolation, and the sum over microbatches.

    Attributes:
        dim: Number of parameters d that the operator acts on.
        dtype, device: Type and device of the parameters and of all vectors.
        names: Names of the parameters.
        num_examples: Number of examples in the mean loss.
        num_rows: Number of rows of all batches; it differs from ``num_examples`` if you pass ``count``.
        product_error: Measured relative error of a product with ``product="finite_difference"``, otherwise None.
        difference_step: Step of the finite differences, relative to the length of the vector of all parameters.
    """

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
        product: str = "autograd",
        count: Count | None = None,
        check: bool = True,
    ) -> None:
        name = type(self).__name__
        if not isinstance(model, nn.Module):
            _check.wrong_type(name, "model", "a torch.nn.Module", model)
        self.mode = _check.choice(name, "mode", mode, MODES)
        self.product = _check.choice(name, "product", product, self.PRODUCTS)
        self.model, self._objective = model, as_objective(name, loss_fn)
        self._patterns = [parameters] if isinstance(parameters, str) else None if parameters is None else [*parameters]
        chosen = chosen_parameters(name, model, self._patterns)
        if any(hasattr(parameter, "to_local") for parameter in chosen.values()):
            remedy = "Use ShardedHessianOperator for a model that fully_shard has distributed."
            _check.refuse(name, "model", "one with plain parameters", "distributed tensors (DTensor)", remedy)
        self.names, self._parameters = tuple(chosen), tuple(chosen.values())
        self._sizes = [parameter.numel() for parameter in self._parameters]
        self.dim, self.dtype, self.device = sum(self._sizes), self._parameters[0].dtype, self._parameters[0].device
        self._generators, self._plain_kernels = [*generators_of(batches), *generators_in(model)], False
        self._graph: GraphProduct | None = None
        self._seen: Snapshot | None = None
        self._functions: set[type] = set()
        self.difference_step = first_step(self.dtype)
        with undisturbed(model, self.mode, SEED, self._generators, self.device):
            pairs = not isinstance(loss_fn, Objective)
            self._batches = Batches(name, batches, pairs, self.device, microbatch, count)
            require_unsplit_batch_norm(name, model, self._batches)
        self.num_examples, self.num_pieces = self._batches.num_examples, self._batches.num_pieces
        self.num_rows = self._batches.num_rows
        self.is_checked, self._is_verifying = check, False
        self.product_error = self._verify() if check else None

    def __call__(self, vector: Tensor) -> Tensor:
        """Product of the curvature matrix and ``vector``, a flat tensor of ``dim`` numbers."""
        whole_space(self.dim).require(type(self).__name__, "vector", vector, self.dtype, self.device)
        self._notice_changes()
        return self.fresh_product(vector, SEED, rebuild=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim:,} parameters, {self.num_examples:,} examples)"

    def fresh_product(self, vector: Tensor, seed: int, rebuild: bool = True, step: float | None = None) -> Tensor:
        """The product with all random states set to ``seed`` first and, by default, with a new graph.

        ``step`` is the relative step of a finite difference; None is ``difference_step``.
        """
        if rebuild:
            self._graph = None
        self._step = self.difference_step if step is None else step
        if self._graph is not None and self._graph.is_native and not self._plain_kernels:
            with torch.inference_mode(False):
                return _flat(self._graph(self._parts(vector)))
        is_kept = self._graph is not None
        product = self._isolated_product(vector, None if is_kept else seed)
        if not is_kept:
            self._seen = self._snapshot()
        return product

    def renew(self) -> None:
        """Forget everything that is kept between products, and read the examples again.

        Each estimate starts with this. It includes changes that no comparison can see, such as those of a data set
        behind a loader.
        """
        self._graph = None
        with self._undisturbed():
            self._batches.reread()

    def wrong_functions(self) -> dict[str, float]:
        """Custom functions with a wrong double backward, and its relative error; see :func:`wrong_functions`."""
        if not self._functions:
            return {}
        with self._undisturbed():
            return wrong_functions(
                self._functions, lambda: [self._loss(b, i) for i, (_, b) in enumerate(self._batches)]
            )

    def losses_of_halves(self, seed: int) -> tuple[float, float, float] | None:
        """Loss of the first microbatch, and the weighted mean and the sum of the losses of its two halves.

        None if the microbatch cannot be split, or if the model does not accept a part of it.
        """
        with self._undisturbed(seed), torch.no_grad():
            _, batch = next(iter(self._batches))
            try:
                sizes, halves = zip(*self._batches.halves(batch), strict=True)
                whole, *parts = map(self._plain_loss, (batch, *halves))
            except Exception:  # the checks that follow report what is wrong with the whole microbatch
                return None
        mean = sum(size * loss for size, loss in zip(sizes, parts, strict=True)) / sum(sizes)
        return whole, mean, sum(parts)

    @property
    def is_split(self) -> bool:
        """Whether some batch is cut into several microbatches."""
        return self._batches.num_pieces > self._batches.num_batches

    @property
    def named_parameters(self) -> dict[str, nn.Parameter]:
        """Parameters that the operator acts on, by name, in the order of its vectors."""
        return dict(zip(self.names, self._parameters, strict=True))

    def preconditioned_by(self, preconditioner: Optimizer | Diagonal) -> PreconditionedOperator:
        """Return this operator in the metric of an adaptive optimizer, P^(-1/2) H P^(-1/2).

        The diagonal of P and the weight decay are copied from the optimizer's current state;
        :class:`PreconditionedOperator` explains what becomes of the decay. If parameter groups have different learning
        rates, P includes their ratios to the rate of the first group.

        Args:
            preconditioner: Adam, AdamW, RMSprop or Adagrad of ``torch.optim`` after at least one step. Or the positive
                diagonal of P: a flat tensor, a list of tensors in the order of ``names``, or a mapping from names to
                tensors.

        Raises:
            TypeError: If the optimizer is of another kind.
            ValueError: If the optimizer has no state for a parameter, or if the diagonal is not positive or does not
                fit the parameters.
        """
        return precondition(self, preconditioner, self.named_parameters)

    def fingerprint(self) -> str:
        """Hash of the parameters' values, the examples and all settings."""
        step = f" {self.difference_step}" if self.product == "finite_difference" else ""
        with self._undisturbed():
            examples = self._batches.fingerprint()
        settings = f"{type(self).__name__} {self.mode} {self.product}{step} {examples}"
        return hashlib.sha256(f"{settings} {self.parameter_fingerprint()}".encode()).hexdigest()

    def parameter_fingerprint(self) -> str:
        """Hash of the parameters' names, shapes and values."""
        return hash_of_tensors(self.named_parameters)

    def identity_parts(self) -> dict[str, str]:
        """Hashes of the settings, the parameters, the other parameters of the model, and the data, for checkpoints."""
        with self._undisturbed():
            examples = self._batches.fingerprint()
        return {
            "settings": f"{type(self).__name__} {self.mode} {self.product}",
            "parameters": self.parameter_fingerprint(),
            "frozen weights": hash_of_tensors(other_parameters(self.model, self.names)),
            "data": f"{examples} {self.num_examples}",
        }

    def mean_loss(self) -> float:
        """Mean loss over all examples."""
        self._notice_changes()
        with self._undisturbed(), twice_differentiable_kernels(self._plain_kernels, self.device):
            pieces = enumerate(self._batches)
            total = sum(size * float(self._loss(batch, index).detach()) for index, (size, batch) in pieces)
        return total / self.num_examples

    def gradient(self, rows: Tensor | None = None) -> Tensor:
        r"""Gradient of the mean loss, or the part of it that is due to some of the rows.

        .. math:: g_R = \frac1N \sum_b n_{b \cap R}\, \nabla \ell_{b \cap R}(w)

        The parts of disjoint sets of rows add up to the gradient if the loss of a batch is the mean over its examples.

        Args:
            rows: One boolean for each of the ``num_rows`` rows, in the order of the batches; None is all rows.

        Raises:
            ValueError: If ``rows`` splits a batch and the model has batch norm in train mode.
        """
        self._notice_changes()
        total = torch.zeros(self.dim, dtype=self.dtype, device=self.device)
        slots = self._parts(total)
        with self._undisturbed(), twice_differentiable_kernels(self._plain_kernels, self.device):
            if rows is not None:
                require_separate_examples(type(self).__name__, self.model, self.mode)
            for index, (size, batch) in enumerate(self._batches if rows is None else self._batches.selected(rows)):
                for slot, part in zip(slots, self._gradient(batch, index), strict=True):
                    slot.add_(part, alpha=size / self.num_examples)
        self._seen = self._snapshot()
        return total

    def parameter_vector(self) -> Tensor:
        """Current values of the parameters, as one flat vector."""
        self._require_same_parameters()
        return _flat([parameter.detach() for parameter in self._parameters])

    def min_over_processes(self, value: int) -> int:
        """Minimum of ``value`` over all processes that share the products; here there is one."""
        return value

    @property
    def is_main_process(self) -> bool:
        """Whether this process writes files and shows progress."""
        return True

    @abstractmethod
    def _linearise(self, batch: Any, index: int) -> GraphProduct:
        """Build the graphs of one microbatch and return v -> Hv on it."""

    def _isolated_product(self, vector: Tensor, seed: int | None) -> Tensor:
        with self._undisturbed(seed):
            require_unsplit_batch_norm(type(self).__name__, self.model, self._batches)
            try:
                return self._sum(vector)
            except (RuntimeError, NotImplementedError) as error:
                if not any(text in str(error) for text in NO_DOUBLE_BACKWARD):
                    raise
                return self._retry_with_plain_kernels(vector, error)

    def _sum(self, vector: Tensor) -> Tensor:
        parts, total, index, num_examples = self._parts(vector), torch.zeros_like(vector), -1, 0
        with twice_differentiable_kernels(self._plain_kernels, self.device):
            for index, (size, batch) in enumerate(self._batches):
                num_examples += size
                piece = _flat(self._product_on(batch, index)(parts))
                total = piece if self._is_single else total.add_(piece, alpha=size / self.num_examples)
        self._batches.require_same_number(num_examples, index + 1)
        return total

    @property
    def _is_single(self) -> bool:
        return self.num_pieces == 1

    def _undisturbed(self, seed: int | None = SEED) -> AbstractContextManager[None]:
        return undisturbed(self.model, self.mode, seed, self._generators, self.device)

    def _notice_changes(self) -> None:
        """Drop the graph if anything that it depends on has changed; repeat the checks if more than values has."""
        self._require_same_parameters()
        change = Change.NOTHING if self._seen is None or self._is_verifying else self._seen.change()
        if change is not Change.NOTHING:
            self._graph = None
        if change is Change.SETTINGS and self.is_checked:
            self.product_error = self._verify()

    def _verify(self) -> float | None:
        self._is_verifying = True
        try:
            error = verify_operator(self)
        finally:
            self._is_verifying = False
        self._seen = self._snapshot()  # the checks may have changed counters of the model
        return error

    def _require_same_parameters(self) -> None:
        require_same_parameters(
            type(self).__name__, self.model, self._patterns, self.named_parameters, self.dtype, self.device
        )

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            self.model,
            self._batches.watched,
            (self._objective.outputs, self._objective.loss),
            with_training=self.mode == "keep",
            with_values=self._graph is not None,
        )

    def _parts(self, vector: Tensor) -> list[Tensor]:
        """Views of a flat vector in the parameters' shapes."""
        parts = torch.split_with_sizes(vector, self._sizes)
        return [part.view_as(parameter) for part, parameter in zip(parts, self._parameters, strict=True)]

    def _product_on(self, batch: Any, index: int) -> Product:
        """Return v -> Hv on one microbatch; the graph of a single one is kept until the parameters change."""
        if self.product == "finite_difference":
            return difference_product(lambda: self._gradient(batch, index), self._parameters, self._step)
        if not self._is_single:
            return self._recorded(self._linearise(batch, index))
        if self._graph is None:
            self._graph = self._recorded(with_hooks_noticed(lambda: self._linearise(batch, index)))
        return self._graph

    def _recorded(self, product: GraphProduct) -> GraphProduct:
        self._functions |= product.functions
        return product

    def _loss(self, batch: Any, index: int) -> Tensor:
        outputs = self._objective.outputs(self.model, batch)
        return checked_loss(type(self).__name__, self._objective.loss(outputs, batch), index)

    def _plain_loss(self, batch: Any) -> float:
        return float(self._objective.loss(self._objective.outputs(self.model, batch), batch))

    def _gradient(self, batch: Any, index: int) -> Sequence[Tensor]:
        return torch.autograd.grad(self._loss(batch, index), self._parameters, materialize_grads=True)

    def _retry_with_plain_kernels(self, vector: Tensor, error: Exception) -> Tensor:
        name, self._graph = type(self).__name__, None
        if self._plain_kernels or self.product != "autograd":
            remedy = "Use product='finite_difference': it needs a single backward pass and measures its own error."
            line = str(error).splitlines()[0]
            raise _check.ArgumentValueError(name, "model", "differentiable twice", line, remedy) from error
        self._plain_kernels = True
        try:
            return self._sum(vector)
        except (RuntimeError, NotImplementedError) as again:
            return self._retry_with_plain_kernels(vector, again)


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.reshape(-1) for part in parts])
