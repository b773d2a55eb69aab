"""From an operator to its spectrum: probes, steps until the schedule has settled, error bars."""

from __future__ import annotations

import dataclasses
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve.hessian.checkpoint import CheckpointFile, Identity, SavedRun
from eigencurve.hessian.lanczos import LanczosRun, Problem, Recurrence, make_run, without_copies
from eigencurve.hessian.matvec import Matrix, as_operator
from eigencurve.hessian.memory import WORK_VECTORS, MemoryPlan, plan_memory
from eigencurve.hessian.octaves import octave_shares
from eigencurve.hessian.progress import Advance, progress_bar
from eigencurve.hessian.settling import LAST_QUARTER, Settling
from eigencurve.spectrum.measurement import MeasurementRecord, OctaveShares
from eigencurve.spectrum.quadrature import gauss_quadrature, sharpen
from eigencurve.spectrum.spectrum import Spectrum

# A hundred epochs of CIFAR-10 in batches of 128: the length of run that the paper's curves are for.
TYPICAL_STEPS = 39_100


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with the way to go on."""


@dataclass(frozen=True, eq=False)
class SpectrumEstimate:
    """A measured spectrum and how it was measured; ``print`` shows a summary.

    Attributes:
        spectrum: sharpened, signed eigenvalues; :func:`eigencurve.prepare` it with the weight decay.
        nodes, weights: the Gauss nodes of all probes, as they came.
        alphas, betas: the tridiagonal of each probe; the last beta is the residual's norm.
        octaves: the share of every octave of |λ| + weight decay, with its standard error.
        num_products: of all probes; the operator's own checks are not in it.
        num_distinct: how many of the nodes are not copies of another.
        reason: why it stopped: ``"settled"``, ``"num_steps"``, or ``"exact"`` (a small model, all of it found).
        moved: by how much the schedule moved over the last quarter of the steps, as the largest |ln f'/f|.
        weight_decay, total_steps: that ``octaves`` and ``moved`` are for.
        plan: the memory that the run was given.
        seconds: the time it took; of a run that went on from a checkpoint, since then.
    """

    spectrum: Spectrum
    nodes: Array
    weights: Array
    alphas: tuple[Array, ...]
    betas: tuple[Array, ...]
    octaves: OctaveShares
    num_products: int
    num_distinct: int
    reason: str
    moved: float
    weight_decay: float
    total_steps: int
    plan: MemoryPlan
    seconds: float

    def measurement(self, made_by: str = "") -> MeasurementRecord:
        """What :func:`eigencurve.save_spectrum` keeps beside the spectrum: error bars, nodes, tridiagonals, facts."""
        common = {f.name: getattr(self, f.name) for f in dataclasses.fields(MeasurementRecord) if f.name != "made_by"}
        return MeasurementRecord(**common, made_by=made_by)

    def __str__(self) -> str:
        return str(self.measurement())


def estimate_spectrum(
    operator: Problem | Matrix,
    num_steps: int = 250,
    num_probes: int = 1,
    seed: int = 0,
    settle: float | None = 0.02,
    weight_decay: float = 5e-4,
    total_steps: int = TYPICAL_STEPS,
    memory_budget: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> SpectrumEstimate:
    r"""Estimate the eigenvalue distribution of ``operator`` by stochastic Lanczos quadrature, sharpened.

    Each probe is a random direction v; m steps of Lanczos from it give nodes θ and weights w with
    :math:`\sum_i w_i p(\theta_i) = v^\top p(H)\, v \approx \operatorname{tr} p(H) / d` for polynomials p of degree
    below 2m. The first probe decides on the number of steps, and the others take as many.

    Args:
        operator: a :class:`HessianOperator` or :class:`GaussNewtonOperator` of a PyTorch model; of a JAX loss,
            :func:`eigencurve.adapters.jax.hessian_operator`; a :class:`MatvecOperator` of any other function; or a
            symmetric matrix: a NumPy, sparse or torch one, or a SciPy LinearOperator.
        num_steps: of a probe, at most.
        num_probes: how many random directions to average. In d dimensions one has relative error √(2/(d·share)) on an
            octave's share, so a large model needs no more than one.
        seed: of the probes; the same seed gives the same result.
        settle: stop when the schedule has moved by less than this over the last quarter of the steps; None never does.
        weight_decay: that the schedule will be made with.
        total_steps: T of that schedule.
        memory_budget: bytes for all vectors together; see :func:`plan_memory`. Never exceeded.
        checkpoint: a file to save to every few seconds (with the basis beside it) and to go on from where it exists:
            a run that was killed ends with the numbers of one that was not.
        progress: whether to show a bar on a terminal.

    Raises:
        ValueError: a bad argument; a checkpoint that is damaged or belongs to another model, data or seed.
        KeyboardInterrupt: on Ctrl-C, after saving to the checkpoint.

    References: Ghorbani, Krishnan and Xiao, ICML 2019; Ubaru, Chen and Saad, SIAM J. Matrix Anal. Appl. 38 (2017).
    """
    begun, problem = time.monotonic(), as_operator(operator)
    limit = None if settle is None else _check.positive("estimate_spectrum", "settle", settle)
    wanted = min(_check.whole("estimate_spectrum", "num_steps", num_steps, minimum=1), problem.dim)
    num_probes = _check.whole("estimate_spectrum", "num_probes", num_probes, minimum=1)
    seed = _check.whole("estimate_spectrum", "seed", seed, minimum=0)
    decay = _check.positive("estimate_spectrum", "weight_decay", weight_decay, "It is also the scale near zero.")
    horizon = _check.whole("estimate_spectrum", "total_steps", total_steps, minimum=1)
    file = None if checkpoint is None else CheckpointFile(_writable(checkpoint), Identity(problem.fingerprint(), seed))
    saved = None if file is None else file.load()
    plan = _agreed_plan(problem, wanted, memory_budget, saved)
    work = _Work(problem, plan, seed, Settling(decay, horizon, problem.dtype), limit, file, saved)
    with progress_bar(progress and problem.leads, wanted * num_probes, str(plan)) as advance:
        runs = work.run_probes(num_probes, advance)
    return _estimate(runs, work, decay, horizon, time.monotonic() - begun)


class _Work:
    """The loop over probes and steps, with its saving."""

    def __init__(
        self,
        operator: Problem,
        plan: MemoryPlan,
        seed: int,
        settling: Settling,
        limit: float | None,
        file: CheckpointFile | None,
        saved: SavedRun | None,
    ) -> None:
        self.operator, self.plan, self.seed, self.settling, self.limit = operator, plan, seed, settling, limit
        self.file, self.saved = file, saved
        done = [] if saved is None else saved.finished
        self.finished = [shortened(run, plan.num_steps, operator.dtype) for run in done]
        self.reason, self.moved = "num_steps", float("inf")

    def run_probes(self, num_probes: int, advance: Advance) -> list[LanczosRun]:
        for run in self.finished[:1]:
            stops = self._decide(run.alphas, run.betas, run.exact)
            if not stops and len(run.alphas) < self.plan.num_steps:
                need = f"<= {len(run.alphas)}, the steps of the probes that are finished in the checkpoint"
                remedy = "They cannot go on: ask for as many, or give another path."
                _check.refuse("estimate_spectrum", "num_steps", need, self.plan.num_steps, remedy)
        while len(self.finished) < num_probes:
            recurrence = self._begin(len(self.finished))
            try:
                self._run_one(recurrence, advance)
            except KeyboardInterrupt:
                raise Interrupted(self._way_on(recurrence)) from None
            cap = self.plan.num_steps if not self.finished else len(self.finished[0].alphas)
            self.finished.append(shortened(recurrence.result(), cap, self.operator.dtype))
        return self.finished[:num_probes]

    def _begin(self, probe: int) -> Recurrence:
        recurrence = Recurrence(self.operator, self.plan)
        if self.file is not None and self.saved is not None and probe == len(self.saved.finished):
            self.file.restore(self.saved, recurrence)
            return recurrence
        source = torch.Generator().manual_seed(self.seed * 1_000_003 + probe)
        start = torch.randn(self.operator.dim, generator=source, dtype=self.operator.dtype)
        recurrence.start(start.to(self.operator.device))
        return recurrence

    def _run_one(self, run: Recurrence, advance: Advance) -> None:
        first = not self.finished
        cap = self.plan.num_steps if first else len(self.finished[0].alphas)
        looks = set(self.settling.looks(self.plan.num_steps)) | {cap}
        done = sum(len(other.alphas) for other in self.finished)
        while True:
            k = len(run.alphas)
            if first and k in looks and self._decide(np.array(run.alphas), np.array(run.betas), run.exact):
                break
            if run.exact or k >= cap:
                break
            run.step()
            advance(done + k + 1)
            if self.file is not None and self.operator.leads:
                self.file.save_if_due(self.finished, run)
        if first:
            self._decide(np.array(run.alphas)[:cap], np.array(run.betas)[:cap], run.exact and len(run.alphas) <= cap)
        if self.file is not None and self.operator.leads and len(run.alphas) <= cap:
            self.file.save(self.finished, run)

    def _decide(self, alphas: Array, betas: Array, exact: bool) -> bool:
        """Note why the first probe would stop here; whether it does before its cap."""
        if exact:
            self.reason, self.moved = "exact", 0.0
            return True
        if self.limit is None and len(alphas) < self.plan.num_steps:
            return False
        self.moved = self.settling.moved(alphas, betas)
        settled = self.limit is not None and self.moved < self.limit
        self.reason = "settled" if settled else "num_steps"
        return settled

    def _way_on(self, run: Recurrence) -> str:
        done = f"stopped after {len(run.alphas)} of {self.plan.num_steps} steps of probe {len(self.finished)}"
        if self.file is None:
            return f"{done}. Give 'checkpoint' a path to be able to go on after Ctrl-C."
        if self.operator.leads and not run.is_changing:
            self.file.save(self.finished, run)
        saved = f"saved to {self.file.path}" if self.file.path.exists() else f"nothing is in {self.file.path} yet"
        return f"{done}; {saved}. Call estimate_spectrum again with the same arguments to go on."


def _estimate(runs: list[LanczosRun], work: _Work, decay: float, horizon: int, seconds: float) -> SpectrumEstimate:
    dim, dtype = work.operator.dim, work.operator.dtype
    pairs = [gauss_quadrature(run.alphas, run.betas) for run in runs]
    probes = [_sharpened(run, decay, dtype) for run in runs]
    open_runs = [run for run in runs if not run.exact and len(run.alphas) > 3]
    earlier = [shortened(run, int(LAST_QUARTER * len(run.alphas)), dtype) for run in open_runs]
    shorter = [_sharpened(run, decay, dtype) for run in earlier]
    spectrum = _mean(probes, dim)
    return SpectrumEstimate(
        spectrum=spectrum,
        nodes=frozen(np.concatenate([nodes for nodes, _ in pairs])),
        weights=frozen(np.concatenate([weights for _, weights in pairs]) / len(pairs)),
        alphas=tuple(run.alphas for run in runs),
        betas=tuple(run.betas for run in runs),
        octaves=octave_shares(spectrum, probes, shorter, decay, dim),
        num_products=sum(run.num_products for run in runs),
        num_distinct=sum(run.num_distinct for run in runs),
        reason=work.reason,
        moved=work.moved,
        weight_decay=decay,
        total_steps=horizon,
        plan=work.plan,
        seconds=seconds,
    )


def _sharpened(run: LanczosRun, scale: float, dtype: torch.dtype) -> Spectrum:
    if run.exact:
        return Spectrum(*gauss_quadrature(run.alphas, run.betas))
    return sharpen(*without_copies(run, dtype), scale=scale)


def shortened(run: LanczosRun, num_steps: int, dtype: torch.dtype) -> LanczosRun:
    """The run as it was after ``num_steps``: a leading block of its tridiagonal."""
    if len(run.alphas) <= num_steps:
        return run
    return make_run(run.alphas[:num_steps], run.betas[:num_steps], False, dtype)


def _mean(spectra: list[Spectrum], dim: int) -> Spectrum:
    return Spectrum(np.concatenate([s.eigenvalues for s in spectra]), np.concatenate([s.weights for s in spectra]), dim)


def _agreed_plan(operator: Problem, num_steps: int, budget: int | None, saved: SavedRun | None) -> MemoryPlan:
    """The plan that all processes share and, for a run that goes on, the one that it was begun with."""
    plan = plan_memory(operator.dim, num_steps, budget, operator.dtype, operator.device)
    rows = operator.smallest(plan.num_rows)
    if saved is not None and (saved.num_steps >= num_steps or int(saved.fields["generation"]) > 0):
        need = (saved.num_rows + WORK_VECTORS) * plan.vector_bytes
        if need > plan.budget_bytes:
            remedy = "The run in the checkpoint was begun with that much and cannot go on with less."
            _check.refuse("estimate_spectrum", "memory_budget", f">= {need}", plan.budget_bytes, remedy)
        rows = saved.num_rows
    return dataclasses.replace(plan, num_rows=rows)


def _writable(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if not target.parent.is_dir():
        _check.refuse("estimate_spectrum", "checkpoint", "a path in a folder that exists", str(target))
    return target
