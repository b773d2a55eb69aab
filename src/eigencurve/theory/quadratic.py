"""NoisyQuadratic: what SGD with a given schedule is expected to reach on a quadratic loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eigencurve import _check
from eigencurve._arrays import Array, IntArray, frozen
from eigencurve.schedules.base import Schedule, require_schedule
from eigencurve.spectrum.groups import require_positive
from eigencurve.spectrum.spectrum import Spectrum
from eigencurve.theory.certificate import certificate
from eigencurve.theory.comparison import Comparison, Row, ranked
from eigencurve.theory.nodes import Nodes, compress, nodes_of, octave_of
from eigencurve.theory.optimal import Search, search
from eigencurve.theory.recursion import (
    DivergenceError,
    LossCurve,
    LossParts,
    loss_curve,
    loss_parts,
)
from eigencurve.theory.simulation import Simulation, simulate
from eigencurve.theory.tuning import largest_rate, tuned


@dataclass(frozen=True, eq=False, repr=False, init=False)
class NoisyQuadratic:
    r"""A quadratic loss with gradient noise, :math:`f(w) = \tfrac12\sum_j\lambda_j(w_j-w_{*j})^2`.

    In every coordinate the expected error :math:`e_j = E[\lambda_j(w_j-w_{*j})^2]` follows exactly

    .. math:: e_j \leftarrow (1-\eta_t\lambda_j)^2 e_j + \eta_t^2\lambda_j^2\sigma_j^2

    and the expected loss, per dimension, is :math:`\tfrac12\sum_j w_j e_j` with :math:`w_j` the share of λ_j. With
    momentum m a step is :math:`v \leftarrow mv + g`, :math:`w \leftarrow w - \eta_t v`, as PyTorch's SGD makes it.

    Assumes noise of covariance exactly :math:`\sigma_j^2\lambda_j` in coordinate j, independent of w and of other
    steps: the equality case of the paper's assumption.

    Args:
        spectrum: positive, from :func:`prepare`.
        noise: σ_j², not negative: one number, or one for each of ``spectrum.eigenvalues`` in their order.
        initial_error: λ_j (w_0j - w_*j)², not negative: one number, or one for each eigenvalue.
        momentum: m, at least 0 and below 1.

    Raises:
        ValueError: a negative or infinite value, the wrong number of them, a spectrum that is not positive.

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

    def __init__(
        self,
        spectrum: Spectrum,
        noise: float | ArrayLike = 1.0,
        initial_error: float | ArrayLike = 1.0,
        momentum: float = 0.0,
    ) -> None:
        if not isinstance(spectrum, Spectrum):
            raise TypeError(_check.sentence("NoisyQuadratic", "spectrum", "a Spectrum", spectrum))
        require_positive("NoisyQuadratic", spectrum)
        kept = _check.at_least("NoisyQuadratic", "momentum", momentum, 0.0)
        if kept >= 1:
            _check.refuse("NoisyQuadratic", "momentum", "< 1", kept)
        object.__setattr__(self, "spectrum", spectrum)
        object.__setattr__(self, "noise", _per_eigenvalue("noise", noise, len(spectrum)))
        object.__setattr__(self, "initial_error", _per_eigenvalue("initial_error", initial_error, len(spectrum)))
        object.__setattr__(self, "momentum", kept)

    @property
    def nodes(self) -> Nodes:
        """The coordinates that have a share of the spectrum."""
        return nodes_of(self.spectrum, self.noise, self.initial_error, self.momentum)

    def expected_loss(self, schedule: Schedule) -> float:
        """½ Σ w_j e_j after all steps of ``schedule``.

        Raises:
            DivergenceError: a rate above 2/λ for too long.
        """
        return self.loss_parts(require_schedule("expected_loss", schedule)).loss

    def loss_parts(self, schedule: Schedule) -> LossParts:
        """The expected loss split into bias and variance, and by octave of the spectrum.

        Raises:
            DivergenceError: a rate above 2/λ for too long.
        """
        nodes = self.nodes
        return loss_parts(nodes, octave_of(self.spectrum, nodes), require_schedule("loss_parts", schedule))

    def loss_curve(self, schedule: Schedule, points: int | Sequence[int] = 101) -> LossCurve:
        """The expected loss along the run, split in the same way.

        Args:
            schedule: any.
            points: how many, evenly spaced from 0 to T steps; or the numbers of steps themselves, increasing.

        Raises:
            DivergenceError: a rate above 2/λ for too long.
        """
        nodes = self.nodes
        marks = _marks(points, require_schedule("loss_curve", schedule).total_steps)
        return loss_curve(nodes, octave_of(self.spectrum, nodes), schedule, marks)

    def simulate(self, schedule: Schedule, seed: int, num_replicas: int = 1000) -> Simulation:
        """Run SGD itself, with Gaussian noise, ``num_replicas`` times.

        An eigenvalue of the spectrum is one coordinate of each run, whatever its share.
        """
        return simulate(self.nodes, require_schedule("simulate", schedule), seed, num_replicas)

    def lower_bound(self, total_steps: int, max_lr: float) -> float:
        """The certificate: no schedule with 0 <= lr <= max_lr has a lower expected loss after T steps.

        Raises:
            ValueError: T < 1, max_lr <= 0, or momentum, for which there is no such bound.

        >>> from eigencurve import Spectrum
        >>> q = NoisyQuadratic(Spectrum([1.0, 2.0], [1, 1]), noise=1.0, initial_error=1.0)
        >>> q.lower_bound(9, max_lr=1.0)
        0.05
        """
        steps, rate = self._limits("lower_bound", total_steps, max_lr)
        return certificate(self.nodes, steps, rate)

    def optimal_schedule(self, total_steps: int, max_lr: float) -> Schedule:
        """The schedule of T steps with 0 <= lr <= max_lr that has the least expected loss we can find.

        Never worse than any classic schedule at its best rate, for those are tried first. See :meth:`search_best`
        for how close to the best possible it is.
        """
        steps, rate = self._limits("optimal_schedule", total_steps, max_lr)
        return search(self.spectrum, self.nodes, steps, rate).schedule

    def search_best(self, total_steps: int, max_lr: float) -> Search:
        """The same search with all it found: the schedule, its loss, the certificate and the status.

        Raises:
            ValueError: T < 1, max_lr <= 0, or momentum.
        """
        steps, rate = self._limits("search_best", total_steps, max_lr)
        return search(self.spectrum, self.nodes, steps, rate)

    def compare(
        self, schedules: Mapping[str, Schedule], max_lr: float | None = None, tune_lr: bool = False
    ) -> Comparison:
        """A table of expected losses and their gaps to the lower bound.

        Args:
            schedules: by name, all of the same T.
            max_lr: the rate that the bound allows; None for 2 (1 + m)/L, or the largest rate of ``schedules`` where
                that is higher. With ``tune_lr`` it is also the largest rate tried.
            tune_lr: scale every schedule to the rate at which it does best.
        """
        steps = _common_length(schedules)
        given = max(largest_rate(schedule) for schedule in schedules.values())
        stable = 2 * (1 + self.momentum) / self.spectrum.L
        rate = max(given, stable) if max_lr is None else _check.positive("compare", "max_lr", max_lr)
        if tune_lr:
            rate = stable if max_lr is None else rate
            few = compress(self.nodes)
            schedules = {name: tuned(few, schedule, rate) for name, schedule in schedules.items()}
        elif given > rate:
            remedy = "The lower bound would not hold for it."
            _check.refuse("compare", "max_lr", f">= the largest rate of the schedules ({given:g})", rate, remedy)
        bound = None if self.momentum else certificate(self.nodes, steps, rate)
        return Comparison(ranked([self._row(n, s, bound) for n, s in schedules.items()]), bound, rate, steps)

    def _row(self, name: str, schedule: Schedule, bound: float | None) -> Row:
        peak = largest_rate(schedule)
        try:
            parts = self.loss_parts(schedule)
        except DivergenceError:
            return Row(name, schedule, peak, None, None, None, None, "diverged")
        gap = parts.loss / bound - 1 if bound else None
        return Row(name, schedule, peak, parts.bias, parts.variance, parts.loss, gap, "finite")

    def _limits(self, function: str, total_steps: int, max_lr: float) -> tuple[int, float]:
        steps = _check.whole(function, "total_steps", total_steps, minimum=1)
        rate = _check.positive(function, "max_lr", max_lr, "2 / spectrum.L is the largest that is always stable.")
        if self.momentum:
            _check.refuse(function, "momentum", "0", self.momentum, "The certificate and the search are for plain SGD.")
        return steps, rate

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NoisyQuadratic)
            and self.spectrum == other.spectrum
            and self.momentum == other.momentum
            and np.array_equal(self.noise, other.noise)
            and np.array_equal(self.initial_error, other.initial_error)
        )

    def __hash__(self) -> int:
        return hash((self.spectrum, self.noise.tobytes(), self.initial_error.tobytes(), self.momentum))

    def __repr__(self) -> str:
        noise, error = _shown(self.noise), _shown(self.initial_error)
        return f"NoisyQuadratic({self.spectrum!r}, noise={noise}, initial_error={error}, momentum={self.momentum:g})"

    def __reduce__(self) -> tuple[type[NoisyQuadratic], tuple[Any, ...]]:
        return type(self), (self.spectrum, self.noise, self.initial_error, self.momentum)


