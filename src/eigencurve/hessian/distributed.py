"""Products over several processes of torch.distributed, each with its own batches."""

from __future__ import annotations

import hashlib

import torch
import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer

from eigencurve import _check
from eigencurve.hessian.curvature import CurvatureOperator
from eigencurve.hessian.identity import joined_hashes
from eigencurve.hessian.preconditioned import Diagonal, PreconditionedOperator, precondition
from eigencurve.hessian.space import even_space, whole_space


class DistributedOperator:
    r"""Curvature operator of the mean loss over the examples of all processes.

    .. math:: Hv = \sum_r \frac{n_r}{N} H_r v, \qquad N = \sum_r n_r

    :math:`H_r` is the operator of process r on its own :math:`n_r` examples. All processes call it with the same vector
    and get the same product, so each runs the same Lanczos steps. The first process writes files and shows progress.

    With ``shard_vectors``, each of n processes holds one n-th of every vector: it gets, and returns, its own part. A
    Lanczos run then needs one n-th of the memory in each process, apart from the model and from a few whole vectors
    during a product. A memory budget is for one process, and each process has its own checkpoint.

    Args:
        operator: Operator of this process. The model's parameters must be equal in all processes.
        group: Process group; None is the default group of all processes.
        shard_vectors: Whether to distribute the vectors, too.

    Attributes:
        space: The vectors, and the part of them that this process holds.

    Raises:
        ValueError: If there is no process group, or if parameters differ between processes.
    """

    def __init__(
        self, operator: CurvatureOperator, group: dist.ProcessGroup | None = None, *, shard_vectors: bool = False
    ) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            remedy = "Start the program with torchrun and call torch.distributed.init_process_group first."
            _check.refuse("DistributedOperator", "group", "an initialised process group", group, remedy)
        self.operator, self.names = operator, operator.names
        self.dim, self.dtype, self.device = operator.dim, operator.dtype, operator.device
        self._parts = even_space(self.dim, group)
        self.space = self._parts if shard_vectors else whole_space(self.dim)
        self._require_equal_parameters()
        self._rows = self._parts.gather(operator.num_rows)
        self.num_rows, self.num_examples = sum(self._rows), sum(self._parts.gather(operator.num_examples))

    def __call__(self, vector: Tensor) -> Tensor:
        """Product with ``vector``, summed over all processes."""
        self.space.require(type(self).__name__, "vector", vector, self.dtype, self.device)
        return self._mean(self.operator(self._whole(vector)))

    def __repr__(self) -> str:
        return f"DistributedOperator({self.operator!r})"

    @property
    def is_checked(self) -> bool:
        """Whether the operator of this process is checked."""
        return self.operator.is_checked

    @property
    def is_main_process(self) -> bool:
        """Whether this is the first process of the group."""
        return self._parts.rank == 0

    def renew(self) -> None:
        """Drop the kept graphs of all processes; see :meth:`HessianOperator.renew`.

        Raises:
            ValueError: If parameters differ between processes.
        """
        self.operator.renew()
        self._require_equal_parameters()

    def preconditioned_by(self, preconditioner: Optimizer | Diagonal) -> PreconditionedOperator:
        """Return this operator in the metric of an adaptive optimizer; see :meth:`HessianOperator.preconditioned_by`.

        Raises:
            ValueError: If the preconditioners of the processes differ.
        """
        metric = precondition(self.operator, preconditioner, self.operator.named_parameters).metric_fingerprint()
        remedy = "Average the gradients over the processes before each optimizer step, as DistributedDataParallel does."
        self._require_equal("preconditioner", "equal", metric, remedy)
        return precondition(self, preconditioner, self.operator.named_parameters)

    def gradient(self, rows: Tensor | None = None) -> Tensor:
        """Gradient of the mean loss over all processes; see :meth:`HessianOperator.gradient`."""
        first = sum(self._rows[: self._parts.rank])
        mine = None if rows is None else rows[first : first + self.operator.num_rows]
        return self._mean(self.operator.gradient(mine))

    def mean_loss(self) -> float:
        """Mean loss over the examples of all processes."""
        totals = self._parts.gather(self.operator.mean_loss() * self.operator.num_examples)
        return float(sum(totals) / self.num_examples)

    def parameter_vector(self) -> Tensor:
        """Current values of the parameters, as one flat vector."""
        return self.space.part(self.operator.parameter_vector())

    def min_over_processes(self, value: int) -> int:
        """Minimum of ``value`` over all processes."""
        return int(min(self._parts.gather(value)))

    def fingerprint(self) -> str:
        """Hash of the fingerprints of all processes, in the order of their ranks."""
        return hashlib.sha256(" ".join(self._parts.gather(self.operator.fingerprint())).encode()).hexdigest()

    def identity_parts(self) -> dict[str, str]:
        """Hashes of the parts of the operators of all processes, in the order of their ranks."""
        return joined_hashes(self._parts.gather(self.operator.identity_parts()))

    def _whole(self, part: Tensor) -> Tensor:
        """The whole vector of which each process holds a part."""
        if not self.space.is_shared:
            return part
        whole = torch.zeros(self.dim, dtype=self.dtype, device=self.device)
        for start, stop in self.space.pieces:
            whole[start:stop] = part
        return self.space.sum(whole)

    def _mean(self, product: Tensor) -> Tensor:
        """The own part of the mean over all examples, from the means over the examples of each process."""
        product.mul_(self.operator.num_examples / self.num_examples)
        return self.space.part(self._parts.sum(product))

    def _require_equal_parameters(self) -> None:
        remedy = "Load the same checkpoint, or broadcast the parameters, in every process."
        self._require_equal("operator", "of equal parameters", self.operator.parameter_fingerprint(), remedy)

    def _require_equal(self, argument: str, constraint: str, fingerprint: str, remedy: str) -> None:
        if len(set(self._parts.gather(fingerprint))) > 1:
            _check.refuse("DistributedOperator", argument, f"{constraint} in all processes", "unequal", remedy)
