"""estimate_spectrum: random probes, Lanczos steps until the schedule has settled, and error bars."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import torch
from torch import Tensor

from eigencurve._arrays import Array, frozen
from eigencurve._check import Arg, ArgumentWarning
from eigencurve._moved import renamed
from eigencurve.hessian.accuracy import SettlingRule, distance_between_probes, note_of, octave_shares, probe_error
from eigencurve.hessian.identity import identity_of
from eigencurve.hessian.lanczos import LanczosOperator, LanczosRun, renew_operator
from eigencurve.hessian.loop import lanczos_loop
from eigencurve.hessian.matvec import Matrix, as_operator
from eigencurve.hessian.memory import MemoryPlan
from eigencurve.hessian.settings import EstimateSettings, seed_of
from eigencurve.hessian.space import space_of
from eigencurve.schedules.eigencurve import Eigencurve, eigencurve
from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum.measurement import MeasurementRecord
from eigencurve.spectrum.quadrature import Sharpened, gauss_quadrature
from eigencurve.spectrum.spectrum import Spectrum, prepare


@dataclass(frozen=True, eq=False, kw_only=True)
class SpectrumEstimate(MeasurementRecord):
    """A measured spectrum with the record of its measurement; ``print`` shows a summary.

    It has all attributes of :class:`eigencurve.spectrum.measurement.MeasurementRecord`, and:

    Attributes:
        spectrum: Sharpened spectrum with signed eigenvalues. Pass it to :func:`eigencurve.spectrum.prepare`.
        plan: Memory plan of the run.
    """

    spectrum: Spectrum
    plan: MemoryPlan

    __repr__ = MeasurementRecord.__repr__

    def measurement(self, made_by: str = "") -> MeasurementRecord:
        """The record that :func:`eigencurve.save_spectrum` stores with the spectrum."""
        shared = {field.name: getattr(self, field.name) for field in fields(MeasurementRecord)}
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
    degree below 2m. The nodes are then sharpened into a density. All probes take as many steps as the first.

    Args:
        operator: A :class:`HessianOperator`, :class:`GaussNewtonOperator` or :class:`MatvecOperator`, the
            :func:`eigencurve.adapters.jax.hessian_operator` of a JAX loss, one of these preconditioned by an optimizer,
            or a symmetric matrix (NumPy, SciPy sparse, torch, or a SciPy LinearOperator).
        num_products: Maximum number of products, or Lanczos steps, per probe.
        num_probes: Number of random directions to average. In d dimensions, one probe has a relative error of
            √(2/(d·share)) on the share of an octave, so one is enough for a large model.
        seed: Seed of the probes. The same seed gives the same result.
        settle: Stop once the schedule has changed by less than this over the last quarter of the steps, as the largest
            |ln f'/f|. None always takes ``num_products`` steps. This is the error along one probe. More probes reduce
            the error between probes (``error_between_probes`` of the result); more steps usually do not.
        weight_decay: Weight decay of the run that the schedule is for.
        total_steps: Number of steps T of that run.
        memory_budget: Upper limit in bytes for all vectors together; see :func:`plan_memory`.
        checkpoint: File to save to every few seconds, with the basis in a second file next to it. If the file
            exists, the run resumes and ends with the same numbers as an uninterrupted run, after one product and one
            gradient that check that it belongs to this loss and model.
        progress: Whether to show a progress bar on a terminal.

    Raises:
        ValueError: If an argument is invalid; if the checkpoint is damaged, in use, or of another model, loss, data set
            or seed; or if the operator changes during the run (each probe repeats its first product).
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
    identity = partial(identity_of, operator, settings.function, settings.seed)
    with lanczos_loop(operator, settings, settings.num_probes, identity, "probe") as loop:
        rule = SettlingRule(operator, settings, loop.plan)
        runs: list[LanczosRun] = []
        for index in range(settings.num_probes):
            start = partial(_random_vector, operator, settings.seed, index)
            # The first probe decides how many steps the others take.
            runs.append(loop.run(index, start, len(runs[0].alphas)) if runs else loop.run(index, start, rule=rule))
        estimate = _summary(operator, settings, loop.plan, runs, rule, started)
        note = partial(note_of, estimate.schedule_change, estimate.error_between_probes)
        loop.advance(estimate.num_products, note)
    return estimate


def schedule_of(estimate: SpectrumEstimate, lr: float, min_lr: float | None = None, beta: float = 2.0) -> Eigencurve:
    """Eigencurve schedule of a measured spectrum, for the weight decay and the steps that it was measured for."""
    return eigencurve(prepare(estimate.spectrum, estimate.weight_decay), estimate.total_steps, lr, min_lr, beta)


def warn_if_unsettled(caller: str, estimate: SpectrumEstimate) -> None:
    """Warn the user of ``caller``, a public function, if the estimate behind its schedule has not settled."""
    if estimate.warning:
        words = (f"{caller}: {estimate.warning} Pass a larger ", Arg("num_products"), ".")
        warnings.warn(ArgumentWarning(words), stacklevel=3)


def _random_vector(operator: LanczosOperator, seed: int, index: int) -> Tensor:
    source = torch.Generator().manual_seed(seed_of(seed, index))
    return space_of(operator).normal(source, operator.dtype).to(operator.device)


def _summary(
    operator: LanczosOperator,
    settings: EstimateSettings,
    plan: MemoryPlan,
    runs: Sequence[LanczosRun],
    rule: SettlingRule,
    started: float,
) -> SpectrumEstimate:
    settling, dim, num_unused = rule.settling, operator.dim, rule.settling.num_unused
    nodes, weights = _quadrature(runs, dim, num_unused)
    probes = [settling.sharpened(run.alphas, run.betas, run.exact) for run in runs]
    spectrum = Spectrum(
        np.concatenate([probe.spectrum.eigenvalues for probe in probes]),
        np.concatenate([probe.spectrum.weights for probe in probes]),
        dim,
    )
    earlier = [settling.earlier(run.alphas, run.betas) for run in runs if not run.exact and len(run.alphas) > 3]
    return SpectrumEstimate(
        spectrum=spectrum,
        nodes=nodes,
        weights=weights,
        alphas=tuple(run.alphas for run in runs),
        betas=tuple(run.betas for run in runs),
        octaves=octave_shares(spectrum, probes, earlier, settings.weight_decay, dim),
        num_products=sum(run.num_products for run in runs),
        num_distinct=sum(run.num_distinct for run in runs),
        reason=rule.reason,
        schedule_change=rule.schedule_change,
        total_steps=settings.total_steps,
        plan=plan,
        seconds=time.monotonic() - started,
        counted=_distinct(probes),
        error_between_probes=probe_error(probes, settings.weight_decay, settings.total_steps, dim),
        distance_between_probes=distance_between_probes(probes, settings.weight_decay, settings.total_steps),
        preconditioner=getattr(operator, "preconditioner", ""),
        num_unused=num_unused,
    )


def _quadrature(runs: Sequence[LanczosRun], dim: int, num_unused: int) -> tuple[Array, Array]:
    """Gauss nodes and weights of all probes, and a node at zero for the parameters that are not used."""
    rules = [gauss_quadrature(run.alphas, run.betas) for run in runs]
    nodes = np.concatenate([rule_nodes for rule_nodes, _ in rules])
    weights = np.concatenate([rule_weights for _, rule_weights in rules])
    if num_unused:
        nodes = np.append(nodes, 0.0)
        weights = np.append(weights * (dim - num_unused) / dim, len(runs) * num_unused / dim)
    return frozen(nodes), frozen(weights / len(runs))


def _distinct(probes: Sequence[Sharpened]) -> Array:
    """The counted eigenvalues of all probes in ascending order, each once.

    Two probes agree on an eigenvalue up to 1 % of its distance to the others, so values that differ by less than 5 %
    of it are one.
    """
    counted = probes[0].counted
    for probe in probes[1:]:
        gaps = np.diff(probe.counted, prepend=-np.inf, append=np.inf)
        nearest = np.minimum(np.minimum(gaps[:-1], gaps[1:]), np.abs(probe.counted))
        distances = np.abs(probe.counted[:, None] - counted).min(axis=1, initial=np.inf)
        counted = np.sort(np.concatenate((counted, probe.counted[distances > 0.05 * nearest])))
    return frozen(counted)