def _per_eigenvalue(argument: str, value: Any, count: int) -> Array:
    """One value for each eigenvalue, not negative."""
    if np.ndim(value) == 0:
        return frozen(np.full(count, _check.at_least("NoisyQuadratic", argument, value, 0.0)))
    values = _check.vector("NoisyQuadratic", argument, value)
    if len(values) != count:
        remedy = "They go with 'spectrum.eigenvalues', in that order."
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
        raise TypeError(_check.sentence("loss_curve", "points", "a number or a sequence of whole steps", points))
    if marks[0] < 0 or marks[-1] > total_steps or (np.diff(marks) <= 0).any():
        _check.refuse("loss_curve", "points", f"increasing from 0 to at most total_steps = {total_steps}", points)
    return marks.astype(np.int64)


def _common_length(schedules: Mapping[str, Schedule]) -> int:
    if not isinstance(schedules, Mapping) or not schedules:
        raise TypeError(_check.sentence("compare", "schedules", "a non-empty mapping of names to schedules", schedules))
    lengths = {require_schedule("compare", schedule).total_steps for schedule in schedules.values()}
    if len(lengths) > 1:
        _check.refuse("compare", "schedules", "of the same total_steps", sorted(lengths))
    return lengths.pop()


def _shown(values: Array) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:g}" if low == high else f"{low:g}...{high:g}"
