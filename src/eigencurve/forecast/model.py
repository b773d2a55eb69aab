"""The noisy quadratic behind a forecast: two measures over the curvature λ, and the loss that they give a schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, psi

from eigencurve._arrays import Array, IntArray, frozen
from eigencurve.forecast.runs import tabulated
from eigencurve.schedules.base import Schedule
from eigencurve.theory.nodes import Nodes
from eigencurve.theory.recursion import states

# The largest λ, in units of one over the largest logged rate: noise that one or two steps forget.
LARGEST = 0.5
# Distance of neighbouring nodes in ln λ. The measures are smooth, so a finer grid changes nothing.
SPACING = 0.4
# Error that decays this much more slowly than the longest run counts as part of the final loss.
SLOWEST_ERROR = 1e-3
# Noise that takes longer to build up than the longest run cannot be told from the final loss.
SLOWEST_NOISE = 1.2
# The noise of a step at the relative rate r is r^(2 - NOISE_SHARE γ) λ.
NOISE_SHARE = 1.5

# Places in the vector of parameters; the logarithms of the noise at every noisy node follow.
FLOOR, LOG_AMPLITUDE, LOG_EXPONENT, LOG_OFFSET, PEAK_NOISE, PEAK_PROGRESS = range(6)
FIRST_NOISE = 6

# Centre and width of the prior. Losses count in units of the fall of the logged losses.
EXPONENT = (math.log(0.5), 0.5)  # of ln α: language models have α near 0.5
AMPLITUDE = (math.log(0.3), 3.0)  # of ln A
OFFSET = (-7.0, 2.0)  # of ln S_0
NOISE_LEVEL = (math.log(0.01), 3.0)  # of the mean of ln c
NOISE_SLOPE = (0.1, 0.15)  # of the slope of ln c in ln λ
NOISE_BEND = 0.3  # width of the second derivative of ln c in ln λ, over an interval of length 1
# How much the noise and the progress of another peak rate may deviate from the model, as exponents of the ratio.
PEAK_WIDTHS = (0.5, 0.3)


def effective_schedule(schedule: Schedule, reference: float, gamma: float) -> Schedule:
    r"""The rates that the quadratic model sees, :math:`(\eta/\eta_0)^{1-\gamma}`."""
    return tabulated((schedule.values() / reference) ** (1 - gamma))


def noise_power(gamma: float) -> float:
    r"""The exponent p for which :math:`\tilde\eta^{2+p} = r^{2-1.5\gamma}`, with :math:`\tilde\eta = r^{1-\gamma}`."""
    return (2 - NOISE_SHARE) * gamma / (1 - gamma)


@dataclass(frozen=True, eq=False)
class Law:
    r"""The loss after some steps, as a function of the parameters.

    .. math:: \ell = \ell_\infty + \sum_j b_j B_j + 2\sum_j c_j V_j\,\Delta, \qquad
              b_j = \frac{A\,\Delta}{\Gamma(\alpha)}\,s_j^{\alpha}\,e^{-S_0 s_j}, \quad s_j = 2 S\lambda_j

    B and V are the :meth:`responses` of the schedule. The first sum is the power law :math:`A\,(t + S_0)^{-\alpha}` in
    the sum t of the effective rates over S, written as a measure over λ. In a run whose peak rate is ρ times the
    reference rate, the noise is multiplied by :math:`\rho^{q}` and the progress t by :math:`\rho^{q'}`; both exponents
    are 0 unless runs at several peak rates say otherwise.

    Attributes:
        lam: Nodes λ of both measures in units of one over the reference rate, increasing and evenly spaced in ln λ.
        first_noisy: Index of the first node that has noise.
        travel: The sum S of the relative rates of the longest run.
        spread: The fall of the logged losses, their unit.
    """

    lam: Array
    first_noisy: int
    travel: float
    spread: float

    @property
    def noisy(self) -> Array:
        """The nodes that have noise."""
        return self.lam[self.first_noisy :]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return FIRST_NOISE + len(self.noisy)

    def responses(self, schedule: Schedule, reference: float, gamma: float, marks: IntArray) -> tuple[Array, Array]:
        r"""The contributions of unit measures to the loss after each of ``marks`` steps.

        .. math:: B_j = \prod_t (1-\tilde\eta_t\lambda_j)^2, \qquad
                  V_j \leftarrow (1-\tilde\eta_t\lambda_j)^2 V_j + \tilde\eta_t^{2+p}\lambda_j

        Returns:
            B at every node and V at the noisy nodes: one row per mark.
        """
        count, power = len(self.lam), noise_power(gamma)
        nodes = Nodes(self.lam, np.full(count, 1 / count), np.ones(count), 1 / self.lam, 0.0, noise_power=power)
        pairs = states(nodes, effective_schedule(schedule, reference, gamma), marks)
        rows = [(bias.copy(), variance[self.first_noisy :].copy()) for bias, variance in pairs]
        return np.array([bias for bias, _ in rows]), np.array([variance for _, variance in rows])

    def start(self, lowest: float) -> Array:
        """Parameters to start a fit from, for runs with the given lowest loss."""
        begin = np.zeros(self.size)
        begin[FLOOR] = lowest - 0.25 * self.spread
        begin[LOG_AMPLITUDE] = AMPLITUDE[0] + math.log(self.spread)
        begin[LOG_EXPONENT], begin[LOG_OFFSET] = EXPONENT[0], OFFSET[0]
        begin[FIRST_NOISE:] = NOISE_LEVEL[0] + math.log(self.spread)
        return begin

    def in_unit(self, parameters: Array, covariance: Array, unit: float) -> tuple[Array, Array]:
        """Parameters and covariance for losses that are ``unit`` times larger; all but the floor are logarithms."""
        scaled, factors = parameters.copy(), np.ones(self.size)
        scaled[FLOOR] *= unit
        scaled[LOG_AMPLITUDE] += math.log(unit)
        scaled[FIRST_NOISE:] += math.log(unit)
        factors[FLOOR] = unit
        return scaled, covariance * np.outer(factors, factors)

    def initial_error(self, parameters: Array, log_ratio: float = 0.0) -> Array:
        """The measure b of the initial error, for a run whose peak rate is exp(log_ratio) times the reference."""
        return self._error_terms(parameters, log_ratio)[0]

    def noise(self, parameters: Array, log_ratio: float = 0.0) -> Array:
        """The measure 2 c Δ of the noise, for a run whose peak rate is exp(log_ratio) times the reference."""
        return np.asarray(2 * SPACING * np.exp(parameters[FIRST_NOISE:] + parameters[PEAK_NOISE] * log_ratio))

    def loss(self, parameters: Array, bias: Array, variance: Array, log_ratio: float) -> Array:
        """The loss at every mark, from the responses of a schedule."""
        error, noise = self.initial_error(parameters, log_ratio), self.noise(parameters, log_ratio)
        return np.asarray(parameters[FLOOR] + bias @ error + variance @ noise)

    def slopes(self, parameters: Array, bias: Array, variance: Array, log_ratio: float) -> Array:
        """The derivative of :meth:`loss` in every parameter: one row per mark."""
        noisy = variance * self.noise(parameters, log_ratio)
        terms = self._error_terms(parameters, log_ratio)
        level, exponent, offset, progress = (bias @ term for term in terms)
        columns = (np.ones(len(bias)), level, exponent, offset, log_ratio * noisy.sum(axis=1), log_ratio * progress)
        return np.column_stack((*columns, noisy))

    def progress_slope(self, parameters: Array, bias: Array, log_ratio: float) -> Array:
        """The derivative of the loss in the logarithm of the progress t."""
        return np.asarray(bias @ self._error_terms(parameters, log_ratio)[3])

    def _error_terms(self, parameters: Array, log_ratio: float) -> tuple[Array, Array, Array, Array]:
        """The measure b, its derivatives in ln α and ln S_0, and that in the logarithm of the progress."""
        log_amplitude, log_exponent, log_offset = parameters[[LOG_AMPLITUDE, LOG_EXPONENT, LOG_OFFSET]]
        alpha, shift = math.exp(log_exponent), parameters[PEAK_PROGRESS] * log_ratio
        log_speed = np.log(2 * self.travel * self.lam) - shift
        cut = np.exp(log_offset + log_speed)
        error = SPACING * np.exp(log_amplitude + alpha * log_speed - cut - gammaln(alpha))
        return error, alpha * error * (log_speed - psi(alpha)), -error * cut, error * (cut - alpha)

    def prior(self) -> tuple[Array, Array]:
        """The prior as rows of a least-squares problem: a matrix M and the values that M @ parameters should have."""
        noisy = np.log(self.noisy)
        centred = noisy - noisy.mean()
        unit, log_spread = np.eye(self.size), math.log(self.spread)
        mean = unit[FIRST_NOISE:].mean(axis=0)
        slope = centred @ unit[FIRST_NOISE:] / (centred @ centred)
        bends = np.diff(unit[FIRST_NOISE:], 2, axis=0) / SPACING**1.5
        rows = [
            (unit[LOG_AMPLITUDE], AMPLITUDE[0] + log_spread, AMPLITUDE[1]),
            (unit[LOG_EXPONENT], *EXPONENT),
            (unit[LOG_OFFSET], *OFFSET),
            (unit[PEAK_NOISE], 0.0, PEAK_WIDTHS[0]),
            (unit[PEAK_PROGRESS], 0.0, PEAK_WIDTHS[1]),
            (mean, NOISE_LEVEL[0] + log_spread, NOISE_LEVEL[1]),
            (slope, *NOISE_SLOPE),
            *((bend, 0.0, NOISE_BEND) for bend in bends),
        ]
        matrix = np.array([row / width for row, _, width in rows])
        return matrix, np.array([centre / width for _, centre, width in rows])


def law_for(travel: float, spread: float) -> Law:
    """The law for runs whose relative rates sum to at most ``travel`` and whose losses fall by ``spread``."""
    count = 1 + math.ceil(math.log(LARGEST * travel / SLOWEST_ERROR) / SPACING)
    lam = LARGEST * np.exp(-SPACING * np.arange(count)[::-1])
    first = min(int(np.searchsorted(lam, SLOWEST_NOISE / travel)), count - 3)
    return Law(frozen(lam), first, travel, spread)
