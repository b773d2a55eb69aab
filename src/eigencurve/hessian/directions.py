"""The measure of given vectors, such as gradients, in the eigenvectors of a Hessian, by Lanczos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve.hessian.accuracy import CHANGE, Settling
from eigencurve.hessian.estimate import SpectrumEstimate
from eigencurve.hessian.identity import Identity, identity_of
from eigencurve.hessian.lanczos import LanczosOperator
from eigencurve.hessian.loop import LanczosLoop, Start, lanczos_loop
from eigencurve.hessian.settings import EstimateSettings
from eigencurve.spectrum.octaves import Octaves, octave_counts
from eigencurve.spectrum.spectrum import Spectrum

# Weight decay of a spectrum without a record, as in `estimate_spectrum`.
USUAL_DECAY = 5e-4


@dataclass(frozen=True, eq=False)
class DirectionMeasure:
    r"""The measure of a vector v: the mass :math:`(u_j^\top v)^2` at each eigenvalue λ_j.

    Attributes:
        points, masses: Signed eigenvalues and their masses, which sum to the squared length of v.
        earlier: Points and masses after three quarters of the steps, or of the whole run if it is exact.
        curvature: v·Hv.
        exact: Whether the measure is complete.
        num_products: Number of products.
    """

    points: Array
    masses: Array
    earlier: tuple[Array, Array]
    curvature: float
    exact: bool
    num_products: int

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
    """Run Lanczos from each vector and sharpen its measure.

    Args:
        operator: Operator of H.
        starts: Functions that return the vectors.
        settings: Settings of the runs. Below ``weight_decay``, it does not matter how the mass is distributed over |λ|.
        mark: Text that identifies the vectors in a checkpoint, in addition to the operator and the seed.
        examples: Another operator that the vectors are made from.
    """
    settling = Settling(settings.weight_decay, 1, operator.dtype)

    def identity() -> Identity:
        return identity_of(operator, settings.function, settings.seed, starts[0](), mark, examples)

    with lanczos_loop(operator, settings, len(starts), identity) as loop:
        return [_measure(loop, index, start, settling) for index, start in enumerate(starts)]


def _measure(loop: LanczosLoop, index: int, start: Start, settling: Settling) -> DirectionMeasure:
    vector = start()
    square = loop.space.dot(vector, vector)
    if not np.isfinite(square):
        _check.refuse(loop.settings.function, "operator", "one with finite gradients", square)
    run = loop.run(index, lambda: vector)
    if square == 0:
        nothing = frozen(np.zeros(0))
        return DirectionMeasure(nothing, nothing, (nothing, nothing), 0.0, True, 0)
    spectrum = settling.sharpened(run.alphas, run.betas, run.exact).spectrum
    before = spectrum if run.exact or run.num_products < 2 else settling.earlier(run.alphas, run.betas)
    return DirectionMeasure(
        spectrum.eigenvalues,
        frozen(square * spectrum.weights),
        (before.eigenvalues, frozen(square * before.weights)),
        square * float(run.alphas[0]),
        run.exact,
        run.num_products,
    )


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
        _check.refuse(function, "spectrum", f"of the operator, of dimension {operator.dim}", spectrum.dim)
    measured = source.weight_decay if isinstance(source, SpectrumEstimate) else USUAL_DECAY
    decay = _check.positive(function, "weight_decay", measured if weight_decay is None else weight_decay)
    counts = octave_counts(spectrum, decay, operator.dim)
    if isinstance(source, SpectrumEstimate) and decay == source.weight_decay:
        return replace(counts, error=frozen(counts.value * (source.octaves.error / source.octaves.share)))
    return counts
