"""Products over several processes of torch.distributed, each with its own batches."""

from __future__ import annotations

import hashlib

import torch
import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer

from eigencurve import _check
from eigencurve.hessian.operator import CurvatureOperator
from eigencurve.hessian.preconditioned import Diagonal, PreconditionedOperator, precondition


class DistributedOperator:
    r"""Curvature operator of the mean loss over the examples of all processes.

    .. math:: Hv = \sum_r \frac{n_r}{N} H_r v, \qquad N = \sum_r n_r

    :math:`H_r` is the operator of process r on its own :math:`n_r` examples. All processes call it with the same vector
    and get the same product, so each runs the same Lanczos steps. The first process writes files and shows progress.

    Args:
        operator: Operator of this process. The model's parameters must be equal in all processes.
        group: Process group; None is the default group of all processes.

    Raises:
        ValueError: If there is no process group, or if parameters differ between processes.
    """

    def __init__(self, operator: CurvatureOperator, group: dist.ProcessGroup | None = None) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            remedy = "Start the program with torchrun and call torch.distributed.init_process_group first."
            _check.refuse("DistributedOperator", "group", "an initialised process group", group, remedy)
        self.operator, self.group = operator, group
        self.dim, self.dtype, self.device = operator.dim, operator.dtype, operator.device
        self.num_examples = int(self._sum(torch.tensor([operator.num_examples], device=self.device))[0])
        remedy = "Load the same checkpoint, or broadcast the parameters, in every process."
        self._require_equal("operator", "of equal parameters", operator.parameter_fingerprint(), remedy)
        self._rows = [int(str(count)) for count in self._gather(operator.num_rows)]
        self.num_rows, self.names = sum(self._rows), operator.names

    def __call__(self, vector: Tensor) -> Tensor:
        """Product with ``vector``, summed over all processes."""
        return self._sum(self.operator(vector).mul_(self.operator.num_examples / self.num_examples))

    def __repr__(self) -> str:
        return f"DistributedOperator({self.operator!r})"

    def preconditioned_by(self, preconditioner: Optimizer | Diagonal) -> PreconditionedOperator:
        """Return this operator in the metric of an adaptive optimizer; see :meth:`HessianOperator.preconditioned_by`.

        Raises:
            ValueError: If the preconditioners of the processes differ.
        """
        result = precondition(self, preconditioner, self.operator.named_parameters)
        remedy = "Average the gradients over the processes before each optimizer step, as DistributedDataParallel does."
        self._require_equal("preconditioner", "equal", result.metric_fingerprint(), remedy)
        return result

    def gradient(self, rows: Tensor | None = None) -> Tensor:
        """Gradient of the mean loss over all processes, or the part of it that is due to some of the rows.

        Args:
            rows: One boolean for each of the ``num_rows`` rows of all processes, in the order of their ranks; None is
                all rows.
        """
        first = sum(self._rows[: dist.get_rank(self.group)])
        mine = None if rows is None else rows[first : first + self.operator.num_rows]
        return self._sum(self.operator.gradient(mine).mul_(self.operator.num_examples / self.num_examples))

    def parameter_vector(self) -> Tensor:
        """Current values of the parameters, as one flat vector."""
        return self.operator.parameter_vector()

    @property
    def is_main_process(self) -> bool:
        """Whether this is the first process of the group."""
        return dist.get_rank(self.group) == 0

    def fingerprint(self) -> str:
        """Hash of the fingerprints of all processes, in the order of their ranks."""
        return hashlib.sha256(" ".join(map(str, self._gather(self.operator.fingerprint()))).encode()).hexdigest()

    def min_over_processes(self, value: int) -> int:
        """Minimum of ``value`` over all processes."""
        return min(int(str(other)) for other in self._gather(value))

    def _sum(self, tensor: Tensor) -> Tensor:
        dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=self.group)
        return tensor

    def _gather(self, value: object) -> list[object]:
        found: list[object] = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(found, value, group=self.group)
        return found

    def _require_equal(self, argument: str, constraint: str, fingerprint: str, remedy: str) -> None:
        if len(set(self._gather(fingerprint))) > 1:
            _check.refuse("DistributedOperator", argument, f"{constraint} in all processes", "unequal", remedy)
