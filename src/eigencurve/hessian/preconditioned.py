"""PreconditionedOperator: the curvature as an adaptive optimizer sees it, in the metric of its preconditioner."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer

from eigencurve import _check
from eigencurve.hessian.adaptive import AdaptiveState, read_optimizer
from eigencurve.hessian.batches import tensor_bytes
from eigencurve.hessian.identity import parts_of
from eigencurve.hessian.lanczos import LanczosOperator, renew_operator
from eigencurve.hessian.space import own_part, space_of

# A positive diagonal: a flat vector, or one tensor per parameter, by name or in the order of the operator.
Diagonal = Tensor | NDArray[Any] | Mapping[str, Tensor] | Sequence[Tensor]


class PreconditionedOperator:
    r"""Products with :math:`P^{-1/2} H P^{-1/2}`, for :func:`estimate_spectrum`.

    An adaptive optimizer takes the step :math:`w \leftarrow w - \eta P^{-1} g` with a diagonal matrix P; for Adam,
    :math:`P = \operatorname{diag}(\sqrt{\hat v} + \epsilon)`. In the coordinates :math:`x = P^{1/2} w` this is plain
    gradient descent, and its Hessian is :math:`P^{-1/2} H P^{-1/2}`. This matrix is symmetric and has the eigenvalues
    of :math:`P^{-1} H`. The theory treats P as constant.

    Weight decay ω enters in one of two ways:

    - As an L2 term (Adam, RMSprop, Adagrad), it is part of the gradient. The products are with
      :math:`P^{-1/2} (H + \omega I) P^{-1/2}`, so do not add it again in :func:`eigencurve.spectrum.prepare`.
    - Decoupled (AdamW), the step is :math:`w \leftarrow w - \eta (P^{-1} g + \omega w)`, and the matrix is
      :math:`P^{-1/2} H P^{-1/2} + \omega I`. A decay that is the same for all parameters is left out of the products;
      pass ``eigenvalue_shift`` to :func:`eigencurve.spectrum.prepare`. Otherwise it is part of the products.

    Most users call ``operator.preconditioned_by(optimizer)``, which reads P and ω from the optimizer. Such an operator
    refuses products after the optimizer has taken more steps, because H follows the current parameters. An operator
    made from a diagonal keeps it.

    Args:
        operator: Operator of H.
        diagonal: Diagonal of P: ``operator.dim`` positive numbers, in the order of the operator's vectors.
        weight_decay: Weight decay ω, not negative: one number, or a tensor with one per entry of ``diagonal``.
        decoupled_weight_decay: Whether the decay is decoupled from the gradient, as in AdamW.
        preconditioner: Name of the optimizer, for the record of a measurement.

    Attributes:
        eigenvalue_shift: Decoupled weight decay to add to every eigenvalue; 0.0 if there is none, or if it is already
            part of the products.

    Raises:
        ValueError: If ``diagonal`` is not finite and positive, if ``weight_decay`` is negative, or if either has a
            wrong length.

    >>> from eigencurve.hessian import as_operator
    >>> operator = as_operator(torch.tensor([[8.0, 2.0], [2.0, 1.0]]))
    >>> PreconditionedOperator(operator, torch.tensor([4.0, 1.0]))(torch.tensor([1.0, 0.0]))
    tensor([2., 1.])
    """

    def __init__(
        self,
        operator: LanczosOperator,
        diagonal: Tensor,
        *,
        weight_decay: float | Tensor = 0.0,
        decoupled_weight_decay: bool = False,
        preconditioner: str = "a diagonal matrix",
    ) -> None:
        self.operator, self.preconditioner, self.space = operator, preconditioner, space_of(operator)
        self.dim, self.dtype, self.device = operator.dim, operator.dtype, operator.device
        self.diagonal = self._own("diagonal", diagonal, is_positive=True)
        self._scale = self.diagonal.rsqrt()
        self.eigenvalue_shift, self._added = 0.0, cast(Tensor | None, None)
        self._metric: tuple[AdaptiveState, Callable[[], AdaptiveState]] | None = None
        if isinstance(weight_decay, Tensor):
            decay = self._own("weight_decay", weight_decay, is_positive=False)
            self._added = decay if decoupled_weight_decay else decay / self.diagonal
        elif _check.at_least(type(self).__name__, "weight_decay", weight_decay, 0.0) > 0:
            if decoupled_weight_decay:
                self.eigenvalue_shift = float(weight_decay)
            else:
                self._added = float(weight_decay) / self.diagonal

    def __call__(self, vector: Tensor) -> Tensor:
        """Product with ``vector``, a flat tensor of ``dim`` numbers."""
        self._require_same_metric()
        product = self._scale * self.operator(self.transform_gradient(vector))
        return product if self._added is None else product.addcmul_(self._added, vector)

    @property
    def is_checked(self) -> bool:
        """Whether the operator of H is checked."""
        return bool(getattr(self.operator, "is_checked", True))

    def renew(self) -> None:
        """Forget what the operator of H keeps between products; see :meth:`HessianOperator.renew`."""
        renew_operator(self.operator)

    @classmethod
    def of_optimizer(
        cls, operator: LanczosOperator, read: Callable[[], AdaptiveState], preconditioner: str
    ) -> PreconditionedOperator:
        """The operator in the metric of ``read()``, which refuses products as soon as ``read()`` changes."""
        state = read()
        own = cls(
            operator, state.diagonal, weight_decay=state.weight_decay, decoupled_weight_decay=state.decoupled,
            preconditioner=preconditioner,
        )  # fmt: skip
        own._metric = state, read
        return own

    def _require_same_metric(self) -> None:
        if self._metric is None:
            return
        state, read = self._metric
        if not all(_equal(old, new) for old, new in zip(state, read(), strict=True)):
            need = "in the state that the diagonal was copied from"
            remedy = "Call preconditioned_by again; or pass it this operator's 'diagonal' to keep the old metric."
            got = f"{self.preconditioner} after more steps or with other settings"
            _check.refuse(type(self).__name__, "preconditioner", need, got, remedy)

    def __repr__(self) -> str:
        return f"PreconditionedOperator({self.operator!r}, {self.preconditioner})"

    def transform_gradient(self, gradient: Tensor) -> Tensor:
        """P^(-1/2) g: a gradient, or a sample of gradient noise, in the coordinates x = P^(1/2) w."""
        return self._scale * self._vector("gradient", gradient)

    def transform_displacement(self, displacement: Tensor) -> Tensor:
        """P^(1/2) Δ: a difference of parameters, such as w - w*, in the coordinates x = P^(1/2) w."""
        return self._vector("displacement", displacement) / self._scale

    @property
    def smallest_decay(self) -> float:
        """Smallest positive weight decay in the matrix, in its own units; 0.0 if there is none."""
        if self._added is None:
            return self.eigenvalue_shift
        positive = self._added[self._added > 0]
        return float(positive.min()) if len(positive) else 0.0

    def fingerprint(self) -> str:
        """Hash of the operator's fingerprint, the diagonal and the weight decay in the products."""
        text = f"{type(self).__name__} {self.operator.fingerprint()} {self.metric_fingerprint()}"
        return hashlib.sha256(text.encode()).hexdigest()

    def identity_parts(self) -> dict[str, str]:
        """Hashes of the parts of the operator, and of the diagonal and the weight decay."""
        return {**parts_of(self.operator), "preconditioner": self.metric_fingerprint()}

    def metric_fingerprint(self) -> str:
        """Hash of the diagonal and the weight decay in the products, without the operator."""
        digest = hashlib.sha256(tensor_bytes(self.diagonal))
        digest.update(b"" if self._added is None else tensor_bytes(self._added))
        return digest.hexdigest()

    def min_over_processes(self, value: int) -> int:
        """Minimum of ``value`` over all processes that share the products."""
        return self.operator.min_over_processes(value)

    @property
    def is_main_process(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.operator.is_main_process

    def _own(self, argument: str, given: Tensor, is_positive: bool) -> Tensor:
        """A checked copy of the entries that this process holds, of a whole vector or of its own part."""
        values = self._vector(argument, self.space.part(given.detach()).to(self.device, self.dtype, copy=True))
        wrong = ~(torch.isfinite(values) & ((values > 0) if is_positive else (values >= 0)))
        if bool(wrong.any()):
            place = int(wrong.nonzero()[0])
            need = "finite and positive everywhere" if is_positive else "finite and >= 0 everywhere"
            _check.refuse(type(self).__name__, argument, need, f"{values[place].item():g} at position {place}")
        return values

    def _vector(self, argument: str, vector: Tensor) -> Tensor:
        return self.space.require(type(self).__name__, argument, vector, self.dtype, self.device)


def precondition(
    operator: LanczosOperator, preconditioner: Optimizer | Diagonal, parameters: Mapping[str, Tensor] | None
) -> PreconditionedOperator:
    """The operator in the metric of an optimizer, or of any positive diagonal.

    Args:
        operator: Operator of H.
        preconditioner: Optimizer of PyTorch (Adam, AdamW, RMSprop or Adagrad), or the diagonal of P.
        parameters: The operator's parameters by name, in their order; None if it is defined by its products alone.
    """
    function = f"{type(operator).__name__}.preconditioned_by"
    if isinstance(preconditioner, Optimizer) and parameters is not None:
        read = partial(read_optimizer, function, preconditioner, parameters)
        return PreconditionedOperator.of_optimizer(operator, read, type(preconditioner).__name__)
    if isinstance(preconditioner, Mapping | list | tuple) and parameters is not None:
        return PreconditionedOperator(operator, _flat(function, preconditioner, parameters))
    if not hasattr(preconditioner, "__array__"):
        need = "a flat tensor or array" if parameters is None else "an optimizer, or the diagonal of P as tensors"
        _check.wrong_type(function, "preconditioner", need, preconditioner)
    return PreconditionedOperator(operator, _tensor(preconditioner))


def _flat(function: str, given: Mapping[str, Tensor] | Sequence[Tensor], parameters: Mapping[str, Tensor]) -> Tensor:
    """One flat vector from one tensor per parameter; a mapping may also contain other parameters."""
    if isinstance(given, Mapping):
        missing = [name for name in parameters if name not in given]
        if missing:
            _check.refuse(function, "preconditioner", "a mapping with every parameter", f"none for {missing[0]}")
        given = [given[name] for name in parameters]
    if len(given) != len(parameters):
        _check.refuse(function, "preconditioner", f"a list of {len(parameters)} tensors, one per parameter", len(given))
    parts = [_tensor(part) for part in given]
    for part, (name, parameter) in zip(parts, parameters.items(), strict=True):
        if part.shape != parameter.shape:
            need = f"of the parameters' shapes ({tuple(parameter.shape)} for {name})"
            _check.refuse(function, "preconditioner", need, tuple(part.shape))
    return torch.cat([own_part(part.detach()).reshape(-1) for part in parts])


def _equal(old: Any, new: Any) -> bool:
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        return torch.equal(old, new)
    return type(old) is type(new) and bool(old == new)


def _tensor(values: Any) -> Tensor:
    """Tensor of any array, such as one of JAX."""
    return values if isinstance(values, Tensor) else torch.as_tensor(np.array(values))
