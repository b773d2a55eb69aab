"""Measurement and MeasuredPlan: a schedule measured during its own run, for the callbacks of several trainers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from eigencurve import _check
from eigencurve._moved import renamed
from eigencurve.schedules.base import Schedule
from eigencurve.schedules.compose import join, warmup
from eigencurve.schedules.decays import constant
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
from eigencurve.hessian.estimate import SpectrumEstimate, run_estimate, warn_if_unsettled
from eigencurve.hessian.isolation import undisturbed
from eigencurve.hessian.operator import HessianOperator
from eigencurve.hessian.settings import EstimateSettings

Loss = Callable[[Any, Any], Tensor]
STATE_NAMES = {"step", "eigenvalues", "weights", "dim"}
EARLY_SHARE = 0.1  # of the epochs, before the measurement


@renamed(num_steps="num_products")
class Measurement:
    """When and how to measure a model's spectrum during training, and which schedule to make from it.

    The rate rises to ``lr`` during the warmup and stays there until the measurement. From then on, the rate follows
    the Eigencurve schedule of the measured spectrum over the remaining steps.

    The spectrum changes during training, and the paper measures trained models. In results/noise.md, a schedule differs
    from that of the trained network by factors of 6.2 to 25.6 if it is measured before the first step, of 1.4 to 6.3
    after a tenth of the training, and of 1.1 to 1.8 after a half. The later you measure, the fewer steps remain for the
    curve. The default, a tenth, is a compromise; the spectrum of an earlier, trained network is better.

    Args:
        lr: Learning rate of the first group after the warmup.
        weight_decay: Weight decay of the optimizer, positive.
        at_epoch: Epoch at whose start to measure; 0 measures before the first step. By default, the first epoch that
            starts after a tenth of the run, or 0 if the run has one epoch.
        min_lr: Learning rate of the last step. By default, the curve is not rescaled.
        beta: Ratio of the groups' edges; see :func:`eigencurve.eigencurve`.
        warmup_steps: Length of the warmup in any unit; it is part of the run's total steps.
        num_batches: Number of batches of the training set to measure on, per process.
        batches: Batches to measure on instead, such as a list or a DataLoader.
        microbatch: Maximum number of rows in memory at a time.
        num_products: Maximum number of Lanczos steps.
        **options: Other options of :func:`eigencurve.hessian.estimate_spectrum`, such as ``num_probes`` and ``settle``.
    """

    def __init__(
        self,
        lr: float,
        weight_decay: float,
        *,
        at_epoch: int | None = None,
        min_lr: float | None = None,
        beta: float = 2.0,
        warmup_steps: Steps = 0,
        num_batches: int = 4,
        batches: Any = None,
        microbatch: int | None = None,
        num_products: int = 100,
        **options: Any,
    ) -> None:
        name, remedy = "Measurement", "Eigencurve needs a smallest eigenvalue > 0."
        self.lr = _check.positive(name, "lr", lr)
        self.weight_decay = _check.positive(name, "weight_decay", weight_decay, remedy)
        self.at_epoch = None if at_epoch is None else _check.whole(name, "at_epoch", at_epoch, minimum=0)
        self.min_lr, self.beta, self.warmup_steps = min_lr, beta, warmup_steps
        self.num_batches = _check.whole(name, "num_batches", num_batches, minimum=1)
        self.batches, self.microbatch = batches, microbatch
        self.settings = EstimateSettings(
            num_products, weight_decay=weight_decay, total_steps=1, function=name, **{"progress": False, **options}
        )

    def epoch(self, num_epochs: int) -> int:
        """Epoch at whose start to measure in a run of ``num_epochs``.

        >>> [Measurement(0.1, 5e-4).epoch(n) for n in (1, 2, 10, 25)]
        [0, 1, 1, 3]
        """
        if self.at_epoch is not None:
            return self.at_epoch
        return max(0, min(math.ceil(EARLY_SHARE * num_epochs), num_epochs - 1))

    def before(self, total_steps: int) -> Schedule:
        """Schedule until the measurement: a warmup to ``lr``, then a constant rate."""
        rise = self._num_warmup_steps(total_steps)
        return warmup(constant(total_steps - rise, self.lr), rise)

    def after(self, spectrum: Spectrum, step: int, total_steps: int) -> Schedule:
        """Schedule of the whole run with a measurement at ``step``: :meth:`before` until then, then Eigencurve."""
        rise = self._num_warmup_steps(total_steps)
        wait = max(step - rise, 0)
        left = total_steps - rise - wait
        if left < 1:
            remedy = "No steps remain for the curve."
            _check.refuse("Measurement", "at_epoch", "before the last step", self.at_epoch, remedy)
        curve = eigencurve(prepare(spectrum, self.weight_decay), left, self.lr, self.min_lr, self.beta)
        return warmup(join([constant(wait, self.lr), curve]) if wait else curve, rise)

    def measure(
        self, model: nn.Module, objective: Loss, loader: Any, total_steps: int, count: Count | None = None
    ) -> SpectrumEstimate:
        """Measure the spectrum of ``model`` on batches of ``loader``, of all processes together.

        The model, its gradients, all random states and the iterators of the loader are unchanged.
        """
        seed = self.settings.seed
        batches = self.batches if self.batches is not None else draw_batches(loader, self.num_batches, seed, model)
        operator = HessianOperator.from_objective(model, objective, batches, microbatch=self.microbatch, count=count)
        _, world_size = _rank_and_world_size()
        settings = replace(self.settings, total_steps=total_steps)
        return run_estimate(DistributedOperator(operator) if world_size > 1 else operator, settings)

    def _num_warmup_steps(self, total_steps: int) -> int:
        rise = whole_steps("Measurement", "warmup_steps", self.warmup_steps, 0, total_steps)
        if rise >= total_steps:
            _check.refuse("Measurement", "warmup_steps", f"fewer than the {total_steps} steps of the run", rise)
        return rise


class MeasuredPlan:
    """The schedule of one run that is measured during the run, with a state for checkpoints.

    Args:
        objective: ``objective(model, batch)``, the mean loss of a batch.
        measurement: When and how to measure, and which schedule to make.
        count: Function that returns the number of examples over which the loss of a batch is the mean; by default the
            number of rows.

    Attributes:
        estimate: Spectrum measured in this process; None before the measurement and after a resume.
    """

    def __init__(self, objective: Loss, measurement: Measurement, count: Count | None = None) -> None:
        if not callable(objective):
            _check.wrong_type("MeasuredPlan", "objective", "callable as objective(model, b)", objective)
        if not isinstance(measurement, Measurement):
            _check.wrong_type("MeasuredPlan", "measurement", "a Measurement", measurement)
        self.objective, self.measurement, self.count = objective, measurement, count
        self.estimate: SpectrumEstimate | None = None
        self._measured: tuple[int, Spectrum] | None = None
        self._warned = False

    def due(self, epoch: int, num_epochs: int) -> bool:
        """Whether to measure at the start of ``epoch``, in a run of ``num_epochs``."""
        return self._measured is None and epoch >= self.measurement.epoch(num_epochs)

    def warn_of_no_measurement(self, num_epochs: int) -> None:
        """Warn, once, unless the spectrum has been measured, that a run of ``num_epochs`` ends before."""
        if self._measured is None and not self._warned:
            self._warned = True
            warnings.warn(
                f"MeasureSchedule: at_epoch={self.measurement.epoch(num_epochs)} is beyond the run, which has "
                f"{num_epochs} epochs (the first is 0), so the spectrum is never measured and the rate does not decay. "
                f"Set at_epoch <= {max(num_epochs - 1, 0)}.",
                stacklevel=3,
            )

    def measure(self, model: nn.Module, loader: Any, step: int, total_steps: int, optimizer: Any = None) -> None:
        """Measure ``model`` now, before ``step``.

        Warns:
            UserWarning: The run's ``optimizer`` is not SGD, or the estimate has not settled.
        """
        if optimizer is not None:
            warn_of_optimizer(optimizer)
        self.estimate = self.measurement.measure(model, self.objective, loader, total_steps, self.count)
        warn_if_unsettled("Measurement", self.estimate)
        self._measured = (step, self.estimate.spectrum)

    def schedule(self, total_steps: int) -> Schedule:
        """Schedule of a run of ``total_steps``, as far as it is known."""
        if self._measured is None:
            return self.measurement.before(total_steps)
        step, spectrum = self._measured
        return self.measurement.after(spectrum, step, total_steps)

    def state_dict(self) -> dict[str, Any]:
        """Step of the measurement and the spectrum as plain numbers and lists; empty before the measurement."""
        if self._measured is None:
            return {}
        step, spectrum = self._measured
        values = {"eigenvalues": spectrum.eigenvalues.tolist(), "weights": spectrum.weights.tolist()}
        return {"step": step, "dim": spectrum.dim, **values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the measurement of ``state``.

        Raises:
            TypeError: If the step of the measurement is not an integer.
            ValueError: If the state is not one of :meth:`state_dict`. The plan is not changed.
        """
        if not state:
            return
        if missing := STATE_NAMES - state.keys():
            _check.refuse("MeasuredPlan", "state", "the state of a MeasuredPlan", f"one without {sorted(missing)}")
        step = _check.whole("MeasuredPlan", "step", state["step"], minimum=0)
        self._measured = (step, Spectrum(state["eigenvalues"], state["weights"], state["dim"]))


