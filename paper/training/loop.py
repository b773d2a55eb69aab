"""A short trainer: SGD or AdamW with any schedule, averaged weights, several processes, and exact resume."""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

# DistributedDataParallel imports this module. If the process group already exists then, default arguments in the module
# keep the group alive: its threads outlive destroy_process_group and may abort the process at exit.
import torch.distributed.nn.functional
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from eigencurve.adapters.torch import ScheduleLR
from paper import checks
from paper.files import write_atomically
from paper.training.average import WeightAverage
from paper.training.checkpoint import TrainingCheckpoint, identity_of
from paper.training.devices import half_type, kernels_for
from paper.training.log import epoch_log, step_bar
from paper.training.settings import TrainingSettings
from paper.training.task import Batch, Part, Task

SECONDS_BETWEEN_SAVES = 10.0
# Reading the loss makes a GPU wait, and several processes must read it together, so it is not read at every step.
STEPS_BETWEEN_CHECKS = 20


@dataclass(frozen=True)
class Trained:
    """The result of a training run."""

    # Pairs of (epochs done, number) for `train_loss`, `lr` and each of the task's measurements.
    history: Mapping[str, list[tuple[float, float]]]
    diverged: bool  # whether the run stopped because the loss was not finite
    num_steps: int  # number of steps taken
    # The optimizer with its last state, such as AdamW's moments.
    optimizer: torch.optim.Optimizer | None = field(default=None, compare=False, repr=False)

    @property
    def last(self) -> dict[str, float]:
        """The last number of each measurement."""
        return {name: pairs[-1][1] for name, pairs in self.history.items() if pairs}


def train(
    model: nn.Module, task: Task, settings: TrainingSettings, seed: int = 0, run: str = "",
    checkpoint: Path | None = None, save_seconds: float = SECONDS_BETWEEN_SAVES, log: Path | None = None,
    progress: bool = False, snapshots: Mapping[int, Path] | None = None,
) -> Trained:  # fmt: skip
    """Train ``model`` in place, on its own device.

    In a distributed process group each process takes its part of every batch and the gradient is that of the joint
    batch. Batch norm sees only the process's own part, as usual.

    Args:
        model: Model to train. It ends in eval mode with its last weights, not the averaged ones.
        task: Data, loss and measurements.
        settings: Schedule and optimizer.
        seed: Seed for what is random in the model, such as dropout.
        run: Key of the run; a checkpoint of another run is refused.
        checkpoint: File to save to regularly and after each epoch, and to resume from if it exists. A run that was
            killed and resumed ends with the same weights as one that was not.
        save_seconds: Seconds between two saves.
        log: Folder for TensorBoard logs; without TensorBoard nothing is written.
        progress: Whether to draw a progress bar on a terminal.
        snapshots: Files to copy the state to after some numbers of epochs, in the format of the checkpoint; 0 is
            before the first step. They need a checkpoint.

    Raises:
        ValueError: The schedule has a different number of steps, there are snapshots without a checkpoint, or the
            checkpoint is damaged or of another run.
    """
    steps = settings.epochs * task.steps_per_epoch
    if settings.schedule.total_steps != steps:
        remedy = f"{settings.epochs} epochs of {task.steps_per_epoch} steps are {steps} steps."
        found = settings.schedule.total_steps
        checks.refuse("train", "settings", f"made with a schedule of {steps} steps", found, remedy)
    if snapshots and checkpoint is None:
        checks.refuse("train", "checkpoint", "a path if there are snapshots", checkpoint)
    part = Part(dist.get_rank(), dist.get_world_size()) if _distributed() else Part()
    device = next(model.parameters()).device
    identity = identity_of([run, settings.to_dict(), seed, part.count, task.steps_per_epoch], model)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed * part.count + part.rank)
        file = TrainingCheckpoint(checkpoint, identity) if checkpoint is not None else None
        loop = _Loop(model, task, settings, part, device, file, save_seconds, snapshots or {})
        with epoch_log(log if part.rank == 0 else None) as epochs, step_bar(progress and part.rank == 0, steps) as bar:
            trained = loop.run(epochs, bar)
    if part.count > 1:
        del loop
        free_the_group()
    return trained


