"""NoisyQuadratic: the expected loss of SGD with any schedule on a quadratic with gradient noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen
from eigencurve._check import Arg
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.schedules.comparison import ComparisonRow, ComparisonTable, ranked
from eigencurve.schedules.sampling import peak_rate
from eigencurve.spectrum.groups import require_positive
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.spectrum.start import StartEstimate
from eigencurve.theory.certificate import certificate
from eigencurve.theory.evaluators import exact_evaluator
from eigencurve.theory.nodes import Nodes, octave_of
from eigencurve.theory.optimal import Search, search
from eigencurve.theory.recursion import (
    DivergenceError,
    LossCurve,
    LossParts,
    loss_curve,
    loss_parts,
)
from eigencurve.theory.simulation import Simulation, simulate
from eigencurve.theory.stability import largest_stable_rate
from eigencurve.theory.tuning import tune

# Largest power of the rate in the noise. The edge of stability gives γ/(1-γ), which is 3 for γ = 0.75.
LARGEST_POWER = 4.0


@dataclass(frozen=True, eq=False, repr=False, init=False)
class NoisyQuadratic:
    r"""A quadratic loss with gradient noise, :math:`f(w) = \tfrac12\sum_j\lambda_j(w_j-w_{*j})^2`.

    The expected error :math:`e_j = E[\lambda_j(w_j-w_{*j})^2]` of each coordinate follows exactly

    .. math:: e_j \leftarrow (1-\eta_t\lambda_j)^2 e_j + \eta_t^2\lambda_j^2\sigma_j^2

    and the expected loss per dimension is :math:`\tfrac12\sum_j w_j e_j`, where :math:`w_j` is the share of λ_j.

    With momentum m, the steps are those of PyTorch's SGD, with the gradient g and the velocity v, which starts at 0:

    .. math:: v \leftarrow mv + g, \qquad w \leftarrow w - \eta_t v \;\text{(heavy ball)}, \qquad
              w \leftarrow w - \eta_t(g + mv) \;\text{(Nesterov)}

    Then :math:`e_j` follows from an exact recursion of the three moments E[u²], E[uz] and E[z²] of
    :math:`u = \sqrt{\lambda_j}(w_j-w_{*j})` and :math:`z = v_j/\sqrt{\lambda_j}`.

    Assumes that the noise in coordinate j has variance exactly :math:`\sigma_j^2\lambda_j` and is independent of w and
    of other steps. This is the equality case of the paper's assumption.

    With ``noise_power`` p, the noise level in a step at rate η is :math:`\sigma_j^2\eta^p`:

    .. math:: e_j \leftarrow (1-\eta_t\lambda_j)^2 e_j + \eta_t^2\lambda_j^2\sigma_j^2\eta_t^p

    This describes training at the edge of stability, where the curvature adapts to the rate. Suppose the curvature is
    :math:`\lambda(\eta) = \lambda(\eta/\eta_0)^{-\gamma}` with γ < 1, and the noise has variance
    :math:`\sigma^2\lambda(\eta)`. Then :math:`\eta\lambda(\eta) = \tilde\eta\lambda` with the effective rate
    :math:`\tilde\eta = \eta_0(\eta/\eta_0)^{1-\gamma}`, and the error, measured at the fixed curvature λ, follows this
    recursion in :math:`\tilde\eta` with :math:`p = \gamma/(1-\gamma)` and the noise level
    :math:`\sigma^2\eta_0^{-p}` in place of σ².

    Args:
        spectrum: Positive spectrum, from :func:`prepare`.
        noise: Noise levels σ_j² >= 0: one number, one for each of ``spectrum.eigenvalues`` in the same order, or a
            measured :class:`NoiseEstimate`, whose weight decay the spectrum should be prepared with.
        initial_error: Initial errors λ_j (w_0j - w_*j)² >= 0: one number, one for each eigenvalue, or a measured
            :class:`StartEstimate`.
        momentum: Momentum m, with 0 <= m < 1.
        nesterov: Whether it is Nesterov momentum; otherwise heavy ball. It needs momentum > 0, as in PyTorch.
        noise_power: Power p of the rate in the noise, with 0 <= p <= 4; 0 is noise that does not depend on the rate.
            It needs momentum = 0.

    Raises:
        ValueError: A value is negative or infinite, there are too many or too few of them, the spectrum is not
            positive, ``nesterov`` is set without momentum, or ``noise_power`` with it.

    Reference: arXiv:2110.14109, Section 2, Eq. (proc_j).

    >>> from eigencurve import Spectrum, constant
    >>> q = NoisyQuadratic(Spectrum([1.0, 2.0], [1, 1]), noise=1.0, initial_error=1.0)
    >>> q.expected_loss(constant(1, lr=0.5))     # (1/4 + 1/4) and (0 + 1), halved and averaged
    0.375
    """

    spectrum: Spectrum
    noise: Array
    initial_error: Array
    momentum: float
    nesterov: bool
    noise_power: float

    def __init__(
        self,
        spectrum: Spectrum,
        noise: float | ArrayLike | NoiseEstimate = 1.0,
        initial_error: float | ArrayLike | StartEstimate = 1.0,
        momentum: float = 0.0,
        nesterov: bool = False,
        noise_power: float = 0.0,
    ) -> None:
        if not isinstance(spectrum, Spectrum):
            _check.wrong_type("NoisyQuadratic", "spectrum", "a Spectrum", spectrum)
        require_positive("NoisyQuadratic", spectrum)
        kept = _check.at_least("NoisyQuadratic", "momentum", momentum, 0.0)
        if kept >= 1:
            _check.refuse("NoisyQuadratic", "momentum", "< 1", kept)
        if nesterov and not kept:
            _check.refuse("NoisyQuadratic", "momentum", "> 0 with nesterov=True", kept)
        power = _check.at_least("NoisyQuadratic", "noise_power", noise_power, 0.0)
        if power > LARGEST_POWER:
            _check.refuse("NoisyQuadratic", "noise_power", f"<= {LARGEST_POWER:g}", power)
        if power and kept:
            remedy = "Noise that follows the rate is available for SGD without momentum."
            _check.refuse("NoisyQuadratic", "noise_power", f"0 with momentum = {kept:g}", power, remedy)
        lam = spectrum.eigenvalues
        levels = noise.levels(lam) if isinstance(noise, NoiseEstimate) else noise
        errors = initial_error.errors(lam) if isinstance(initial_error, StartEstimate) else initial_error
        object.__setattr__(self, "spectrum", spectrum)
        object.__setattr__(self, "noise", _per_eigenvalue("noise", levels, len(spectrum)))
        object.__setattr__(self, "initial_error", _per_eigenvalue("initial_error", errors, len(spectrum)))
        object.__setattr__(self, "momentum", kept)
        object.__setattr__(self, "nesterov", bool(nesterov))
        object.__setattr__(self, "noise_power", power)

    @property
    def nodes(self) -> Nodes:
        """The coordinates with a positive share of the spectrum."""
        used = self.spectrum.weights > 0
        lam, weights = self.spectrum.eigenvalues[used], self.spectrum.weights[used]
        return Nodes(lam, weights, self.initial_error[used], self.noise[used], *self._law)

    @property
    def stable_rate(self) -> float:
        """The largest constant rate at which no error grows; see :func:`~.stability.largest_stable_rate`."""
        return largest_stable_rate(self.spectrum.L, self.momentum, self.nesterov)

    def expected_loss(self, schedule: Schedule) -> float:
        """The expected loss ½ Σ w_j e_j after all steps of ``schedule``.

        Raises:
            DivergenceError: The rate was above the largest stable one for too long.
        """
        return self.loss_parts(require_schedule("expected_loss", schedule)).loss

    def loss_parts(self, schedule: Schedule) -> LossParts:
        """The expected loss, split into bias and variance and by octave of the spectrum.

        Raises:
            DivergenceError: The rate was above the largest stable one for too long.
        """
        nodes = self.nodes
        return loss_parts(nodes, octave_of(self.spectrum, nodes), require_schedule("loss_parts", schedule))

    def loss_curve(self, schedule: Schedule, points: int | Sequence[int] = 101) -> LossCurve:
        """The expected loss along the run, split like :meth:`loss_parts`.

        Args:
            schedule: Any schedule.
            points: Number of points, evenly spaced from 0 to T steps; or the numbers of steps themselves, increasing.

        Raises:
            DivergenceError: The rate was above the largest stable one for too long.
        """
        nodes = self.nodes
        marks = _marks(points, require_schedule("loss_curve", schedule).total_steps)
        return loss_curve(nodes, octave_of(self.spectrum, nodes), schedule, marks)

    def simulate(self, schedule: Schedule, seed: int, num_replicas: int = 1000) -> Simulation:
        """Run SGD with Gaussian noise ``num_replicas`` times.

        Each eigenvalue of the spectrum is one coordinate of a run, whatever its share.
        """
        return simulate(self.nodes, require_schedule("simulate", schedule), seed, num_replicas)

    def lower_bound(self, total_steps: int, max_lr: float) -> float:
        """The certificate: no schedule with 0 <= lr <= max_lr has a lower expected loss after T steps.

        Raises:
            ValueError: T < 1, max_lr <= 0, or the problem has momentum, for which there is no such bound.

        >>> from eigencurve import Spectrum
        >>> q = NoisyQuadratic(Spectrum([1.0, 2.0], [1, 1]), noise=1.0, initial_error=1.0)
        >>> q.lower_bound(9, max_lr=1.0)
        0.05
        """
        steps, rate = self._limits("lower_bound", total_steps, max_lr)
        if self.momentum:
            _check.refuse("lower_bound", "momentum", "0", self.momentum, "There is no certificate with momentum.")
        return certificate(self.nodes, steps, rate)

    def optimal_schedule(self, total_steps: int, max_lr: float) -> Schedule:
        """The schedule of T steps with 0 <= lr <= max_lr that has the least expected loss a numerical search finds.

        It is never worse than a classic schedule at its best rate, because the search starts from those.
        :meth:`search_best` also tells how close to optimal it is.
        """
        steps, rate = self._limits("optimal_schedule", total_steps, max_lr)
        return search(exact_evaluator(self.nodes, steps), self.spectrum, steps, rate).schedule

    def search_best(self, total_steps: int, max_lr: float) -> Search:
        """The search of :meth:`optimal_schedule` with its full result: schedule, loss, certificate and status.

        The loss of the result is exact. For more than 50,000 steps, or 10,000 with momentum, the search itself works on
        blocks of steps. There is no certificate with momentum: ``lower_bound`` and ``gap`` of the result are then None.

        Raises:
            ValueError: T < 1 or max_lr <= 0.
        """
        steps, rate = self._limits("search_best", total_steps, max_lr)
        return search(exact_evaluator(self.nodes, steps), self.spectrum, steps, rate)

    def compare(
        self, schedules: Mapping[str, Schedule], max_lr: float | None = None, tune_lr: bool = False
    ) -> ComparisonTable:
        """A table of expected losses, relative to the best, and their gaps to the lower bound.

        Args:
            schedules: Schedules by name, all with the same T.
            max_lr: Largest rate that the lower bound allows; with ``tune_lr`` also the largest rate tried. None means
                ``stable_rate`` or, without ``tune_lr``, the largest rate of ``schedules`` if that is higher.
            tune_lr: Whether to scale every schedule to its best rate.
        """
        steps = _common_length(schedules)
        given = max(peak_rate(schedule) for schedule in schedules.values())
        rate = max(given, self.stable_rate) if max_lr is None else _check.positive("compare", "max_lr", max_lr)
        if tune_lr:
            rate = self.stable_rate if max_lr is None else rate
            evaluator = exact_evaluator(self.nodes, steps)
            schedules = {name: tune(evaluator, schedule, rate) for name, schedule in schedules.items()}
        elif given > rate:
            remedy = ("Above ", Arg("max_lr"), " the lower bound does not hold.")
            _check.refuse("compare", "max_lr", f">= the largest rate of the schedules ({given:g})", rate, remedy)
        bound = None if self.momentum else certificate(self.nodes, steps, rate)
        losses = {name: self._finite_parts(schedule) for name, schedule in schedules.items()}
        least = min((parts.loss for parts in losses.values() if parts is not None), default=0.0)
        rows = ranked(_row(name, schedules[name], parts, least, bound) for name, parts in losses.items())
        return ComparisonTable(rows, rows[0].name, bound, rate)

    def _finite_parts(self, schedule: Schedule) -> LossParts | None:
        try:
            return self.loss_parts(schedule)
        except DivergenceError:
            return None

    def _limits(self, function: str, total_steps: int, max_lr: float) -> tuple[int, float]:
        steps = _check.whole(function, "total_steps", total_steps, minimum=1)
        rate = _check.positive(function, "max_lr", max_lr, f"The largest stable rate is {self.stable_rate:g}.")
        return steps, rate

    @property
    def _law(self) -> tuple[float, bool, float]:
        return self.momentum, self.nesterov, self.noise_power

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NoisyQuadratic)
            and self.spectrum == other.spectrum
            and self._law == other._law
            and np.array_equal(self.noise, other.noise)
            and np.array_equal(self.initial_error, other.initial_error)
        )

    def __hash__(self) -> int:
        arrays = self.noise.tobytes(), self.initial_error.tobytes()
        return hash((self.spectrum, *arrays, *self._law))

    def __repr__(self) -> str:
        noise, error = _shown(self.noise), _shown(self.initial_error)
        law = f"momentum={self.momentum:g}" + (", nesterov=True" if self.nesterov else "")
        law += f", noise_power={self.noise_power:g}" if self.noise_power else ""
        return f"NoisyQuadratic({self.spectrum!r}, noise={noise}, initial_error={error}, {law})"

    def __reduce__(self) -> tuple[type[NoisyQuadratic], tuple[Any, ...]]:
        return type(self), (self.spectrum, self.noise, self.initial_error, *self._law)


def _per_eigenvalue(argument: str, value: Any, count: int) -> Array:
    """``value`` as one number >= 0 for each eigenvalue."""
    if np.ndim(value) == 0:
        return frozen(np.full(count, _check.at_least("NoisyQuadratic", argument, value, 0.0)))
    values = _check.vector("NoisyQuadratic", argument, value)
    if len(values) != count:
        remedy = "Pass them in the order of the eigenvalues."
        constraint = f"a number or one for each of the {count} eigenvalues"
        _check.refuse("NoisyQuadratic", argument, constraint, f"{len(values)} values", remedy)
    if (values < 0).any():
        _check.refuse("NoisyQuadratic", argument, ">= 0", float(values.min()))
    return frozen(values)


def _marks(points: Any, total_steps: int) -> IntArray:
    if np.ndim(points) == 0:
        count = _check.whole("loss_curve", "points", points, minimum=2)
        return np.unique(np.linspace(0, total_steps, count).round().astype(np.int64))
    marks = np.asarray(points)
    if marks.dtype.kind not in "iu" or marks.ndim != 1 or marks.size == 0:
        _check.wrong_type("loss_curve", "points", "a number or a sequence of whole steps", points)
    if marks[0] < 0 or marks[-1] > total_steps or (np.diff(marks) <= 0).any():
        _check.refuse("loss_curve", "points", f"increasing from 0 to at most total_steps = {total_steps}", points)
    return marks.astype(np.int64)


def _common_length(schedules: Mapping[str, Schedule]) -> int:
    if not isinstance(schedules, Mapping) or not schedules:
        _check.wrong_type("compare", "schedules", "a non-empty mapping of names to schedules", schedules)
    lengths = {require_schedule("compare", schedule).total_steps for schedule in schedules.values()}
    if len(lengths) > 1:
        _check.refuse("compare", "schedules", "of the same total_steps", sorted(lengths))
    return lengths.pop()


def _row(name: str, schedule: Schedule, parts: LossParts | None, least: float, bound: float | None) -> ComparisonRow:
    if parts is None:
        return ComparisonRow(name, schedule)
    return ComparisonRow(
        name,
        schedule,
        parts.loss,
        excess=parts.loss / least - 1 if least else None,
        bias=parts.bias,
        variance=parts.variance,
        gap=parts.loss / bound - 1 if bound else None,
    )


def _shown(values: Array) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:g}" if low == high else f"{low:g}...{high:g}"
