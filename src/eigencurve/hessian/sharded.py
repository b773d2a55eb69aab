"""ShardedHessianOperator: products with the Hessian of a model that FSDP2 has distributed over processes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, TypedDict, Unpack

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from eigencurve import _check
from eigencurve.hessian.batches import Batches, Count, generators_of, hash_of_tensors, tensor_bytes
from eigencurve.hessian.differences import first_step
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
from eigencurve.hessian.products import central_difference
from eigencurve.hessian.space import Space, even_width, own_part
from eigencurve.hessian.verify import SEED, verify_operator

NAME = "ShardedHessianOperator"


class ShardedOptions(TypedDict, total=False):
    """Keyword options of :class:`ShardedHessianOperator`."""

    parameters: str | Iterable[str] | None
    microbatch: int | None
    mode: str
    count: Count | None
    check: bool


class ShardedHessianOperator:
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
        parameters: File-name pattern of the parameters to use, or several; None uses all.
        microbatch: Maximum number of examples in memory at a time; None keeps the batches whole.
        mode: ``"eval"``, ``"train"``, or ``"keep"`` to leave every module in its current mode.
        count: Function that returns the number of examples over which the loss of a batch is the mean; by default the
            leading dimension of the first tensor.
        check: Whether to choose the step by its measured error, which takes about 15 products, and to check that
            products are deterministic and symmetric. Without it, the step may be too long for a large model.

    Attributes:
        dim: Number of parameters d of the whole model.
        dtype, device: Type and device of the parameters and of all vectors.
        space: The vectors, and the part of them that this process holds.
        names: Names of the parameters.
        num_examples, num_rows: Number of examples, and of rows, of all processes.
        product_error: Measured relative error of a product; None with ``check=False``.
        difference_step: Step of the finite differences, relative to the length of the vector of all parameters.

    Raises:
        ValueError: If the model is not distributed by ``fully_shard``, and for the reasons of :class:`HessianOperator`.
    """

    product = "finite_difference"

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
        if not isinstance(model, nn.Module):
            _check.wrong_type(NAME, "model", "a torch.nn.Module", model)
        self.mode = _check.choice(NAME, "mode", mode, MODES)
        self.model, self._objective = model, as_objective(NAME, loss_fn)
        self._distributed = [module for module in model.modules() if hasattr(module, "reshard")]
        self._reshard()
        self._patterns = [parameters] if isinstance(parameters, str) else None if parameters is None else [*parameters]
        self.named_parameters: Mapping[str, nn.Parameter] = chosen_parameters(NAME, model, self._patterns)
        self.space = _space(self.named_parameters, bool(self._distributed))
        first = next(iter(self.named_parameters.values()))
        self.names, self.dim = tuple(self.named_parameters), self.space.dim
        self.dtype, self.device = first.dtype, first.device
        self._generators = [*generators_of(batches), *generators_in(model)]
        with undisturbed(model, self.mode, SEED, self._generators, self.device):
            self._batches = Batches(NAME, batches, not isinstance(loss_fn, Objective), self.device, microbatch, count)
            require_unsplit_batch_norm(NAME, model, self._batches)
        self.num_examples = sum(self.space.gather(self._batches.num_examples))
        self._rows = self.space.gather(self._batches.num_rows)
        self.num_rows, self.difference_step = sum(self._rows), first_step(self.dtype)
        self.is_checked = check
        self.product_error = verify_operator(self) if check else None

    @classmethod
    def from_objective(
        cls,
        model: nn.Module,
        objective: Callable[[nn.Module, Any], Tensor],
        batches: Any,
        **options: Unpack[ShardedOptions],
    ) -> Self:
        """The operator of ``objective(model, batch)``; see :meth:`HessianOperator.from_objective`."""
        return cls(model, Objective(outputs=objective, loss=lambda loss, _batch: loss), batches, **options)

    def __call__(self, vector: Tensor) -> Tensor:
        """Product of the Hessian and a vector, of which each process passes and gets its own part."""
        self.space.require(NAME, "vector", vector, self.dtype, self.device)
        self._require_same_parameters()
        return self.fresh_product(vector, SEED)

    def fresh_product(
        self,
        vector: Tensor,
        seed: int,
        rebuild: bool = True,  # noqa: ARG002 -- as in HessianOperator; here there is no graph to keep
        step: float | None = None,
    ) -> Tensor:
        """The product with all random states set to ``seed`` first, and with the relative step ``step``."""
        length, size = self.space.norm(vector), self.space.norm(self.parameter_vector())
        if length == 0:
            return torch.zeros_like(vector)
        h = (self.difference_step if step is None else step) * (1 + size) / length

        def gradient_at(shift: float) -> list[Tensor]:
            with self._shifted(vector, shift):
                return [self._gradient(iter(self._batches))]

        with undisturbed(self.model, self.mode, seed, self._generators, self.device):
            require_unsplit_batch_norm(NAME, self.model, self._batches)
            return central_difference(gradient_at, h)[0]

    def renew(self) -> None:
        """Read the examples again; see :meth:`HessianOperator.renew`."""
        with undisturbed(self.model, self.mode, SEED, self._generators, self.device):
            self._batches.reread()

    def gradient(self, rows: Tensor | None = None) -> Tensor:
        """The own part of the gradient of the mean loss, or of what is due to some rows.

        Args:
            rows: One boolean for each of the ``num_rows`` rows of all processes, in the order of their ranks; None is
                all rows.
        """
        self._require_same_parameters()
        first = sum(self._rows[: self.space.rank])
        with undisturbed(self.model, self.mode, SEED, self._generators, self.device):
            if rows is None:
                return self._gradient(iter(self._batches))
            require_separate_examples(NAME, self.model, self.mode)
            return self._gradient(self._batches.selected(rows[first : first + self._batches.num_rows]))

    def mean_loss(self) -> float:
        """Mean loss over the examples of all processes."""
        self._reshard()
        with undisturbed(self.model, self.mode, SEED, self._generators, self.device), torch.no_grad():
            total = sum(size * self._plain_loss(batch) for size, batch in self._in_step(iter(self._batches)))
        self._reshard()
        return float(sum(self.space.gather(total)) / self.num_examples)

    def parameter_vector(self) -> Tensor:
        """Current values of this process's part of the parameters, as one flat vector."""
        return torch.cat([part.reshape(-1) for part in self._parts()])

    def preconditioned_by(self, preconditioner: Optimizer | Diagonal) -> PreconditionedOperator:
        """Return this operator in the metric of an adaptive optimizer; see :meth:`HessianOperator.preconditioned_by`.

        A flat diagonal is a whole vector, or this process's part of it.
        """
        return precondition(self, preconditioner, self.named_parameters)

    def losses_of_halves(self, seed: int) -> tuple[float, float, float] | None:
        """Loss of the first microbatch, and the weighted mean and the sum of the losses of its two halves.

        None if the first microbatch of some process cannot be split.
        """
        with undisturbed(self.model, self.mode, seed, self._generators, self.device), torch.no_grad():
            _, batch = next(iter(self._batches))
            halves = self._batches.halves(batch)
            if self.min_over_processes(len(halves)) < 2:
                return None
            self._reshard()
            whole, *parts = (self._plain_loss(each) for each in (batch, *(half for _, half in halves)))
        mean = sum(size * loss for (size, _), loss in zip(halves, parts, strict=True)) / sum(n for n, _ in halves)
        return whole, mean, sum(parts)

    @property
    def is_split(self) -> bool:
        """Whether some batch is cut into several microbatches."""
        return self._batches.num_pieces > self._batches.num_batches

    @property
    def is_main_process(self) -> bool:
        """Whether this is the first process, which shows progress."""
        return self.space.rank == 0

    def min_over_processes(self, value: int) -> int:
        """Minimum of ``value`` over all processes."""
        return int(min(self.space.gather(value)))

    def fingerprint(self) -> str:
        """Hash of the parameters' values, the examples and all settings of all processes."""
        with undisturbed(self.model, self.mode, SEED, self._generators, self.device):
            examples = self._batches.fingerprint()
        digest = hashlib.sha256(f"{NAME} {self.mode} {self.difference_step} {examples}".encode())
        for name, part in zip(self.names, self._parts(), strict=True):
            digest.update(f"{name} {part.dtype} {tuple(part.shape)}".encode())
            digest.update(tensor_bytes(part))
        return hashlib.sha256(" ".join(self.space.gather(digest.hexdigest())).encode()).hexdigest()

    def identity_parts(self) -> dict[str, str]:
        """Hashes of the settings, the parameters, the frozen weights and the data of all processes, for checkpoints."""
        self._reshard()
        own = {name: own_part(parameter.detach()) for name, parameter in self.named_parameters.items()}
        with undisturbed(self.model, self.mode, SEED, self._generators, self.device):
            examples = self._batches.fingerprint()
        parts = {
            "settings": f"{NAME} {self.mode}",
            "parameters": hash_of_tensors(own),
            "frozen weights": hash_of_tensors(other_parameters(self.model, self.names)),
            "data": f"{examples} {self._batches.num_examples}",
        }
        return joined_hashes(self.space.gather(parts))

    def _require_same_parameters(self) -> None:
        require_same_parameters(NAME, self.model, self._patterns, self.named_parameters, self.dtype, self.device)

    def _parts(self) -> list[Tensor]:
        """The own parts of the parameters, which share the parameters' memory."""
        return [own_part(parameter.detach()) for parameter in self.named_parameters.values()]

    @contextmanager
    def _shifted(self, vector: Tensor, shift: float) -> Iterator[None]:
        """Move the parameters by ``shift · vector`` in place, because FSDP gathers them from their own memory."""
        parts = self._parts()
        originals = [part.clone() for part in parts]
        try:
            for part, move in zip(parts, torch.split_with_sizes(vector, [part.numel() for part in parts]), strict=True):
                part.add_(move.view_as(part), alpha=shift)
            yield
        finally:
            for part, original in zip(parts, originals, strict=True):
                part.copy_(original)
            self._reshard()

    def _gradient(self, pieces: Iterator[tuple[int, Any]]) -> Tensor:
        """Gradient of the mean loss over ``pieces`` of all processes, times their share of all examples.

        FSDP averages the gradients of the processes, so each loss is multiplied by their number.
        """
        count = len(self._rows)
        self._reshard()
        with self._own_gradients():
            for index, (size, batch) in enumerate(self._in_step(pieces)):
                loss = self._objective.loss(self._objective.outputs(self.model, batch), batch)
                checked = checked_loss(NAME, loss, index)
                (checked * (size * count / self.num_examples)).backward()
            slopes = [parameter.grad for parameter in self.named_parameters.values()]
            parts = zip(self._parts(), slopes, strict=True)
            return torch.cat(
                [(torch.zeros_like(p) if g is None else own_part(g.detach())).reshape(-1) for p, g in parts]
            )

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

    def _reshard(self) -> None:
        """Free the whole parameters that a pass without a backward pass leaves behind.

        The model would have them in place of its own, and the next pass would use them instead of the shifted ones.
        """
        for module in self._distributed:
            module.reshard()  # type: ignore[operator]

    def _plain_loss(self, batch: Any) -> float:
        return float(self._objective.loss(self._objective.outputs(self.model, batch), batch))


