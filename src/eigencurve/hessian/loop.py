"""The loop over start vectors and their Lanczos steps, with its checkpoints, its memory plan and a progress bar."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text
from torch import Tensor

from eigencurve import _check
from eigencurve._check import Arg
from eigencurve.hessian.accuracy import SettlingRule
from eigencurve.hessian.checkpoint import CheckpointFile, SavedRun, reserved
from eigencurve.hessian.identity import Identity
from eigencurve.hessian.lanczos import LanczosOperator, LanczosRun, Recurrence, shortened
from eigencurve.hessian.memory import MemoryPlan, plan_memory
from eigencurve.hessian.settings import EstimateSettings
from eigencurve.hessian.space import space_of

Start = Callable[[], Tensor]
# Reports the number of products done, and a note in front of the bar. A hidden bar does not compute the note.
Advance = Callable[[int, Callable[[], str] | None], None]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a measurement.

    Attributes:
        function: Function that was interrupted.
        progress: How far it came, and whether that was saved.
        checkpoint: File from which the same call resumes, or None without one.
    """

    def __init__(self, function: str, progress: str, checkpoint: Path | None) -> None:
        self.function, self.checkpoint = function, checkpoint
        self.progress = progress
        remedy = "Pass a path as 'checkpoint' to be able to resume after Ctrl-C."
        if checkpoint is not None:
            saved = "saved to" if checkpoint.exists() else "nothing saved yet to"
            self.progress = f"{progress}; {saved} {checkpoint}"
            remedy = f"Call {function} again with the same arguments to resume."
        super().__init__(f"{self.progress}. {remedy}")


class LanczosLoop:
    """Lanczos runs from one start vector after another.

    Attributes:
        plan: Memory plan of each run.
        finished: Finished runs, including the checkpoint's.
        advance: Reports progress.
    """

    def __init__(
        self, operator: LanczosOperator, settings: EstimateSettings, file: CheckpointFile | None, noun: str
    ) -> None:
        self.operator, self.settings, self.file, self.noun = operator, settings, file, noun
        self.space = space_of(operator)
        self.saved = None if file is None else file.load()
        self.output = file if operator.is_main_process or self.space.is_shared else None
        self.plan = _shared_plan(operator, settings, self.saved)
        done = [] if self.saved is None else self.saved.finished
        self.finished = [shortened(run, self.plan.num_products, operator.dtype) for run in done]
        self.advance: Advance = _ignore

    def run(
        self, index: int, start: Start, num_products: int | None = None, rule: SettlingRule | None = None
    ) -> LanczosRun:
        """The run from the vector ``start()``, the one with this index, unless the checkpoint has finished it.

        Args:
            index: Number of finished runs before this one.
            start: Function that returns the start vector, the same one each time.
            num_products: Upper limit of the number of steps; by default, as in the plan.
            rule: Rule for an earlier stop.
        """
        limit = self.plan.num_products if num_products is None else num_products
        if rule is not None and self.saved is not None:
            rule.settling.num_unused = self.saved.num_unused
        if index < len(self.finished):
            self._require_enough_steps(self.finished[index], limit, rule)
            return self.finished[index]
        recurrence = Recurrence(self.operator, self.plan)
        try:
            self._take_steps(recurrence, start, limit, rule)
        except KeyboardInterrupt:
            raise self._interrupted(recurrence) from None
        self.finished.append(shortened(recurrence.result(), limit, self.operator.dtype))
        return self.finished[index]

    def _require_enough_steps(self, run: LanczosRun, limit: int, rule: SettlingRule | None) -> None:
        stops = run.exact if rule is None else rule.stops(run.alphas, run.betas, run.exact)
        if not stops and len(run.alphas) < limit:
            need = f"<= {len(run.alphas)}, the number of steps of the finished runs in the checkpoint"
            remedy = ("Finished runs take no more steps: lower ", Arg("num_products"), ", or pass another path.")
            _check.refuse(self.settings.function, "num_products", need, self.plan.num_products, remedy)

    def _take_steps(self, run: Recurrence, start: Start, limit: int, rule: SettlingRule | None) -> None:
        self._begin(run, start)
        num_before = len(run.alphas)
        while not self._is_over(run, start, limit, rule):
            run.step()
            if rule is not None:
                rule.settling.num_unused = run.num_unused
            self.advance(self._num_finished + len(run.alphas), None)
            if self.output is not None:
                self.output.save_if_due(self.finished, run)
        if len(run.alphas) > num_before:
            self._require_unchanged(run, start)
        if self.output is not None and len(run.alphas) <= limit:
            self.output.save(self.finished, run)

    def _begin(self, run: Recurrence, start: Start) -> None:
        """Restore the unfinished run of the checkpoint, or start a new one."""
        if self.file is not None and self.saved is not None and self.saved.progress > (len(self.finished), 0):
            self.file.restore(self.saved, run)
        else:
            run.start(start(), is_probe=self.noun == "probe")

    def _is_over(self, run: Recurrence, start: Start, limit: int, rule: SettlingRule | None) -> bool:
        num_steps = len(run.alphas)
        ended = run.exact or num_steps >= limit
        if rule is None or not (ended or num_steps in rule.step_counts):
            return ended
        exact = run.exact and num_steps <= limit
        try:
            ended |= rule.stops(np.array(run.alphas)[:limit], np.array(run.betas)[:limit], exact)
        except np.linalg.LinAlgError:  # the moments of a matrix that changes may belong to no measure
            self._require_unchanged(run, start)
            raise
        if not ended:
            self.advance(self._num_finished + num_steps, rule.note)
        return ended

    @property
    def _num_finished(self) -> int:
        """Number of products of the finished runs."""
        return sum(run.num_products for run in self.finished)

    def _require_unchanged(self, run: Recurrence, start: Start) -> None:
        run.require_unchanged(self.settings.function, start().to(self.plan.device))

    def _interrupted(self, run: Recurrence) -> Interrupted:
        """Save if the state is consistent, and return the exception for the user."""
        # Several processes stop at different steps, so they keep the last state that all of them saved.
        if self.output is not None and run.basis.num_used and not run.is_changing and not self.space.is_shared:
            self.output.save(self.finished, run)
        steps = f"{len(run.alphas)} of {self.plan.num_products} steps of {self.noun} {len(self.finished) + 1}"
        return Interrupted(
            self.settings.function, f"stopped after {steps}", None if self.file is None else self.file.path
        )


