"""HessianOperator and GaussNewtonOperator: v -> Hv of a model's loss, leaving the model as it was."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from eigencurve import _check
from eigencurve.hessian.batches import Batches, Count, generators_of, tensor_bytes
from eigencurve.hessian.isolation import MODES, twice_differentiable_kernels, undisturbed
from eigencurve.hessian.objective import Objective, as_objective, chosen_parameters, require_whole_statistics
from eigencurve.hessian.products import Product, difference_product, gauss_newton_product, hessian_product
from eigencurve.hessian.verify import SEED, verify_operator

PRODUCTS = ("autograd", "finite_difference")
# What PyTorch's messages say where a kernel cannot be differentiated twice.
ONCE_ONLY = ("is not implemented", "once_differentiable", "cudnn RNN backward", "does not support double backward")


class CurvatureOperator(ABC):
    """What the two operators share: examples, parameters, isolation, and the sum over microbatches.

    Attributes:
        dim: the number of parameters d that the operator acts on.
        dtype, device: of the parameters, and of the vectors.
        names: the parameters' names.
        num_examples: how many examples the loss is the mean of.
        product_error: with ``product="finite_difference"``, the measured relative error of a product; else None.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        batches: Any,
        *,
        pairs: bool,
        parameters: str | Iterable[str] | None,
        microbatch: int | None,
        mode: str,
        product: str,
        count: Count | None,
        check: bool,
    ) -> None:
        name = type(self).__name__
        if not isinstance(model, nn.Module):
            raise TypeError(_check.sentence(name, "model", "a torch.nn.Module", model))
        self.mode = _check.choice(name, "mode", mode, MODES)
        self.product = _check.choice(name, "product", product, PRODUCTS)
        self.model, self._objective = model, objective
        chosen = chosen_parameters(name, model, parameters)
        self.names, self._parameters = tuple(chosen), tuple(chosen.values())
        self._sizes = [parameter.numel() for parameter in self._parameters]
        self.dim, self.dtype, self.device = sum(self._sizes), self._parameters[0].dtype, self._parameters[0].device
        self._generators, self._plain = generators_of(batches), False
        self._kept: tuple[Any, Product] | None = None
        with undisturbed(model, self.mode, SEED, self._generators, self.device):
            self._batches = Batches(name, batches, pairs, self.device, microbatch, count)
            require_whole_statistics(name, model, self._batches)
        self.num_examples, self.num_pieces = self._batches.num_examples, self._batches.num_pieces
        self.product_error: float | None = None
        if check:
            self.product_error = verify_operator(self)

    def __call__(self, vector: Tensor) -> Tensor:
        """The curvature times ``vector``, a flat tensor of ``dim`` numbers."""
        self._require(vector)
        return self.fresh_product(vector, SEED, rebuild=False)

    def fresh_product(self, vector: Tensor, seed: int, rebuild: bool = True, widen: float = 1.0) -> Tensor:
        """The same with the random states set to ``seed`` first and, by default, the graph built anew.

        ``widen`` multiplies the step of a finite difference; nothing else depends on it.
        """
        if rebuild:
            self._kept = None
        self._step = widen * float(torch.finfo(self.dtype).eps ** (1 / 3))
        with undisturbed(self.model, self.mode, seed, self._generators, self.device):
            try:
                return self._sum(vector)
            except (RuntimeError, NotImplementedError) as error:
                if not any(text in str(error) for text in ONCE_ONLY):
                    raise
                return self._without_fast_kernels(vector, error)

    def fingerprint(self) -> str:
        """A hash of the parameters' values, the examples and all settings: equal for equal problems only."""
        settings = f"{type(self).__name__} {self.mode} {self.product} {self._batches.fingerprint}"
        return hashlib.sha256(f"{settings} {self.parameter_fingerprint()}".encode()).hexdigest()

    def parameter_fingerprint(self) -> str:
        """A hash of the parameters' names, shapes and values."""
        digest = hashlib.sha256(" ".join(self.names).encode())
        for parameter in self._parameters:
            digest.update(f"{parameter.dtype} {tuple(parameter.shape)}".encode())
            digest.update(tensor_bytes(parameter))
        return digest.hexdigest()

    def smallest(self, value: int) -> int:
        """The smallest ``value`` of all processes that share the products; here there is one."""
        return value

    @property
    def leads(self) -> bool:
        """Whether this process writes files and draws progress; of several, the first does."""
        return True

    @abstractmethod
    def _linearise(self, batch: Any, place: int) -> Product:
        """Make v -> Hv on one microbatch, from graphs that are built here."""

    def _sum(self, vector: Tensor) -> Tensor:
        total = torch.zeros_like(vector)
        parts, slots = self._parts(vector), self._parts(total)
        with twice_differentiable_kernels(self._plain, self.device):
            for place, (size, batch) in enumerate(self._batches):
                product = self._product_on(batch, place)
                for slot, part in zip(slots, product(parts), strict=True):
                    slot.add_(part, alpha=size / self.num_examples)
        return total

    def _parts(self, vector: Tensor) -> list[Tensor]:
        """Views of a flat vector in the parameters' shapes."""
        parts = torch.split_with_sizes(vector, self._sizes)
        return [part.view_as(parameter) for part, parameter in zip(parts, self._parameters, strict=True)]

    def _product_on(self, batch: Any, place: int) -> Product:
        """The graphs of a single batch are kept until the parameters change; those of several are not.

        The step of a finite difference is the cube root of the rounding error, which balances it with the
        truncation error of a central difference.
        """
        if self.product == "finite_difference":
            return difference_product(lambda: self._gradient(batch, place), self._parameters, self._step)
        if self.num_pieces > 1:
            return self._linearise(batch, place)
        state = [(parameter.data_ptr(), parameter._version) for parameter in self._parameters]
        if self._kept is None or self._kept[0] != state:
            self._kept = None  # free the old graph before the new one is built
            self._kept = (state, self._linearise(batch, place))
        return self._kept[1]

    def _gradient(self, batch: Any, place: int) -> Sequence[Tensor]:
        loss = self._checked(self._objective.loss(self._objective.outputs(self.model, batch), batch), place)
        return torch.autograd.grad(loss, self._parameters, materialize_grads=True)

    def _without_fast_kernels(self, vector: Tensor, error: Exception) -> Tensor:
        name, self._kept = type(self).__name__, None
        remedy = "Ask for product='finite_difference', which needs one backward pass only and measures its own error."
        if self._plain or self.product != "autograd":
            raise ValueError(
                _check.sentence(name, "model", "differentiable twice", str(error).splitlines()[0], remedy)
            ) from error
        self._plain = True
        try:
            return self._sum(vector)
        except (RuntimeError, NotImplementedError) as again:
            return self._without_fast_kernels(vector, again)

    def _checked(self, loss: Any, place: int) -> Tensor:
        name = type(self).__name__
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            got = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else loss
            _check.refuse(name, "loss_fn", "a scalar: the mean over the batch", got, "Use reduction='mean'.")
        if not loss.requires_grad:
            _check.refuse(name, "loss_fn", "a function of the parameters", "a loss without a gradient")
        if not bool(torch.isfinite(loss)):
            _check.refuse(name, "loss_fn", "finite", loss.item(), f"It is the loss of microbatch {place}.")
        return loss.reshape(())

    def _require(self, vector: Tensor) -> None:
        name = type(self).__name__
        if not isinstance(vector, Tensor):
            raise TypeError(_check.sentence(name, "vector", "a tensor", vector))
        if vector.shape != (self.dim,) or vector.dtype != self.dtype or vector.device != self.device:
            need = f"a tensor of {self.dim} numbers of type {self.dtype} on {self.device}"
            got = f"shape {tuple(vector.shape)}, {vector.dtype}, {vector.device}"
            _check.refuse(name, "vector", need, got)