def _space(parameters: Mapping[str, Any], is_distributed: bool) -> Space:
    """The flat vector of all parameters, of which each process holds the parts that FSDP gave it."""
    remedy = "Call torch.distributed.fsdp.fully_shard on its layers and on the model, with a mesh of one dimension."
    pieces: list[tuple[int, int]] = []
    first, meshes = 0, set()
    for name, parameter in parameters.items():
        mesh = getattr(parameter, "device_mesh", None)
        if not is_distributed or mesh is None or mesh.ndim != 1 or not parameter.placements[0].is_shard():
            got = f"{name}, which is {'whole' if mesh is None else parameter.placements}"
            _check.refuse(NAME, "model", "one whose parameters are distributed by fully_shard", got, remedy)
        meshes.add(mesh)
        pieces += _pieces(parameter, first)
        first += parameter.numel()
    if len(meshes) > 1:
        _check.refuse(NAME, "model", "distributed over one mesh", f"{len(meshes)} meshes", remedy)
    return Space(first, tuple(pieces), meshes.pop().get_group)


def _pieces(parameter: Any, first: int) -> Iterator[tuple[int, int]]:
    """Ranges of the flat vector that this process holds of one parameter, whose first entry is at ``first``."""
    axis, mesh, shape = parameter.placements[0].dim, parameter.device_mesh, parameter.shape
    width = even_width(shape[axis], mesh.size())
    start = min(mesh.get_local_rank() * width, shape[axis])
    stop = min(start + width, shape[axis])
    inner = shape[axis + 1 :].numel()
    if start < stop:
        for outer in range(shape[:axis].numel()):
            begin = first + outer * shape[axis] * inner
            yield begin + start * inner, begin + stop * inner