@contextmanager
def lanczos_loop(
    operator: LanczosOperator,
    settings: EstimateSettings,
    num_vectors: int,
    identity: Callable[[], Identity],
    noun: str = "vector",
) -> Iterator[LanczosLoop]:
    """A :class:`LanczosLoop` with its checkpoint reserved and a progress bar.

    Args:
        operator: Operator of all runs.
        settings: Settings of the runs.
        num_vectors: Number of start vectors.
        identity: Function that returns the identity of the runs; called if there is a checkpoint.
        noun: Word for a start vector in messages. A "probe" is random and leaves out parameters that are not used.
    """
    with reserved(settings.checkpoint, settings.function, operator.is_main_process):
        path, file = settings.checkpoint, None
        if path is not None:
            file = CheckpointFile(Path(path).absolute(), identity(), space_of(operator))
        loop = LanczosLoop(operator, settings, file, noun)
        shown = settings.progress and operator.is_main_process
        with progress_bar(shown, loop.plan.num_products * num_vectors, str(loop.plan)) as loop.advance:
            yield loop


def _shared_plan(operator: LanczosOperator, settings: EstimateSettings, saved: SavedRun | None) -> MemoryPlan:
    """The memory plan that all processes share; a resumed run keeps the rows that it started with."""
    num_products, size = min(settings.num_products, operator.dim), space_of(operator).size
    plan = plan_memory(size, num_products, settings.memory_budget, operator.dtype, operator.device)
    rows = operator.min_over_processes(plan.num_rows)
    if saved is not None and (saved.num_steps >= num_products or saved.basis["generation"] > 0):
        rows = saved.num_rows
    shared = dataclasses.replace(plan, num_rows=rows)
    if shared.num_bytes > plan.budget_bytes:
        remedy = "The run in the checkpoint started with that much memory and cannot resume with less."
        _check.refuse(settings.function, "memory_budget", f">= {shared.num_bytes}", plan.budget_bytes, remedy)
    return shared


class _ProductsPerSecond(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("- products/s" if speed is None else f"{speed:.3g} products/s")


@contextmanager
def progress_bar(shown: bool, total: int, title: str, console: Console | None = None) -> Iterator[Advance]:
    """Show a progress bar on standard error, with products per second and the time left.

    Call the yielded function with the number of products done. Nothing is shown unless ``shown`` is true and standard
    error is a terminal.
    """
    screen = Console(stderr=True) if console is None else console
    if not (shown and screen.is_terminal):
        yield _ignore
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=15), MofNCompleteColumn(), _ProductsPerSecond(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=screen) as bar:
        screen.print(title, highlight=False)
        task = bar.add_task("Lanczos", total=total)

        def advance(done: int, note: Callable[[], str] | None) -> None:
            bar.update(task, completed=done, description=None if note is None else note())

        yield advance


def _ignore(done: int, note: Callable[[], str] | None) -> None:
    pass