def free_the_group() -> None:
    """Free the objects that still hold the process group; call it before ``destroy_process_group``.

    DistributedDataParallel is part of a reference cycle. If it is the last to hold the group, freeing it later waits
    for the group's threads while those may wait for Python's lock.
    """
    gc.collect()


@dataclass
class _Progress:
    """How far a run has got, and its measurements so far."""

    step: int = 0
    diverged: bool = False
    history: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


class _Loop:
    """The loop over epochs and steps, with checkpoints."""

    def __init__(
        self, model: nn.Module, task: Task, settings: TrainingSettings, part: Part, device: torch.device,
        file: TrainingCheckpoint | None, save_seconds: float, snapshots: Mapping[int, Path],
    ) -> None:  # fmt: skip
        self.model, self.task, self.settings, self.part, self.device = model, task, settings, part, device
        self.file, self.save_seconds, self.next_save = file, save_seconds, time.monotonic() + save_seconds
        self.snapshots = snapshots
        self.network = DistributedDataParallel(model) if part.count > 1 else model
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = settings.make_optimizer(self.parameters)
        self.scheduler = ScheduleLR(self.optimizer, settings.schedule)
        self.average = None if settings.ema_decay is None else WeightAverage(model, settings.ema_decay)
        half = half_type(settings.precision, device)
        self.kernels = kernels_for(half, device)
        self.autocast = nullcontext() if half is None else torch.autocast(device.type, half)
        self.scaler = torch.amp.GradScaler(device.type, enabled=half is torch.float16)
        self.progress = _Progress()
        self.running = torch.zeros(2, dtype=torch.float64, device=device)  # sum of losses and number of examples
        if file is not None and (saved := self._saved(file)) is not None:
            self._restore(saved)

    def run(self, log: Callable[[int, Mapping[str, float]], None], bar: Any) -> Trained:
        """Run the remaining epochs."""
        now = self.progress
        self._snapshot()
        while now.step < self.settings.schedule.total_steps and not now.diverged:
            self._epoch(bar)
            if not now.diverged:
                self._measure(log)
            self._save()
            self._snapshot()
        self.model.eval()
        return Trained(now.history, now.diverged, now.step, self.optimizer)

    def _epoch(self, bar: Any) -> None:
        now, per_epoch = self.progress, self.task.steps_per_epoch
        self.model.train()
        epoch, first = divmod(now.step, per_epoch)
        for batch in self.task.batches(epoch, first, self.part):
            self._step(batch)
            now.step += 1
            bar(now.step)
            ended = now.step % per_epoch == 0
            if self._reads_loss(ended) and not math.isfinite(self._mean_loss()):
                now.diverged = True
                return
            if not ended and self._save_is_due():
                self._save()

    def _reads_loss(self, ended: bool) -> bool:
        """Whether to read the loss now; a running sum that is once not finite stays so."""
        at_once = self.device.type == "cpu" and self.part.count == 1
        return ended or at_once or self.progress.step % STEPS_BETWEEN_CHECKS == 0

    def _step(self, batch: Batch) -> None:
        """One update, by the gradient of the mean loss over the joint batch."""
        self.optimizer.zero_grad(set_to_none=True)
        with self.kernels:
            with self.autocast:
                loss = self.task.loss(self.network, batch)
            # The gradients of the processes are averaged, so parts of different size must be weighted by their size.
            weighted = loss * (batch.size * self.part.count / batch.joint_size)
            self.scaler.scale(weighted).backward()  # type: ignore[no-untyped-call]
        if self.settings.max_norm is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.parameters, self.settings.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        if self.average is not None:
            self.average.update(self.model)
        self.running += torch.stack([loss.detach().double() * batch.size, loss.new_tensor(batch.size).double()])

    def _measure(self, log: Callable[[int, Mapping[str, float]], None]) -> None:
        """Add the epoch's training loss and the task's measurements to the history."""
        done = self.progress.step // self.task.steps_per_epoch
        found = {"train_loss": self._mean_loss(), "lr": self.settings.schedule(self.progress.step - 1)}
        self.running.zero_()
        if done % self.settings.evaluate_every == 0 or done == self.settings.epochs:
            found.update(self._evaluate())
        for name, value in found.items():
            self.progress.history.setdefault(name, []).append((float(done), value))
        log(done, found)

    def _evaluate(self) -> dict[str, float]:
        self.model.eval()
        with torch.no_grad(), self.average.applied(self.model) if self.average is not None else nullcontext():
            self._share_buffers()
            totals = self.task.evaluate(self.model, self.part)
        numbers = torch.tensor([tuple(total) for total in totals.values()], dtype=torch.float64, device=self.device)
        if self.part.count > 1:
            dist.all_reduce(numbers)
        return {name: total / count for name, (total, count) in zip(totals, numbers.tolist(), strict=True)}

    def _share_buffers(self) -> None:
        """Give every process the batch norm statistics of the first, as during training."""
        for buffer in self.model.buffers() if self.part.count > 1 else ():
            dist.broadcast(buffer, 0)

    def _mean_loss(self) -> float:
        """The mean training loss of this epoch so far, over all processes."""
        total = self.running.clone()
        if self.part.count > 1:
            dist.all_reduce(total)
        return float(total[0] / total[1])

    def _save_is_due(self) -> bool:
        if self.part.count == 1:
            return time.monotonic() >= self.next_save
        if self.progress.step % STEPS_BETWEEN_CHECKS:
            return False
        answer = torch.tensor(float(time.monotonic() >= self.next_save), device=self.device)
        dist.broadcast(answer, 0)
        return bool(answer)

    def _save(self) -> None:
        if self.file is None:
            return
        own = {"random": _random_state(self.device), "task": self.task.state_dict(), "running": self.running.cpu()}
        every: list[Any] = [own]
        if self.part.count > 1:
            every = [None] * self.part.count
            dist.all_gather_object(every, own)
        if self.part.rank == 0:
            self.file.save({
                "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(), "scaler": self.scaler.state_dict(),
                "average": None if self.average is None else self.average.state, "processes": every,
                "step": self.progress.step, "diverged": self.progress.diverged,
                "history": json.dumps(self.progress.history),
            })  # fmt: skip
        self.next_save = time.monotonic() + self.save_seconds

    def _snapshot(self) -> None:
        """Copy the checkpoint, if a snapshot is due at this step and was not made before."""
        epochs, rest = divmod(self.progress.step, self.task.steps_per_epoch)
        path = self.snapshots.get(epochs)
        if rest or path is None or path.exists() or self.file is None or self.progress.diverged:
            return
        if not self.progress.step:
            self._save()
        if self.part.rank == 0:
            write_atomically(path, self.file.path.read_bytes())

    def _saved(self, file: TrainingCheckpoint) -> dict[str, Any] | None:
        """The saved state, read by the first process for all: the others may not see its disk."""
        if self.part.count == 1:
            return file.load()
        found: list[Any] = [None, None]
        if self.part.rank == 0:
            try:
                found = [file.load(), None]
            except ValueError as error:
                found = [None, str(error)]
        dist.broadcast_object_list(found, 0)
        if found[1] is not None:
            raise ValueError(found[1])
        state: dict[str, Any] | None = found[0]
        return state

    def _restore(self, saved: dict[str, Any]) -> None:
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.scheduler.load_state_dict(saved["scheduler"])
        self.scaler.load_state_dict(saved["scaler"])
        if self.average is not None:
            self.average.restore(saved["average"])
        history = json.loads(saved["history"])
        pairs = {name: [(e, v) for e, v in numbers] for name, numbers in history.items()}
        self.progress = _Progress(saved["step"], saved["diverged"], pairs)
        own = saved["processes"][self.part.rank]
        self.task.load_state_dict(own["task"])
        self.running.copy_(own["running"])
        _set_random_state(own["random"], self.device)


def _distributed() -> bool:
    return dist.is_available() and dist.is_initialized()


def _random_state(device: torch.device) -> list[Tensor]:
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]


def _set_random_state(states: list[Tensor], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)
