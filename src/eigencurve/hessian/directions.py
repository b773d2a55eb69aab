"""Lanczos from given vectors, such as gradients: resumable runs, and the measure of each vector in H's eigenvectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch import Tensor

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve.hessian.checkpoint import CheckpointFile, SavedRun, reserved
from eigencurve.hessian.estimate import Interrupted, SpectrumEstimate
from eigencurve.hessian.identity import identity_of
from eigencurve.hessian.lanczos import LanczosOperator, LanczosRun, Recurrence
from eigencurve.hessian.memory import MemoryPlan, plan_memory
from eigencurve.hessian.octaves import CHANGE
from eigencurve.hessian.progress import progress_bar
from eigencurve.hessian.settings import EstimateSettings
from eigencurve.hessian.settling import COMPARED_FROM, Settling
from eigencurve.hessian.space import space_of
from eigencurve.spectrum.octaves import Octaves, octave_counts
from eigencurve.spectrum.spectrum import Spectrum

Start = Callable[[], Tensor]
# Weight decay of a spectrum without a record, as in `estimate_spectrum`.
USUAL_DECAY = 5e-4


@dataclass(frozen=True, eq=False)
class DirectionMeasure:
    r"""The measure of a vector v: the mass :math:`(u_j^\top v)^2` at each eigenvalue λ_j.

    Attributes:
        points, masses: Signed eigenvalues and their masses, which sum to the squared length of v.
        earlier: Points and masses after three quarters of the steps; those of the whole run if it is exact.
        curvature: v·Hv.
        exact: Whether the run found every eigenvalue that v has a part in.
        num_products: Number of products.
    """

    points: Array
    masses: Array
    earlier: tuple[Array, Array]
    curvature: float
    exact: bool
    num_products: int

    @property
    def square(self) -> float:
        """Squared length of v."""
        return float(self.masses.sum())

    def octaves(self, grid: Octaves) -> Array:
        """Mass in each octave."""
        return grid.total(self.points, self.masses)

    def change(self, grid: Octaves) -> Array:
        """Part of the change over the last quarter of the steps that counts as an error, per octave."""
        return CHANGE * (self.octaves(grid) - grid.total(*self.earlier))


def measure_directions(
    operator: LanczosOperator,
    starts: Sequence[Start],
    settings: EstimateSettings,
    mark: str = "",
    examples: LanczosOperator | None = None,
) -> list[DirectionMeasure]:
    """Run Lanczos from each vector and sharpen what it gives.

    Args:
        operator: Operator of H.
        starts: Functions that return the vectors. Each is called once, also for runs that a checkpoint has finished;
            the first is called once more if there is a checkpoint, which holds numbers of that vector.
        settings: Settings of the runs. Below ``weight_decay``, it does not matter how the mass is distributed over |λ|.
        mark: Text that identifies the vectors in a checkpoint, in addition to the operator and the seed.
        examples: Another operator that the vectors are made from.
    """
    settling = Settling(settings.weight_decay, 1, operator.dtype)
    shown = settings.progress and operator.is_main_process
    with reserved(settings.checkpoint, settings.function, operator.is_main_process):
        loop = _DirectionLoop(operator, settings, _checkpoint_file(operator, settings, starts[0], mark, examples))
        with progress_bar(shown, loop.plan.num_products * len(starts), str(loop.plan)) as advance:
            runs = [loop.run(index, start, advance) for index, start in enumerate(starts)]
    return [_measure(square, run, settling) for square, run in runs]


def grid_of(
    function: str, operator: LanczosOperator, source: Spectrum | SpectrumEstimate, weight_decay: float | None
) -> Octaves:
    """The number of eigenvalues in each octave of a spectrum of the operator, and its standard error.

    The errors are zero for a Spectrum, and for an estimate that was made with another weight decay.
    """
    spectrum = source.spectrum if isinstance(source, SpectrumEstimate) else source
    if not isinstance(spectrum, Spectrum):
        _check.wrong_type(function, "spectrum", "a Spectrum or a SpectrumEstimate", source)
    if spectrum.dim not in (None, operator.dim):
        _check.refuse(function, "spectrum", f"that of the operator, of dimension {operator.dim}", spectrum.dim)
    measured = source.weight_decay if isinstance(source, SpectrumEstimate) else USUAL_DECAY
    decay = _check.positive(function, "weight_decay", measured if weight_decay is None else weight_decay)
    counts = octave_counts(spectrum, decay, operator.dim)
    if isinstance(source, SpectrumEstimate) and decay == source.weight_decay:
        return replace(counts, error=frozen(counts.value * (source.octaves.error / source.octaves.share)))
    return counts


def _checkpoint_file(
    operator: LanczosOperator, settings: EstimateSettings, first: Start, mark: str, examples: LanczosOperator | None
) -> CheckpointFile | None:
    """The checkpoint of the runs, if the settings have one; ``first`` is the first vector."""
    if settings.checkpoint is None:
        return None
    path = Path(settings.checkpoint).absolute()
    identity = identity_of(operator, settings.function, settings.seed, first(), mark, examples)
    return CheckpointFile(path, identity, space_of(operator))


class _DirectionLoop:
    """The loop over vectors and their Lanczos steps, with its checkpoints."""

    def __init__(self, operator: LanczosOperator, settings: EstimateSettings, file: CheckpointFile | None) -> None:
        self.operator, self.settings, self.space = operator, settings, space_of(operator)
        self.file = file
        self.saved: SavedRun | None = None if file is None else file.load()
        self.output = self.file if operator.is_main_process or self.space.is_shared else None
        self.plan = self._plan()
        self.finished = [] if self.saved is None else list(self.saved.finished)

    def run(self, index: int, start: Start, advance: Callable[[int], None]) -> tuple[float, LanczosRun]:
        """Squared length of one vector, and its run."""
        vector = start()
        square = self.space.dot(vector, vector)
        if not np.isfinite(square):
            _check.refuse(self.settings.function, "operator", "one with finite gradients", square)
        if index >= len(self.finished):
            recurrence = Recurrence(self.operator, self.plan)
            try:
                self.finished.append(self._lanczos(recurrence, vector, square, advance))
            except KeyboardInterrupt:
                raise self._interrupted(recurrence) from None
        return square, self.finished[index]

    def _lanczos(
        self, recurrence: Recurrence, vector: Tensor, square: float, advance: Callable[[int], None]
    ) -> LanczosRun:
        if square == 0:
            return LanczosRun(frozen(np.zeros(0)), frozen(np.zeros(0)), True, 0)
        if self.file is not None and self.saved is not None and len(self.finished) == len(self.saved.finished):
            self.file.restore(self.saved, recurrence)
        else:
            recurrence.start(vector)
        done, num_before = sum(run.num_products for run in self.finished), len(recurrence.alphas)
        while not recurrence.is_done:
            recurrence.step()
            advance(done + len(recurrence.alphas))
            if self.output is not None:
                self.output.save_if_due(self.finished, recurrence)
        if len(recurrence.alphas) > num_before:
            recurrence.require_unchanged(self.settings.function, vector.to(self.plan.device))
        if self.output is not None:
            self.output.save(self.finished, recurrence)
        return recurrence.result()

    def _plan(self) -> MemoryPlan:
        """The memory plan that all processes share; a resumed run must have the steps and rows that it started with."""
        function, operator, num_products = self.settings.function, self.operator, self.settings.num_products
        budget = self.settings.memory_budget
        plan = plan_memory(self.space.size, min(num_products, operator.dim), budget, operator.dtype, operator.device)
        rows = operator.min_over_processes(plan.num_rows)
        if self.saved is not None:
            if self.saved.num_steps != plan.num_products:
                _check.refuse(function, "num_products", f"{self.saved.num_steps}, as in the checkpoint", num_products)
            rows = self.saved.num_rows
        plan = dataclasses.replace(plan, num_rows=rows)
        if plan.num_bytes > plan.budget_bytes:
            remedy = "The run in the checkpoint started with that much memory and cannot resume with less."
            _check.refuse(function, "memory_budget", f">= {plan.num_bytes}", plan.budget_bytes, remedy)
        return plan

    def _interrupted(self, run: Recurrence) -> Interrupted:
        """Save if the state is consistent, and return the exception for the user."""
        # Several processes stop at different steps, so they keep the last state that all of them saved.
        if self.output is not None and not run.is_changing and run.basis.num_used and not self.space.is_shared:
            self.output.save(self.finished, run)
        progress = (
            f"stopped after {len(run.alphas)} of {self.plan.num_products} steps of vector {len(self.finished) + 1}"
        )
        return Interrupted(self.settings.function, progress, None if self.file is None else self.file.path)


def _measure(square: float, run: LanczosRun, settling: Settling) -> DirectionMeasure:
    if run.num_products == 0:
        nothing = frozen(np.zeros(0))
        return DirectionMeasure(nothing, nothing, (nothing, nothing), 0.0, True, 0)
    found = settling.sharpened(run.alphas, run.betas, run.exact).spectrum
    count = int(COMPARED_FROM * run.num_products)
    before = found
    if not run.exact and count > 0:
        before = settling.sharpened(run.alphas[:count], run.betas[:count]).spectrum
    return DirectionMeasure(
        found.eigenvalues,
        frozen(square * found.weights),
        (before.eigenvalues, frozen(square * before.weights)),
        square * float(run.alphas[0]),
        run.exact,
        run.num_products,
    )
