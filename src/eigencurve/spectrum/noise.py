"""NoiseEstimate: the gradient noise that was measured in each octave of a Hessian's spectrum."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eigencurve import _check
from eigencurve._arrays import Array, frozen
from eigencurve.spectrum.octaves import Octaves, octaves_from_fields

# g^T H g is significantly above zero if it exceeds this many standard errors.
SIGNIFICANT = 2.0
COLUMNS = ("num_eigenvalues", "eigenvalue_sum", "mass", "gradient", "gradient_error")
COUNTS = ("batch_size", "num_samples", "num_products", "num_examples")


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseEstimate:
    r"""The measured gradient noise of a batch; ``print`` shows a summary.

    The gradient of one example has covariance C, and the mean gradient of B examples has C/B. In each octave of the
    Hessian's spectrum the noise level σ² is the trace of C/B there, divided by the sum of the eigenvalues
    |λ| + weight decay. So σ²λ_j, with λ_j from :func:`eigencurve.prepare`, is the measured noise. Pass the estimate as
    ``NoisyQuadratic(prepared, noise=noise)``.

    Attributes:
        octaves: Noise level σ² of a batch per octave, with standard errors, and the quantities behind it.
        sigma2: One σ² for all octaves: the trace of C/B divided by the sum of all eigenvalues.
        sigma2_error: Standard error of ``sigma2``.
        exponent: Exponent γ in C ∝ H^γ, from the octaves above the weight decay that have enough signal; NaN if there
            are fewer than two of them.
        exponent_error: Standard error of ``exponent``.
        trace: Trace of C, the noise of one example; ``trace / batch_size`` is the noise of a batch.
        trace_hc: Trace of HC.
        gradient_square: Squared length of the mean gradient, without its sampling noise.
        gradient_curvature: g·Hg of the mean gradient g, without its sampling noise.
        gradient_curvature_error: Standard error of ``gradient_curvature``.
        batch_size: Number of examples B in a batch.
        num_samples: Number of sign vectors.
        num_products: Number of Hessian-vector products.
        num_examples: Number of examples m that the noise was measured on.
        seconds: Duration of the measurement; 0 if unknown.
    """

    octaves: Octaves
    sigma2: float
    sigma2_error: float
    exponent: float
    exponent_error: float
    trace: float
    trace_hc: float
    gradient_square: float
    gradient_curvature: float
    gradient_curvature_error: float
    batch_size: int
    num_samples: int
    num_products: int
    num_examples: int
    seconds: float

    @property
    def weight_decay(self) -> float:
        """Weight decay in the octaves' |λ| + weight decay."""
        return self.octaves.weight_decay

    @property
    def critical_batch_size(self) -> float:
        r"""Batch size :math:`\operatorname{tr}(HC) / g^\top H g` above which larger batches hardly save steps.

        It is infinite if g·Hg is not more than two standard errors above zero, because the gradient may
        then be sampling noise. It is NaN if tr(HC) is not positive or g·Hg is clearly negative, because the
        loss then does not curve upwards along the gradient. Reference: McCandlish et al., arXiv:1812.06162, Eq. 2.8.
        """
        limit = SIGNIFICANT * self.gradient_curvature_error
        if self.trace_hc <= 0 or self.gradient_curvature < -limit:
            return math.nan
        return self.trace_hc / self.gradient_curvature if self.gradient_curvature > limit else math.inf

    def levels(self, eigenvalues: Array) -> Array:
        """Noise level σ_j² for each eigenvalue of a spectrum prepared with ``weight_decay``; see :meth:`Octaves.at`."""
        return self.octaves.at(eigenvalues)

    def with_batch_size(self, batch_size: int) -> NoiseEstimate:
        """The noise of batches of another size, which is proportional to 1/B."""
        size = _check.whole("with_batch_size", "batch_size", batch_size, minimum=1)
        ratio, old = self.batch_size / size, self.octaves
        octaves = dataclasses.replace(old, value=frozen(ratio * old.value), error=frozen(ratio * old.error))
        sigma2, error = ratio * self.sigma2, ratio * self.sigma2_error
        return dataclasses.replace(self, octaves=octaves, sigma2=sigma2, sigma2_error=error, batch_size=size)

    @property
    def _critical(self) -> str:
        size, error = self.critical_batch_size, self.gradient_curvature_error
        measured = f"g.Hg = {self.gradient_curvature:.2e} +- {error:.1e}"
        if math.isnan(size):
            return f"critical batch size: undefined, the loss does not curve upwards along the gradient ({measured})"
        if math.isinf(size):
            remedy = "use more examples, or a model earlier in training"
            return f"critical batch size: unknown, the gradient is not larger than its noise ({measured}); {remedy}"
        return f"critical batch size: {size:.3g} +- {size * error / self.gradient_curvature:.1g} examples"

    def __str__(self) -> str:
        duration = f" in {self.seconds:.1f} s" if self.seconds else ""
        samples = f"{self.num_samples} sign vector{'s' if self.num_samples > 1 else ''}"
        law = (
            "the exponent of C ~ H^gamma is unknown: too few octaves with enough signal"
            if math.isnan(self.exponent)
            else f"C ~ H^gamma with gamma = {self.exponent:.2f} +- {self.exponent_error:.2f}"
        )
        return (
            f"{self.num_products} products{duration}, {samples}, {self.num_examples} examples\n"
            f"sigma^2 = {self.sigma2:.3e} +- {self.sigma2_error:.1e} for batches of {self.batch_size}; {law}\n"
            f"tr C = {self.trace:.3e} for one example, {self.trace / self.batch_size:.3e} for a batch; "
            f"tr(HC) = {self.trace_hc:.3e}\n"
            f"{self._critical}\n"
            f"noise per octave of |lambda| + {self.weight_decay:g}\n{self.octaves}"
        )

    def __repr__(self) -> str:
        return f"NoiseEstimate(sigma2={self.sigma2:.4g}, batch_size={self.batch_size}, {len(self.octaves)} octaves)"


def noise_fields(noise: NoiseEstimate) -> dict[str, Any]:
    """The estimate as flat arrays and numbers; an unknown exponent has the error -1, because JSON has no NaN."""
    numbers = {f.name: getattr(noise, f.name) for f in dataclasses.fields(NoiseEstimate) if f.name != "octaves"}
    if math.isnan(noise.exponent):
        numbers |= {"exponent": 0.0, "exponent_error": -1.0}
    return numbers | noise.octaves.fields()


def noise_from_fields(fields: Mapping[str, Any]) -> NoiseEstimate:
    """Restore the estimate from the fields of :func:`noise_fields`.

    Raises:
        KeyError, TypeError, ValueError: A field is missing or invalid.
    """
    names = [f.name for f in dataclasses.fields(NoiseEstimate) if f.name != "octaves"]
    numbers: dict[str, Any] = {name: (int if name in COUNTS else float)(fields[name]) for name in names}
    if numbers["exponent_error"] < 0:
        numbers |= {"exponent": math.nan, "exponent_error": math.nan}
    return NoiseEstimate(octaves=octaves_from_fields(fields, "sigma2", COLUMNS), **numbers)
