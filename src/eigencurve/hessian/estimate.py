"""estimate_spectrum: random probes, Lanczos steps until the schedule has settled, and error bars."""

from __future__ import annotations

import dataclasses
import math
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve._moved import renamed
from eigencurve.hessian.checkpoint import CheckpointFile, SavedRun, reserved
from eigencurve.hessian.identity import identity_of
from eigencurve.hessian.lanczos import LanczosOperator, LanczosRun, Recurrence, make_run, renew_operator
from eigencurve.hessian.matvec import Matrix, as_operator
from eigencurve.hessian.memory import WORK_VECTORS, MemoryPlan, plan_memory
from eigencurve.hessian.octaves import octave_shares
from eigencurve.hessian.probe_error import distance_between, probe_error
from eigencurve.hessian.progress import Advance, progress_bar
from eigencurve.hessian.settings import EstimateSettings, seed_of
from eigencurve.hessian.settling import COMPARED_FROM, Settling
from eigencurve.hessian.space import space_of
from eigencurve.schedules.eigencurve import Eigencurve, eigencurve
from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum.measurement import MeasurementRecord
from eigencurve.spectrum.quadrature import Sharpened, gauss_quadrature
from eigencurve.spectrum.spectrum import Spectrum, prepare

FUNCTION = "estimate_spectrum"


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


@dataclass(frozen=True, eq=False, kw_only=True)
class SpectrumEstimate(MeasurementRecord):
    """A measured spectrum together with the record of its measurement; ``print`` shows a summary.

    Attributes:
        spectrum: Sharpened spectrum with signed eigenvalues. Pass it to :func:`eigencurve.prepare`.
        plan: Memory plan of the run.
        nodes, weights: Raw Gauss nodes and weights of all probes.
        alphas, betas: Tridiagonal of each probe, on the parameters that are used. The last beta is the norm of the
            residual.
        octaves: Share of the eigenvalues in each octave of |λ| + weight decay, with standard errors.
        num_products: Number of products of all probes, without those that check the operator.
        num_distinct: Number of nodes that are not copies of another node.
        reason: Why the run stopped: ``"settled"``, ``"num_steps"``, or ``"exact"`` if a small problem was solved
            completely.
        schedule_change: Largest |ln f'/f| between the schedules of the last quarter of the steps.
        total_steps: Number of steps of the schedule behind ``schedule_change`` and ``error_between_probes``.
        seconds: Duration in seconds; after a resume, the time since the resume.
        counted: Eigenvalues that were found one by one (see :mod:`eigencurve.spectrum.counting`), of all probes.
        error_between_probes: Typical distance between the schedules of two estimates from other probes, as the
            largest |ln f/g|, predicted from the standard errors of the octaves.
        distance_between_probes: Largest |ln f/g| that was measured between the schedules of single probes; NaN with
            one probe.
        preconditioner: Optimizer in whose metric the spectrum was measured, or an empty string.
        num_unused: Number of parameters that the loss does not depend on, such as embeddings of words that do not
            occur. Their eigenvalues are exactly zero. Probes leave them out; ``spectrum``, ``nodes`` and ``weights``
            include them.
    """

    spectrum: Spectrum
    plan: MemoryPlan

    __repr__ = MeasurementRecord.__repr__

    def measurement(self, made_by: str = "") -> MeasurementRecord:
        """The record that :func:`eigencurve.save_spectrum` stores with the spectrum."""
        shared = {field.name: getattr(self, field.name) for field in dataclasses.fields(MeasurementRecord)}
        return MeasurementRecord(**{**shared, "made_by": made_by})


