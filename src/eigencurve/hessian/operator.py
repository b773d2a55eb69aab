"""HessianOperator and GaussNewtonOperator: curvature-vector products of a model's loss, without side effects."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, Unpack

import torch
from torch import Tensor, nn

from eigencurve import _check
from eigencurve.hessian.curvature import CurvatureOperator, OperatorOptions, flat
from eigencurve.hessian.custom_functions import wrong_functions
from eigencurve.hessian.isolation import twice_differentiable_kernels
from eigencurve.hessian.objective import Objective, checked_loss, require_unsplit_batch_norm
from eigencurve.hessian.products import GraphProduct, gauss_newton_product, hessian_product, with_hooks_noticed
from eigencurve.hessian.verify import SEED
from eigencurve.hessian.watched import Change, Snapshot

# Parts of PyTorch's messages about kernels that cannot be differentiated twice.
NO_DOUBLE_BACKWARD = (
    "is not implemented", "once_differentiable", "cudnn RNN backward", "does not support double backward",
)  # fmt: skip


class GraphOperator(CurvatureOperator):
    """An operator whose products are backward passes through a graph, which is kept if there is one microbatch."""

    _graph: GraphProduct | None = None
    _snapshot: Snapshot | None = None  # of the model when it last ran
    _plain_kernels = False
    _is_verifying = False
    _functions: frozenset[type] = frozenset()

    def fresh_product(self, vector: Tensor, seed: int, rebuild: bool = True, step: float | None = None) -> Tensor:
        """The product with all random states set to ``seed`` first and, by default, with a new graph.

        ``step`` is the relative step of a finite difference; None is ``difference_step``.
        """
        try:
            if self.product == "finite_difference":
                return super().fresh_product(vector, seed, step=step)
            return self._graph_product(vector, seed, rebuild)
        except (RuntimeError, NotImplementedError) as error:
            if not any(text in str(error) for text in NO_DOUBLE_BACKWARD):
                raise
            if self._plain_kernels or self.product != "autograd":
                remedy = "Use product='finite_difference': it needs a single backward pass and measures its own error."
                line, name = str(error).splitlines()[0], type(self).__name__
                raise _check.ArgumentValueError(name, "model", "differentiable twice", line, remedy) from error
        self._plain_kernels = True
        return self.fresh_product(vector, seed)

    def renew(self) -> None:
        """Forget the kept graph, and read the examples again; each estimate starts with this."""
        self._graph = None
        super().renew()

    def wrong_functions(self) -> dict[str, float]:
        """Custom functions with a wrong double backward, and its relative error; see :func:`wrong_functions`."""
        if not self._functions:
            return {}
        with self._undisturbed():
            return wrong_functions(
                self._functions, lambda: [self._loss(b, i) for i, (_, b) in enumerate(self._batches)]
            )

    @abstractmethod
    def _linearise(self, batch: Any, index: int) -> GraphProduct:
        """Build the graphs of one microbatch and return v -> Hv on it."""

    def _graph_product(self, vector: Tensor, seed: int, rebuild: bool) -> Tensor:
        parts, kept = self._split(vector), None if rebuild else self._graph
        if kept is not None and kept.is_native and not self._plain_kernels:
            with torch.inference_mode(False):
                return flat(kept(parts))
        self._graph = kept
        with self._running(seed if kept is None else None):
            require_unsplit_batch_norm(type(self).__name__, self.model, self._batches)
            total = torch.zeros_like(vector)
            for index, (size, batch) in enumerate(self._batches):
                total.add_(flat(self._product_on(batch, index)(parts)), alpha=size / self.num_examples)
        return total

    def _product_on(self, batch: Any, index: int) -> GraphProduct:
        """Return v -> Hv on one microbatch; the graph of a single one is kept until something changes."""
        if self._graph is not None:
            return self._graph
        if self._batches.num_pieces > 1:
            product = self._linearise(batch, index)
        else:
            product = self._graph = with_hooks_noticed(lambda: self._linearise(batch, index))
        self._functions |= product.functions
        return product

    def _gradient(self, pieces: Iterator[tuple[int, Any]]) -> Tensor:
        total = torch.zeros(self.dim, dtype=self.dtype, device=self.device)
        slots = self._split(total)
        for index, (size, batch) in enumerate(pieces):
            parts = torch.autograd.grad(self._loss(batch, index), self._parameters, materialize_grads=True)
            for slot, part in zip(slots, parts, strict=True):
                slot.add_(part, alpha=size / self.num_examples)
        return total

    @contextmanager
    def _running(self, seed: int | None = SEED) -> Iterator[None]:
        with self._undisturbed(seed), twice_differentiable_kernels(self._plain_kernels, self.device):
            yield
        self._snapshot = self._new_snapshot()  # models may count their calls

    def _notice_changes(self) -> None:
        """Drop the graph if anything that it depends on has changed; repeat the checks if more than values has."""
        super()._notice_changes()
        if self._snapshot is None or self._is_verifying:
            return
        change = self._snapshot.change()
        if change is not Change.NOTHING:
            self._graph = None
        if change is Change.SETTINGS and self.is_checked:
            self.product_error = self._verify()

    def _verify(self) -> float | None:
        self._is_verifying = True
        try:
            error = super()._verify()
        finally:
            self._is_verifying = False
        self._snapshot = self._new_snapshot()
        return error

    def _new_snapshot(self) -> Snapshot:
        return Snapshot(
            self.model,
            self._batches.watched,
            (self._objective.outputs, self._objective.loss),
            with_training=self.mode == "keep",
            with_values=self._graph is not None,
        )


class HessianOperator(GraphOperator):
    r"""Products with the Hessian of the mean loss over all examples.

    .. math:: Hv = \frac1N \sum_b n_b\, \nabla^2 \ell_b(w)\, v, \qquad N = \sum_b n_b

    Batch b has :math:`n_b` examples, so batches of unequal size are weighted by their size. With a single batch, the
    gradient graph is built once and reused for every product; with several, each product builds the graphs one after
    the other. The operator leaves no trace: the model's mode, gradients, buffers and ``requires_grad`` flags, and all
    random states, are the same after a product as before.

    A product always uses the current model, examples and loss, also after training. Everything that the graph depends
    on is compared before each product (:class:`eigencurve.hessian.watched.Snapshot`). If anything other than the values
    of tensors has changed, the checks are repeated.

    Args:
        model: Any module. The parameters that require a gradient count; they must share one real floating type.
        loss_fn: ``loss_fn(model(x), y)``, the *mean* loss of a batch.
        batches: A tuple of tensors (x, y), a list of such pairs, or a DataLoader over a fixed set of examples. A
            shuffled loader is read in one fixed order.
        parameters: File-name pattern of the parameters to use, such as ``"layer3.*"``, or several; None uses all.
        microbatch: Maximum number of examples in memory at a time; None keeps the batches whole.
        mode: ``"eval"``, ``"train"``, or ``"keep"`` to leave every module in its current mode.
        product: ``"autograd"`` (exact, the default) or ``"finite_difference"`` (for models without a double backward).
        count: Function that returns the number of examples over which the loss of a batch is the mean. The default is
            the leading dimension of the first tensor. For a language model, count the labels that are not ignored.
            Microbatches are weighted by their counts, and skipped if the count is zero.
        check: Whether to spend three products on checking that products are deterministic and symmetric, and one pass
            on checking that the loss is a mean. Without it, estimates do not repeat a product at their end.

    Raises:
        ValueError: If there are no trainable parameters or no examples; if the loss is not a finite scalar, or the sum
            over the batch; if products are random (active dropout, for example) or not symmetric; if the model has no
            double backward, or a custom function with a wrong one; if hooks change gradients; if batch norm in train
            mode meets microbatches; or, in a product, if the model's parameters have been replaced.

    >>> import torch
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.zeros(2, 1)
    >>> HessianOperator(model, torch.nn.MSELoss(), (x, y))(torch.tensor([1.0, 1.0]))
    tensor([1., 4.])
    """

    PRODUCTS = ("autograd", "finite_difference")

    def _linearise(self, batch: Any, index: int) -> GraphProduct:
        return hessian_product(self._loss(batch, index), self._parameters)


class GaussNewtonOperator(GraphOperator):
    r"""Products with the Gauss-Newton matrix of the mean loss over all examples.

    .. math:: Gv = \frac1N \sum_b n_b\, J_b^\top \nabla_z^2 \ell_b(z)\, J_b v

    Here z are the model's outputs, which must be one tensor, and :math:`J_b` their derivatives. The matrix is positive
    semi-definite if the loss is convex in z. Arguments and errors are as for :class:`HessianOperator`, except that
    ``product`` must be ``"autograd"``.

    >>> import torch
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.zeros(2, 1)
    >>> GaussNewtonOperator(model, torch.nn.MSELoss(), (x, y))(torch.tensor([1.0, 1.0]))
    tensor([1., 4.])
    """

    @classmethod
    def from_objective(  # type: ignore[override]
        cls,
        model: nn.Module,
        outputs: Callable[[nn.Module, Any], Tensor],
        loss: Callable[[Tensor, Any], Tensor],
        batches: Any,
        **options: Unpack[OperatorOptions],
    ) -> Self:
        """The operator of ``loss(outputs(model, batch), batch)``, with batches of any kind, such as dicts.

        The matrix depends on where the model ends and the loss begins, so the objective is given in two functions. The
        options are the arguments of the class.
        """
        return cls(model, Objective(outputs, loss), batches, **options)

    def _linearise(self, batch: Any, index: int) -> GraphProduct:
        outputs = self._objective.outputs(self.model, batch)
        if not isinstance(outputs, Tensor):
            remedy = "Use GaussNewtonOperator.from_objective to name the tensor that enters the loss."
            got = type(outputs).__name__
            _check.wrong_type("GaussNewtonOperator", "model", "one that returns a tensor", got, remedy)
        loss = self._objective.loss
        return gauss_newton_product(
            outputs, lambda z: checked_loss(type(self).__name__, loss(z, batch), index), self._parameters
        )
