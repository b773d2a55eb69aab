"""A schedule that is measured within the run it is for: what the callbacks of several trainers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eigencurve import _check
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.classic import constant
from eigencurve.schedules.compose import join, warmup
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.schedules.units import Steps, whole_steps
from eigencurve.spectrum.spectrum import Spectrum, prepare

try:
    import torch
    import torch.distributed as dist
    from torch import Tensor, nn
    from torch.utils.data import DataLoader, Subset
except ImportError as error:
    raise ImportError("eigencurve.adapters.measuring needs PyTorch: pip install eigencurve[torch]") from error

from eigencurve.hessian.batches import Count
from eigencurve.hessian.distributed import DistributedOperator
from eigencurve.hessian.estimate import SpectrumEstimate, estimate_spectrum
from eigencurve.hessian.isolation import undisturbed
from eigencurve.hessian.operator import HessianOperator

Loss = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class Measurement:
    """When and how to measure a model's spectrum during training, and what schedule to make of it.

    The rate rises to ``lr`` over the warmup and stays there until the measurement; from then on, Eigencurve of the
    measured spectrum takes it through the steps that are left. The paper measures a trained model: a spectrum from
    the first epochs is another one, and the later the measurement, the less of the run is left for its curve.

    Args:
        lr: the rate of the first group after the warmup.
        weight_decay: of the optimizer, above 0.
        at_epoch: measure at the start of this epoch; 0 is before the first step.
        min_lr: of the last step; None leaves the curve alone.
        beta: as in :func:`eigencurve.eigencurve`.
        warmup_steps: in any unit; they count in the run's steps.
        num_batches: how many batches of the training set to measure on, in each process.
        batches: to measure on instead, such as a list of batches or a DataLoader.
        microbatch: the most rows in memory at a time.
        num_steps: of Lanczos, at most; this and the following as in :func:`eigencurve.hessian.estimate_spectrum`.
        num_probes: how many random directions to average.
        seed: of the batches and the probes.
        settle: by how little the schedule must have moved for the estimate to stop.
        memory_budget: bytes for all vectors.
    """

    lr: float
    weight_decay: float
    at_epoch: int = 0
    min_lr: float | None = None
    beta: float = 2.0
    warmup_steps: Steps = 0
    num_batches: int = 4
    batches: Any = None
    microbatch: int | None = None
    num_steps: int = 100
    num_probes: int = 1
    seed: int = 0
    settle: float | None = 0.02
    memory_budget: int | None = None

    def __post_init__(self) -> None:
        _check.positive("Measurement", "lr", self.lr)
        _check.positive("Measurement", "weight_decay", self.weight_decay, "A Hessian has no smallest eigenvalue > 0.")
        _check.whole("Measurement", "at_epoch", self.at_epoch, minimum=0)
        _check.whole("Measurement", "num_batches", self.num_batches, minimum=1)

    def before(self, total_steps: int) -> Schedule:
        """The schedule until the measurement: a rise to ``lr``, which then stays."""
        rise = self._rise(total_steps)
        return warmup(constant(total_steps - rise, self.lr), rise)

    def after(self, spectrum: Spectrum, step: int, total_steps: int) -> Schedule:
        """The schedule of the whole run, measured at ``step``: as before until then, and Eigencurve after."""
        rise = self._rise(total_steps)
        wait = max(step - rise, 0)
        left = total_steps - rise - wait
        if left < 1:
            remedy = "The run is over before there is a curve to follow."
            _check.refuse("Measurement", "at_epoch", "before the last step", self.at_epoch, remedy)
        curve = eigencurve(prepare(spectrum, self.weight_decay), left, self.lr, self.min_lr, self.beta)
        return warmup(join([constant(wait, self.lr), curve]) if wait else curve, rise)

    def measure(
        self, model: nn.Module, objective: Loss, loader: Any, total_steps: int, count: Count | None = None
    ) -> SpectrumEstimate:
        """The spectrum of ``model`` as it is, on batches of ``loader``; with several processes, on all of theirs.

        The model, its gradients, all random states and the loader's own iterators stay as they are.
        """
        batches = self.batches if self.batches is not None else draw_batches(loader, self.num_batches, self.seed, model)
        operator = HessianOperator.from_objective(model, objective, batches, microbatch=self.microbatch, count=count)
        several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        return estimate_spectrum(
            DistributedOperator(operator) if several else operator, self.num_steps, self.num_probes, self.seed,
            self.settle, self.weight_decay, total_steps, self.memory_budget, progress=False,
        )  # fmt: skip

    def _rise(self, total_steps: int) -> int:
        rise = whole_steps("Measurement", "warmup_steps", self.warmup_steps, 0, total_steps)
        if rise >= total_steps:
            _check.refuse("Measurement", "warmup_steps", f"below the run's {total_steps} steps", rise)
        return rise


class MeasuredPlan:
    """The schedule of one run that is measured within it, and all that must be saved to know it again.

    Args:
        objective: ``objective(model, batch)``, the mean loss over a batch.
        measurement: when and how to measure, and what to make of it.
        count: over how many examples the loss of a batch is the mean, where that is not its rows.

    Attributes:
        estimate: what was measured in this process; None before, and after a resume.
    """

    def __init__(self, objective: Loss, measurement: Measurement, count: Count | None = None) -> None:
        if not callable(objective):
            raise TypeError(_check.sentence("MeasuredPlan", "objective", "callable as objective(model, b)", objective))
        if not isinstance(measurement, Measurement):
            raise TypeError(_check.sentence("MeasuredPlan", "measurement", "a Measurement", measurement))
        self.objective, self.measurement, self.count = objective, measurement, count
        self.estimate: SpectrumEstimate | None = None
        self._found: tuple[int, Spectrum] | None = None

    def due(self, epoch: int) -> bool:
        """Whether to measure at the start of ``epoch``: the first time that it is late enough."""
        return self._found is None and epoch >= self.measurement.at_epoch

    def measure(self, model: nn.Module, loader: Any, step: int, total_steps: int) -> None:
        """Measure ``model`` now, before ``step``."""
        self.estimate = self.measurement.measure(model, self.objective, loader, total_steps, self.count)
        self._found = (step, self.estimate.spectrum)

    def schedule(self, total_steps: int) -> Schedule:
        """The schedule of a run of ``total_steps``, as far as it is known."""
        if self._found is None:
            return self.measurement.before(total_steps)
        step, spectrum = self._found
        return self.measurement.after(spectrum, step, total_steps)

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers and lists: the step of the measurement and the spectrum that was found; empty before."""
        if self._found is None:
            return {}
        step, spectrum = self._found
        values = {"eigenvalues": spectrum.eigenvalues.tolist(), "weights": spectrum.weights.tolist()}
        return {"step": step, "dim": spectrum.dim, **values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Know again what ``state`` knew."""
        if state:
            found = Spectrum(state["eigenvalues"], state["weights"], state["dim"])
            self._found = (int(state["step"]), found)


def draw_batches(loader: Any, num_batches: int, seed: int, model: nn.Module) -> Sequence[Any]:
    """Batches of examples drawn at random from the data set of ``loader``, other ones in each process.

    They are fetched here, one by one, and not through the loader: its order, its workers and all random states are the
    training's own.
    """
    dataset, size = getattr(loader, "dataset", None), _batch_size(loader)
    if dataset is None or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__") or size is None:
        remedy = "Give 'batches' to measure on."
        _check.refuse(
            "Measurement", "batches", "given unless one DataLoader over an indexed set trains", loader, remedy
        )
    rank, world = (dist.get_rank(), dist.get_world_size()) if dist.is_available() and dist.is_initialized() else (0, 1)
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(seed))
    chosen = Subset(dataset, order[rank::world][: num_batches * size].tolist())
    with undisturbed(model, "keep", seed, [], torch.device("cpu")):
        return list(DataLoader(chosen, batch_size=size, collate_fn=loader.collate_fn))


def _batch_size(loader: Any) -> int | None:
    size = getattr(loader, "batch_size", None)
    return size if size is not None else getattr(getattr(loader, "batch_sampler", None), "batch_size", None)