class HessianOperator(CurvatureOperator):
    r"""Products with the Hessian of the mean loss over all examples.

    .. math:: Hv = \frac1N \sum_b n_b\, \nabla^2 \ell_b(w)\, v, \qquad N = \sum_b n_b

    with :math:`n_b` examples in batch b, so batches of unequal size are weighted by it. With a single batch the
    gradient graph is built once and used for every product; with more, each product builds them one after the
    other. The model's mode, gradients, buffers and requires_grad and all random states stay as they were.

    Args:
        model: any module; its parameters that require a gradient count, all of one real floating type.
        loss_fn: ``loss_fn(model(x), y)``, the *mean* over the batch.
        batches: a tuple of tensors (x, y); a list of such pairs; or a DataLoader of them, with a fixed set of
            examples. A shuffled loader is read in one fixed order.
        parameters: a pattern as for file names, such as ``"layer3.*"``, or several; None takes all.
        microbatch: the most examples in memory at a time; None leaves the batches whole.
        mode: ``"eval"``; ``"train"``; or ``"keep"``, every module as it is.
        product: ``"autograd"``, exact; or ``"finite_difference"``, for models without a double backward.
        count: over how many examples the loss of a batch is the mean, where that is not the first tensor's leading
            dimension: for a language model, the number of labels that are not ignored. Of microbatches with unequal
            counts each has its weight; one with none is left out.
        check: whether to spend three products on seeing that the same v gives the same Hv and that H is symmetric.

    Raises:
        ValueError: no trainable parameters, no examples, a loss that is not a finite scalar, active dropout or
            any other randomness, an asymmetric product, no double backward, or batch norm in train mode with
            microbatches.

    >>> import torch
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.zeros(2, 1)
    >>> HessianOperator(model, torch.nn.MSELoss(), (x, y))(torch.tensor([1.0, 1.0]))
    tensor([1., 4.])
    """

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
        super().__init__(
            model, as_objective(loss_fn), batches, pairs=not isinstance(loss_fn, Objective), parameters=parameters,
            microbatch=microbatch, mode=mode, product=product, count=count, check=check,
        )  # fmt: skip

    @classmethod
    def from_objective(
        cls,
        model: nn.Module,
        objective: Callable[[nn.Module, Any], Tensor],
        batches: Any,
        *,
        parameters: str | Iterable[str] | None = None,
        microbatch: int | None = None,
        mode: str = "eval",
        product: str = "autograd",
        count: Count | None = None,
        check: bool = True,
    ) -> HessianOperator:
        """The same for ``objective(model, batch)``, a mean loss, and batches of any kind, such as dicts.

        For a model that returns its own loss: ``lambda model, batch: model(**batch).loss``, with ``count`` where that
        is the mean over something else than rows.
        """
        halves = Objective(outputs=objective, loss=lambda loss, _batch: loss)
        return cls(
            model, halves, batches, parameters=parameters, microbatch=microbatch, mode=mode, product=product,
            count=count, check=check,
        )  # fmt: skip

    def _linearise(self, batch: Any, place: int) -> Product:
        loss = self._objective.loss(self._objective.outputs(self.model, batch), batch)
        return hessian_product(self._checked(loss, place), self._parameters)