def warn_of_optimizer(optimizer: Any) -> None:
    """Warn if a schedule from the plain Hessian is used with an optimizer that it is not for."""
    bare = getattr(optimizer, "optimizer", optimizer)
    if not isinstance(bare, torch.optim.SGD):
        name = type(bare).__name__
        warnings.warn(
            f"MeasureSchedule: the spectrum is that of the plain Hessian, for SGD, but the optimizer is {name}. Use "
            "torch.optim.SGD, or measure a trained model in the optimizer's metric "
            "(HessianOperator.preconditioned_by), or pass the logs of two runs to eigencurve.plan.",
            stacklevel=3,
        )


def draw_batches(loader: Any, num_batches: int, seed: int, model: nn.Module) -> Sequence[Any]:
    """Draw batches of random examples from the data set of ``loader``, different ones in each process.

    The examples are read from the data set, not through the loader, so the order of the training data, the loader's
    workers and all random states are unchanged.
    """
    dataset, size = getattr(loader, "dataset", None), _batch_size(loader)
    if dataset is None or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__") or size is None:
        need = "given unless the run trains on one DataLoader over an indexed data set"
        _check.refuse("Measurement", "batches", need, loader, ("Pass ", _check.Arg("batches"), " to measure on."))
    rank, world_size = _rank_and_world_size()
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(seed))
    chosen = Subset(dataset, order[rank::world_size][: num_batches * size].tolist())
    with undisturbed(model, "keep", seed, [], torch.device("cpu")):
        return list(DataLoader(chosen, batch_size=size, collate_fn=loader.collate_fn))


def _rank_and_world_size() -> tuple[int, int]:
    distributed = dist.is_available() and dist.is_initialized()
    return (dist.get_rank(), dist.get_world_size()) if distributed else (0, 1)


def _batch_size(loader: Any) -> int | None:
    size = getattr(loader, "batch_size", None)
    return size if size is not None else getattr(getattr(loader, "batch_sampler", None), "batch_size", None)
