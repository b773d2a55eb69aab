"""Local quadratics of a problem, measured with the library's public tools or computed exactly from dense matrices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from eigencurve import DivergenceError, NoisyQuadratic, Schedule, Spectrum
from eigencurve.hessian import (
    HessianOperator,
    NoiseEstimate,
    SpectrumEstimate,
    StartEstimate,
    estimate_noise,
    estimate_spectrum,
    estimate_start,
    start_from_gradient,
)
from eigencurve.spectrum import prepare
from paper.arrays import Array, IntArray
from paper.prediction.problems import Problem
from paper.prediction.scales import Plan

SEED = 0


@dataclass(frozen=True, eq=False)
class LocalQuadratic:
    """A noisy quadratic that stands for a problem."""

    quadratic: NoisyQuadratic  # the noisy quadratic
    dim: int  # number of parameters, by which a loss per dimension is multiplied
    floor: float = 0.0  # excess loss of the quadratic's minimum over the `end` of the problem

    def curve(self, schedule: Schedule, marks: IntArray) -> Array:
        """Predicted excess loss over the problem's ``end`` after each number of steps; infinite if it diverges."""
        try:
            losses = self.quadratic.loss_curve(schedule, marks.tolist()).loss
        except DivergenceError:
            return np.full(len(marks), np.inf)
        return np.asarray(self.floor + self.dim * losses)


@dataclass(frozen=True, eq=False)
class MeasuredPoint:
    """Spectrum and gradient noise of a problem at one point."""

    operator: HessianOperator  # Hessian of the mean loss there
    estimate: SpectrumEstimate  # its measured spectrum
    noise: NoiseEstimate  # the measured noise
    num_steps: int  # number of Lanczos steps for a start

    @property
    def prepared(self) -> Spectrum:
        """The spectrum of |λ| + weight decay."""
        return prepare(self.estimate.spectrum, self.estimate.weight_decay)


@dataclass(frozen=True, eq=False)
class DensePoint:
    """The eigenpairs of a dense Hessian, and the gradient noise along its eigenvectors."""

    eigenvalues: Array  # eigenvalues λ_j of H, weight decay included, in ascending order
    vectors: Array  # eigenvectors u_j as columns
    variances: Array  # variance of one example's gradient along each eigenvector, u_j·C u_j


def measure_point(problem: Problem, weights: Tensor, plan: Plan, folder: Path, progress: bool) -> MeasuredPoint:
    """Measure spectrum and noise at flat weights; checkpoints in ``folder`` make this resumable."""
    operator = problem.operator_at(weights)
    files = [folder / f"prediction-{operator.fingerprint()[:16]}-{part}.npz" for part in ("spectrum", "noise")]
    estimate = estimate_spectrum(
        operator, plan.num_products, seed=SEED, settle=None, weight_decay=problem.weight_decay,
        total_steps=plan.total_steps, checkpoint=files[0], progress=progress,
    )  # fmt: skip
    noise = estimate_noise(
        operator, estimate, problem.batch_size, num_samples=plan.num_samples, num_products=plan.num_steps,
        seed=SEED, checkpoint=files[1], progress=progress,
    )  # fmt: skip
    return MeasuredPoint(operator, estimate, noise, plan.num_steps)


def from_end(problem: Problem, point: MeasuredPoint, start: Tensor) -> LocalQuadratic:
    """The quadratic measured at the problem's ``end``, with the displacement from there to ``start``."""
    displacement, steps = start - problem.end, point.num_steps
    error = estimate_start(point.operator, displacement, point.estimate, num_products=steps, progress=False)
    return _measured(problem, point, error, 0.0)


def from_start(problem: Problem, point: MeasuredPoint, start: Tensor) -> LocalQuadratic:
    """The quadratic measured at ``start``, with the gradient there; its minimum is below the start by its own guess."""
    steps = point.num_steps
    error = start_from_gradient(point.operator, point.noise, point.estimate, num_products=steps, progress=False)
    return _measured(problem, point, error, problem.excess(start) - error.loss)


def from_matrices(problem: Problem, point: DensePoint, start: Tensor, batch_size: int | None = None) -> LocalQuadratic:
    r"""The quadratic at the problem's ``end`` without any measuring error, from dense H, C and Δ.

    .. math:: \sigma_j^2 = \frac{u_j^\top C u_j}{B\lambda_j}, \qquad e_j = \lambda_j\,(u_j^\top\Delta)^2
    """
    noise = point.variances / ((batch_size or problem.batch_size) * point.eigenvalues)
    error = point.eigenvalues * (point.vectors.T @ (start - problem.end).numpy()) ** 2
    return LocalQuadratic(NoisyQuadratic(Spectrum(point.eigenvalues, np.ones(problem.dim)), noise, error), problem.dim)


def dense_point(problem: Problem) -> DensePoint:
    """The eigenpairs of H and the gradient noise along them, at the problem's ``end``."""
    eigenvalues, vectors = np.linalg.eigh(dense_hessian(problem, problem.end))
    return DensePoint(eigenvalues, vectors, (example_gradients(problem, problem.end) @ vectors).var(axis=0))


def dense_hessian(problem: Problem, weights: Tensor) -> Array:
    """The Hessian of the loss at flat weights, weight decay included."""
    operator = problem.operator_at(weights)
    identity = torch.eye(problem.dim, dtype=operator.dtype)
    matrix = torch.stack([operator(column) for column in identity]).numpy()
    return np.asarray((matrix + matrix.T) / 2 + problem.weight_decay * np.eye(problem.dim))


def example_gradients(problem: Problem, weights: Tensor) -> Array:
    """The gradient of every example's loss at flat weights, one row per example."""
    each = vmap(grad(problem.batch_loss), in_dims=(None, 0, 0))
    return np.asarray(each(weights, problem.inputs[:, None], problem.labels[:, None]).numpy())


def _measured(problem: Problem, point: MeasuredPoint, error: StartEstimate, floor: float) -> LocalQuadratic:
    return LocalQuadratic(NoisyQuadratic(point.prepared, point.noise, error), problem.dim, floor)