@renamed(num_steps="num_products")
def estimate_spectrum(
    operator: LanczosOperator | Matrix,
    num_products: int = 250,
    *,
    num_probes: int = 1,
    seed: int = 0,
    settle: float | None = 0.02,
    weight_decay: float = 5e-4,
    total_steps: int = TYPICAL_STEPS,
    memory_budget: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> SpectrumEstimate:
    r"""Estimate the eigenvalue distribution of a symmetric operator by stochastic Lanczos quadrature.

    Each probe is a random direction v. From it, m Lanczos steps give nodes θ and weights w with
    :math:`\sum_i w_i p(\theta_i) = v^\top p(H)\, v \approx \operatorname{tr} p(H) / d` for all polynomials p of
    degree below 2m. The nodes are then sharpened into a density. The first probe decides how many steps to take; the
    others take the same number.

    Args:
        operator: A :class:`HessianOperator` or :class:`GaussNewtonOperator` of a PyTorch model, the
            :func:`eigencurve.adapters.jax.hessian_operator` of a JAX loss, a :class:`MatvecOperator` of any other
            function, one of these preconditioned by an optimizer (:class:`PreconditionedOperator`), or a symmetric
            matrix (NumPy, SciPy sparse, torch, or a SciPy LinearOperator).
        num_products: Maximum number of products, or Lanczos steps, per probe.
        num_probes: Number of random directions to average. In d dimensions, one probe has a relative error of
            √(2/(d·share)) on the share of an octave, so one is enough for a large model.
        seed: Seed of the probes. The same seed gives the same result.
        settle: Stop once the schedule has moved by less than this over the last quarter of the steps, measured as the
            largest |ln f'/f|. None always takes ``num_products`` steps. This is the error along one probe. The error
            across probes is ``error_between_probes`` of the result; more probes reduce it, more steps usually do not.
        weight_decay: Weight decay of the run that the schedule is for.
        total_steps: Number of steps T of that run.
        memory_budget: Upper limit in bytes for all vectors together; see :func:`plan_memory`.
        checkpoint: File to save to every few seconds, with the basis in a second file next to it. If the file
            exists, the run resumes from it and ends with the same numbers as an uninterrupted run. One product and one
            gradient more make sure that it belongs to this loss and model.
        progress: Whether to show a progress bar on a terminal.

    Raises:
        ValueError: If an argument is invalid, or if the checkpoint is damaged, is in use by another process, or
            belongs to another model, loss, data set or seed. Also if the operator changes during the run: at the end
            of each probe, its first product is computed once more and must be the same.
        CheckpointError: If the checkpoint cannot be written, for example because the disk is full (an OSError).
        KeyboardInterrupt: On Ctrl-C, after saving to the checkpoint.

    References: Ghorbani, Krishnan and Xiao, ICML 2019; Ubaru, Chen and Saad, SIAM J. Matrix Anal. Appl. 38 (2017).
    """
    settings = EstimateSettings(
        num_products=num_products, num_probes=num_probes, seed=seed, settle=settle, weight_decay=weight_decay,
        total_steps=total_steps, memory_budget=memory_budget, checkpoint=checkpoint, progress=progress,
    )  # fmt: skip
    return run_estimate(as_operator(operator), settings)


def run_estimate(operator: LanczosOperator, settings: EstimateSettings) -> SpectrumEstimate:
    """Estimate the spectrum of ``operator``; see :func:`estimate_spectrum`."""
    started = time.monotonic()
    renew_operator(operator)
    with reserved(settings.checkpoint, FUNCTION, operator.is_main_process):
        loop = _ProbeLoop(operator, settings)
        shown = settings.progress and operator.is_main_process
        with progress_bar(shown, loop.plan.num_products * settings.num_probes, str(loop.plan)) as advance:
            runs = loop.run(advance)
            estimate = _summary(runs, loop, time.monotonic() - started)
            advance(estimate.num_products, lambda: _note(estimate.schedule_change, estimate.error_between_probes))
    return estimate


def schedule_of(estimate: SpectrumEstimate, lr: float, min_lr: float | None = None, beta: float = 2.0) -> Eigencurve:
    """Eigencurve schedule of a measured spectrum, for the weight decay and the steps that it was measured for."""
    return eigencurve(prepare(estimate.spectrum, estimate.weight_decay), estimate.total_steps, lr, min_lr, beta)


def warn_if_unsettled(caller: str, estimate: SpectrumEstimate) -> None:
    """Warn the user of ``caller``, a public function, if the estimate behind its schedule has not settled."""
    if estimate.warning:
        warnings.warn(f"{caller}: {estimate.warning} Pass a larger 'num_products'.", stacklevel=3)


class _ProbeLoop:
    """The loop over probes and their Lanczos steps, with its checkpoints."""

    def __init__(self, operator: LanczosOperator, settings: EstimateSettings) -> None:
        self.operator, self.settings, space = operator, settings, space_of(operator)
        self.file: CheckpointFile | None = None
        self.saved: SavedRun | None = None
        if settings.checkpoint is not None:
            path = Path(settings.checkpoint).absolute()
            self.file = CheckpointFile(path, identity_of(operator, FUNCTION, settings.seed), space)
            self.saved = self.file.load()
        self.output = self.file if operator.is_main_process or space.is_shared else None
        self.plan = _shared_plan(operator, settings, self.saved)
        self.settling = Settling(
            settings.weight_decay, settings.total_steps, operator.dtype, operator.dim, self.plan.num_rows
        )
        self.settling.num_unused = 0 if self.saved is None else self.saved.num_unused
        done = [] if self.saved is None else self.saved.finished
        self.finished = [shortened(run, self.plan.num_products, operator.dtype) for run in done]
        self.reason, self.moved = "num_steps", float("inf")

    def run(self, advance: Advance) -> list[LanczosRun]:
        """All probes, finished."""
        if self.finished:
            self._require_enough_steps(self.finished[0])
        while len(self.finished) < self.settings.num_probes:
            recurrence = self._begin(len(self.finished))
            try:
                self._run_probe(recurrence, advance)
            except KeyboardInterrupt:
                raise self._interrupted(recurrence) from None
            self.finished.append(shortened(recurrence.result(), self._step_limit, self.operator.dtype))
        return self.finished[: self.settings.num_probes]

    @property
    def _step_limit(self) -> int:
        """The most steps of the next probe: the first one decides for the others."""
        return len(self.finished[0].alphas) if self.finished else self.plan.num_products

    def _require_enough_steps(self, run: LanczosRun) -> None:
        stops = self._decide(run.alphas, run.betas, run.exact)
        if not stops and len(run.alphas) < self.plan.num_products:
            need = f"<= {len(run.alphas)}, the number of steps of the finished probes in the checkpoint"
            remedy = "Finished probes cannot take more steps: lower 'num_products', or start again with another path."
            _check.refuse(FUNCTION, "num_products", need, self.plan.num_products, remedy)

    def _begin(self, probe: int) -> Recurrence:
        recurrence = Recurrence(self.operator, self.plan)
        if self.file is not None and self.saved is not None and _has_steps_of(self.saved, probe):
            self.file.restore(self.saved, recurrence)
            return recurrence
        recurrence.start(self._random_vector(probe), is_probe=True)
        return recurrence

    def _random_vector(self, probe: int) -> Tensor:
        source = torch.Generator().manual_seed(seed_of(self.settings.seed, probe))
        return space_of(self.operator).normal(source, self.operator.dtype).to(self.operator.device)

    def _run_probe(self, run: Recurrence, advance: Advance) -> None:
        first, limit = not self.finished, self._step_limit
        compared = {*self.settling.step_counts(self.plan.num_products), limit}
        done = sum(len(other.alphas) for other in self.finished)
        num_before = len(run.alphas)
        while True:
            k = len(run.alphas)
            if first and k in compared:
                if self._stops(run):
                    break
                if self.settings.settle is not None:
                    advance(done + k, lambda: self._errors_so_far(run))
            if run.exact or k >= limit:
                break
            run.step()
            if first:
                self.settling.num_unused = run.num_unused
            advance(done + k + 1)
            if self.output is not None:
                self.output.save_if_due(self.finished, run)
        if len(run.alphas) > num_before:
            self._require_unchanged(run)
        if first:
            exact = run.exact and len(run.alphas) <= limit
            self._decide(np.array(run.alphas)[:limit], np.array(run.betas)[:limit], exact)
        if self.output is not None and len(run.alphas) <= limit:
            self.output.save(self.finished, run)

    def _require_unchanged(self, run: Recurrence) -> None:
        run.require_unchanged(FUNCTION, self._random_vector(len(self.finished)).to(self.plan.device))

    def _stops(self, run: Recurrence) -> bool:
        """Whether the first probe stops here."""
        try:
            return self._decide(np.array(run.alphas), np.array(run.betas), run.exact)
        except np.linalg.LinAlgError:  # the moments of a matrix that changes may be those of no measure
            self._require_unchanged(run)
            raise

    def _decide(self, alphas: Array, betas: Array, exact: bool) -> bool:
        """Record why the first probe would stop here, and return whether it stops before its last step."""
        limit = self.settings.settle
        if exact:
            self.reason, self.moved = "exact", 0.0
            return True
        if limit is None and len(alphas) < self.plan.num_products:
            return False
        self.moved = self.settling.moved(alphas, betas)
        settled = limit is not None and self.moved < limit
        self.reason = "settled" if settled else "num_steps"
        return settled

    def _errors_so_far(self, run: Recurrence) -> str:
        probe = self.settling.sharpened(np.array(run.alphas), np.array(run.betas))
        settings = self.settings
        across = probe_error([probe], settings.weight_decay, settings.total_steps, self.operator.dim)
        return _note(self.moved, across)

    def _interrupted(self, run: Recurrence) -> Interrupted:
        """Save if the state is consistent, and return the exception for the user."""
        # Several processes stop at different steps, so they keep the last state that all of them saved.
        if self.output is not None and not run.is_changing and not run.space.is_shared:
            self.output.save(self.finished, run)
        progress = (
            f"stopped after {len(run.alphas)} of {self.plan.num_products} steps of probe {len(self.finished) + 1}"
        )
        return Interrupted(FUNCTION, progress, None if self.file is None else self.file.path)


def _note(along: float, across: float) -> str:
    """The errors of the schedule along one probe and across probes, short enough for the progress bar."""
    return f"{'along ?' if math.isinf(along) else f'along {along:.1%}'}, across {across:.1%}"


def _summary(runs: list[LanczosRun], loop: _ProbeLoop, seconds: float) -> SpectrumEstimate:
    settings, dim, num_unused = loop.settings, loop.operator.dim, loop.settling.num_unused
    rules = [gauss_quadrature(run.alphas, run.betas) for run in runs]
    nodes, weights = np.concatenate([rule[0] for rule in rules]), np.concatenate([rule[1] for rule in rules])
    if num_unused:
        nodes, weights = (
            np.append(nodes, 0.0),
            np.append(weights * (dim - num_unused) / dim, len(runs) * num_unused / dim),
        )
    probes = [loop.settling.sharpened(run.alphas, run.betas, run.exact) for run in runs]
    spectrum = Spectrum(
        np.concatenate([probe.spectrum.eigenvalues for probe in probes]),
        np.concatenate([probe.spectrum.weights for probe in probes]),
        dim,
    )
    return SpectrumEstimate(
        spectrum=spectrum,
        nodes=frozen(nodes),
        weights=frozen(weights / len(runs)),
        alphas=tuple(run.alphas for run in runs),
        betas=tuple(run.betas for run in runs),
        octaves=octave_shares(spectrum, probes, _earlier(runs, loop.settling), settings.weight_decay, dim),
        num_products=sum(run.num_products for run in runs),
        num_distinct=sum(run.num_distinct for run in runs),
        reason=loop.reason,
        schedule_change=loop.moved,
        total_steps=settings.total_steps,
        plan=loop.plan,
        seconds=seconds,
        counted=_distinct(probes),
        error_between_probes=probe_error(probes, settings.weight_decay, settings.total_steps, dim),
        distance_between_probes=distance_between(probes, settings.weight_decay, settings.total_steps),
        preconditioner=getattr(loop.operator, "preconditioner", ""),
        num_unused=num_unused,
    )


def _distinct(probes: list[Sharpened]) -> Array:
    """The counted eigenvalues of all probes in ascending order, each once.

    Two probes find the same eigenvalue up to 1 % of its distance to the others, so values that differ by less than 5 %
    of it are one.
    """
    found = probes[0].counted
    for probe in probes[1:]:
        gaps = np.diff(probe.counted, prepend=-np.inf, append=np.inf)
        nearest = np.minimum(np.minimum(gaps[:-1], gaps[1:]), np.abs(probe.counted))
        distances = np.abs(probe.counted[:, None] - found).min(axis=1, initial=np.inf)
        found = np.sort(np.concatenate((found, probe.counted[distances > 0.05 * nearest])))
    return frozen(found)


def _earlier(runs: list[LanczosRun], settling: Settling) -> list[Spectrum]:
    """Spectrum of each probe after three quarters of its steps, for probes that are not exact."""
    counted = [(run, int(COMPARED_FROM * len(run.alphas))) for run in runs if not run.exact and len(run.alphas) > 3]
    return [settling.sharpened(run.alphas[:count], run.betas[:count]).spectrum for run, count in counted]


def shortened(run: LanczosRun, num_steps: int, dtype: torch.dtype) -> LanczosRun:
    """The run as it was after ``num_steps`` steps: the leading block of its tridiagonal."""
    if len(run.alphas) <= num_steps:
        return run
    return make_run(run.alphas[:num_steps], run.betas[:num_steps], False, dtype)


def _has_steps_of(saved: SavedRun, probe: int) -> bool:
    """Whether ``probe`` is the unfinished one of a checkpoint and has taken at least one step."""
    done, num_steps = saved.progress
    return probe == done and num_steps > 0


def _shared_plan(operator: LanczosOperator, settings: EstimateSettings, saved: SavedRun | None) -> MemoryPlan:
    """The memory plan that all processes share; a resumed run keeps the plan that it started with."""
    num_steps = min(settings.num_products, operator.dim)
    size = space_of(operator).size
    plan = plan_memory(size, num_steps, settings.memory_budget, operator.dtype, operator.device)
    rows = operator.min_over_processes(plan.num_rows)
    if saved is not None and (saved.num_steps >= num_steps or int(saved.fields["generation"]) > 0):
        need = (saved.num_rows + WORK_VECTORS) * plan.vector_bytes
        if need > plan.budget_bytes:
            remedy = "The run in the checkpoint started with that much memory and cannot resume with less."
            _check.refuse(FUNCTION, "memory_budget", f">= {need}", plan.budget_bytes, remedy)
        rows = saved.num_rows
    return dataclasses.replace(plan, num_rows=rows)
