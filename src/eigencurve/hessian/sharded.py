"""ShardedHessianOperator: products with the Hessian of a model that FSDP2 has distributed over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from eigencurve import _check
from eigencurve.hessian.curvature import CurvatureOperator, OperatorOptions, flat
from eigencurve.hessian.objective import Objective
from eigencurve.hessian.space import Space, even_range, own_part

NAME = "ShardedHessianOperator"


class ShardedHessianOperator(CurvatureOperator):
    r"""Products with the Hessian of a model that ``torch.distributed.fsdp.fully_shard`` has distributed.

    FSDP2 has no double backward, so a product is a central difference of two gradients,

    .. math:: Hv \approx \frac{\nabla\ell(w + hv) - \nabla\ell(w - hv)}{2h},

    of the mean loss over the examples of all processes. The step h is chosen by :func:`choose_step` at the start, and
    ``product_error`` is the relative error of a product, measured on a random vector and on a sharp direction. If L is
    the largest eigenvalue, eigenvalues below ``product_error`` · L are not resolved.

    Each process holds one n-th of the parameters, and the same entries of every vector. While a gradient is computed,
    its part of the parameters is shifted in place; afterwards it has its original bits again. Gradients that the
    parameters had before are kept.

    Args:
        model: Model whose parameters ``fully_shard`` has distributed over one dimension of processes, without mixed
            precision. The parameters that require a gradient count.
        loss_fn: ``loss_fn(model(x), y)``, the *mean* loss of a batch.
        batches: Examples of this process, as for :class:`HessianOperator`. Processes may have different numbers.
        options: ``parameters``, ``microbatch``, ``mode``, ``count`` and ``check`` of :class:`HessianOperator`. The
            check takes about 15 products, because it also chooses the step by its measured error. Without it, the step
            may be too long for a large model.

    Raises:
        ValueError: If the model is not distributed by ``fully_shard``, and for the reasons of :class:`HessianOperator`.
    """

    PRODUCTS = ("finite_difference",)

    def __init__(
        self,
        model: nn.Module,
        loss_fn: Callable[[Any, Any], Tensor] | Objective,
        batches: Any,
        **options: Unpack[OperatorOptions],
    ) -> None:
        modules = model.modules() if isinstance(model, nn.Module) else ()
        self._distributed = [module for module in modules if hasattr(module, "reshard")]
        self._reshard()
        super().__init__(model, loss_fn, batches, **options)

    def mean_loss(self) -> float:
        """Mean loss over the examples of all processes."""
        self._notice_changes()
        with self._undisturbed(), torch.no_grad():
            total = sum(size * self._plain_loss(batch) for size, batch in self._in_step(iter(self._batches)))
        return float(sum(self.space.gather(total)) / self.num_examples)

    def identity_parts(self) -> dict[str, str]:
        """Hashes of the settings, the parameters, the frozen weights and the data of all processes, for checkpoints."""
        self._reshard()
        return super().identity_parts()

    def _settings(self) -> str:
        return f"{NAME} {self.mode}"

    def _space(self) -> Space:
        """The flat vector of all parameters, of which each process holds the parts that FSDP gave it."""
        remedy = "Call torch.distributed.fsdp.fully_shard on its layers and on the model, with a mesh of one dimension."
        pieces: list[tuple[int, int]] = []
        first, meshes = 0, set()
        for name, parameter in self.named_parameters.items():
            mesh, placements = getattr(parameter, "device_mesh", None), getattr(parameter, "placements", [])
            if not self._distributed or mesh is None or mesh.ndim != 1 or not placements[0].is_shard():
                got = f"{name}, which is {'whole' if mesh is None else placements}"
                _check.refuse(NAME, "model", "one whose parameters are distributed by fully_shard", got, remedy)
            meshes.add(mesh)
            pieces += _pieces(parameter, first)
            first += parameter.numel()
        if len(meshes) > 1:
            _check.refuse(NAME, "model", "distributed over one mesh", f"{len(meshes)} meshes", remedy)
        return Space(first, tuple(pieces), meshes.pop().get_group)

    def _notice_changes(self) -> None:
        self._reshard()
        super()._notice_changes()

    @contextmanager
    def _shifted(self, vector: Tensor, shift: float) -> Iterator[None]:
        """Move the parameters by ``shift · vector`` in place, because FSDP gathers them from their own memory."""
        parts = self._own_parts()
        originals = [part.clone() for part in parts]
        try:
            for part, move in zip(parts, self._split(vector), strict=True):
                part.add_(move, alpha=shift)
            yield
        finally:
            for part, original in zip(parts, originals, strict=True):
                part.copy_(original)
            self._reshard()

    def _gradient(self, pieces: Iterator[tuple[int, Any]]) -> Tensor:
        """FSDP averages the gradients of the processes, so each loss is multiplied by their number."""
        self._reshard()
        with self._own_gradients():
            for index, (size, batch) in enumerate(self._in_step(pieces)):
                (self._loss(batch, index) * (size * len(self._rows) / self.num_examples)).backward()
            slopes = [parameter.grad for parameter in self._parameters]
            parts = zip(self._own_parts(), slopes, strict=True)
            return flat([torch.zeros_like(part) if g is None else own_part(g.detach()) for part, g in parts])

    def _in_step(self, pieces: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """``pieces``, and then one of weight zero until no process has any, because a pass needs all processes."""
        spare = next(iter(self._batches))[1]
        while any(self.space.gather((piece := next(pieces, None)) is not None)):
            yield (0, spare) if piece is None else piece

    @contextmanager
    def _own_gradients(self) -> Iterator[None]:
        """Set aside the gradients of all parameters, and put them back afterwards."""
        before = [(parameter, parameter.grad) for parameter in self.model.parameters()]
        try:
            for parameter, _ in before:
                parameter.grad = None
            yield
        finally:
            for parameter, gradient in before:
                parameter.grad = gradient

    def _plain_loss(self, batch: Any) -> float:
        loss = super()._plain_loss(batch)
        self._reshard()
        return loss

    def _reshard(self) -> None:
        """Free the whole parameters that a pass without a backward pass leaves behind.

        The model would have them in place of its own, and the next pass would use them instead of the shifted ones.
        """
        for module in self._distributed:
            module.reshard()  # type: ignore[operator]


def _pieces(parameter: Any, first: int) -> Iterator[tuple[int, int]]:
    """Ranges of the flat vector that this process holds of one parameter, whose first entry is at ``first``."""
    axis, mesh, shape = parameter.placements[0].dim, parameter.device_mesh, parameter.shape
    start, stop = even_range(shape[axis], mesh.get_local_rank(), mesh.size())
    inner = shape[axis + 1 :].numel()
    if start < stop:
        for outer in range(shape[:axis].numel()):
            begin = first + outer * shape[axis] * inner
            yield begin + start * inner, begin + stop * inner