class GaussNewtonOperator(CurvatureOperator):
    r"""Products with the Gauss-Newton matrix of the mean loss over all examples.

    .. math:: Gv = \frac1N \sum_b n_b\, J_b^\top \nabla_z^2 \ell_b(z)\, J_b v

    where z are the model's outputs and :math:`J_b` their derivatives. It is positive semi-definite for a convex
    loss. Arguments and errors are those of :class:`HessianOperator`; the outputs must be one tensor.

    >>> import torch
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.zeros(2, 1)
    >>> GaussNewtonOperator(model, torch.nn.MSELoss(), (x, y))(torch.tensor([1.0, 1.0]))
    tensor([1., 4.])
    """

    def __init__(
        self,
        model: nn.Module,
        loss_fn: Callable[[Any, Any], Tensor] | Objective,
        batches: Any,
        *,
        parameters: str | Iterable[str] | None = None,
        microbatch: int | None = None,
        mode: str = "eval",
        count: Count | None = None,
        check: bool = True,
    ) -> None:
        super().__init__(
            model, as_objective(loss_fn), batches, pairs=not isinstance(loss_fn, Objective), parameters=parameters,
            microbatch=microbatch, mode=mode, product="autograd", count=count, check=check,
        )  # fmt: skip

    @classmethod
    def from_objective(
        cls,
        model: nn.Module,
        outputs: Callable[[nn.Module, Any], Tensor],
        loss: Callable[[Tensor, Any], Tensor],
        batches: Any,
        *,
        parameters: str | Iterable[str] | None = None,
        microbatch: int | None = None,
        mode: str = "eval",
        count: Count | None = None,
        check: bool = True,
    ) -> GaussNewtonOperator:
        """The same for ``loss(outputs(model, batch), batch)`` and batches of any kind, such as dicts.

        The matrix depends on where the model ends and the loss begins, so it takes the objective in these halves.
        """
        return cls(
            model, Objective(outputs, loss), batches, parameters=parameters, microbatch=microbatch, mode=mode,
            count=count, check=check,
        )  # fmt: skip

    def _linearise(self, batch: Any, place: int) -> Product:
        outputs = self._objective.outputs(self.model, batch)
        if not isinstance(outputs, Tensor):
            remedy = "Name the tensor that the loss starts from with GaussNewtonOperator.from_objective."
            got = type(outputs).__name__
            raise TypeError(_check.sentence("GaussNewtonOperator", "model", "one that returns a tensor", got, remedy))
        _loss, product = gauss_newton_product(
            outputs, lambda z: self._checked(self._objective.loss(z, batch), place), self._parameters
        )
        return product
