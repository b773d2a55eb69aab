"""HessianOperator and GaussNewtonOperator: curvature-vector products of a model's loss, without side effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, Unpack

from torch import Tensor, nn

from eigencurve import _check
from eigencurve.hessian.curvature import CurvatureOperator, OperatorOptions
from eigencurve.hessian.objective import Objective, checked_loss
from eigencurve.hessian.products import GraphProduct, gauss_newton_product, hessian_product


class HessianOperator(CurvatureOperator):
    r"""Products with the Hessian of the mean loss over all examples.

    .. math:: Hv = \frac1N \sum_b n_b\, \nabla^2 \ell_b(w)\, v, \qquad N = \sum_b n_b

    Batch b has :math:`n_b` examples, so batches of unequal size are weighted by their size. With a single batch, the
    gradient graph is built once and reused for every product; with several, each product builds the graphs one after
    the other. The operator leaves no trace: the model's mode, gradients, buffers and ``requires_grad`` flags, and all
    random states, are the same after a product as before.

    A product is that of the model, the examples and the loss as they are now, also after training. What the graph
    depends on is compared before each product (:class:`eigencurve.hessian.watched.Snapshot`). If other things than the
    values of tensors have changed, the checks are repeated.

    Args:
        model: Any module. The parameters that require a gradient count; they must share one real floating type.
        loss_fn: ``loss_fn(model(x), y)``, the *mean* loss of a batch.
        batches: A tuple of tensors (x, y), a list of such pairs, or a DataLoader over a fixed set of examples. A
            shuffled loader is read in one fixed order.
        parameters: File-name pattern of the parameters to use, such as ``"layer3.*"``, or several; None uses all.
        microbatch: Maximum number of examples in memory at a time; None keeps the batches whole.
        mode: ``"eval"``, ``"train"``, or ``"keep"`` to leave every module in its current mode.
        product: ``"autograd"`` (exact) or ``"finite_difference"`` (for models without a double backward).
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
        a mean over rows, also pass ``count``. The options are those of the class.
        """
        halves = Objective(outputs=objective, loss=lambda loss, _batch: loss)
        return cls(model, halves, batches, **options)

    def _linearise(self, batch: Any, index: int) -> GraphProduct:
        return hessian_product(self._loss(batch, index), self._parameters)


class GaussNewtonOperator(CurvatureOperator):
    r"""Products with the Gauss-Newton matrix of the mean loss over all examples.

    .. math:: Gv = \frac1N \sum_b n_b\, J_b^\top \nabla_z^2 \ell_b(z)\, J_b v

    Here z are the model's outputs, which must be one tensor, and :math:`J_b` their derivatives. The matrix is positive
    semi-definite if the loss is convex in z. Arguments and errors are those of :class:`HessianOperator`, except that
    ``product`` must be ``"autograd"``.

    >>> import torch
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.zeros(2, 1)
    >>> GaussNewtonOperator(model, torch.nn.MSELoss(), (x, y))(torch.tensor([1.0, 1.0]))
    tensor([1., 4.])
    """

    @classmethod
    def from_objective(
        cls,
        model: nn.Module,
        outputs: Callable[[nn.Module, Any], Tensor],
        loss: Callable[[Tensor, Any], Tensor],
        batches: Any,
        **options: Unpack[OperatorOptions],
    ) -> Self:
        """The operator of ``loss(outputs(model, batch), batch)``, with batches of any kind, such as dicts.

        The matrix depends on where the model ends and the loss begins, so the objective is given in two functions. The
        options are those of the class.
        """
        return cls(model, Objective(outputs, loss), batches, **options)

    def _linearise(self, batch: Any, index: int) -> GraphProduct:
        outputs = self._objective.outputs(self.model, batch)
        if not isinstance(outputs, Tensor):
            remedy = "Use GaussNewtonOperator.from_objective to name the tensor that enters the loss."
            got = type(outputs).__name__
            _check.wrong_type("GaussNewtonOperator", "model", "one that returns a tensor", got, remedy)
        return gauss_newton_product(
            outputs,
            lambda z: checked_loss(type(self).__name__, self._objective.loss(z, batch), index),
            self._parameters,
        )
