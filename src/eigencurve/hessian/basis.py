"""The vectors that a Lanczos run is kept orthogonal to, as rows of one preallocated matrix."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from eigencurve._arrays import Array
from eigencurve.hessian.space import Space
from eigencurve.spectrum.quadrature import eigenpairs

# Share of the rows, apart from those of the last two steps, that stored Ritz vectors may use. New steps use the rest.
STORED_SHARE = 0.9
# A Ritz vector is locked if its residual is below this part of the gap to the next Ritz value, and if at most this part
# of its squared norm was in rows that have been freed. Tuned on a real spectrum: larger values give wrong nodes,
# smaller ones give copies.
MAX_ERROR = 1e-2
MAX_LOST = 1e-1


class Basis:
    r"""Rows that span a part of the Krylov space of v_1 … v_j; the last row is v_j.

    Each row has float64 coordinates in v_1 … v_j. As long as there are free rows, the rows are the vectors v
    themselves, and :meth:`project_off` is full re-orthogonalisation. When the rows are full, :meth:`lock` rotates them
    into three kinds:

    - locked: converged Ritz vectors. By Paige's theorem, orthogonality is lost along these alone,

      .. math:: |y_i^\top v_{j+1}| \approx \frac{\varepsilon \|T\|}{\beta_j |s_{ji}|},

      so every later product is made orthogonal to them;
    - waiting: the Ritz vectors closest to convergence. They are kept to be locked later, and not projected off before;
    - the last vector v_j. New vectors fill the free rows after it.

    Locking does not restart the run: the steps so far are also the first steps of the deflated run. The tridiagonal
    keeps growing, and contains the locked vectors' shares (u·v)² as well as the deflated measure.

    References: Paige, Linear Algebra Appl. 34 (1980); Parlett and Scott, Math. Comp. 33 (1979); Wu and Simon, SIAM J.
    Matrix Anal. Appl. 22 (2000).
    """

    def __init__(self, num_rows: int, space: Space, dtype: torch.dtype, device: torch.device) -> None:
        self.space = space
        self.rows = torch.empty((num_rows, space.size), dtype=dtype, device=device)
        self.coordinates: Array = np.zeros((0, 0))
        self.num_used = 0
        self.num_locked = self.num_stored = 0
        self.generation = 0

    @property
    def last(self) -> Tensor:
        """The last Lanczos vector v_j."""
        return self.rows[self.num_used - 1]

    @property
    def is_full(self) -> bool:
        """Whether there is no free row for the next vector."""
        return self.num_used == len(self.rows)

    def append(self, vector: Tensor, scale: float) -> None:
        """Append the next Lanczos vector, ``vector / scale``."""
        torch.div(vector, scale, out=self.rows[self.num_used])
        height, width = self.coordinates.shape
        grown = np.zeros((height + 1, width + 1))
        grown[:-1, :-1] = self.coordinates
        grown[-1, -1] = 1.0
        self.coordinates = grown
        self.num_used += 1

    def project_off(self, vector: Tensor) -> float:
        """Make ``vector`` orthogonal to the locked and the recent rows, in place, and return its new norm.

        A product lies mostly along the last two rows, so those come first. A Gram-Schmidt pass over all rows follows,
        and a second one if the first removes more than it leaves; two are always enough (Daniel, Gragg, Kaufman and
        Stewart, Math. Comp. 30, 1976).
        """
        self._pass(vector, self.rows[max(self.num_stored, self.num_used - 2) : self.num_used])
        removed, length = self._pass_over_all(vector), self.space.norm(vector)
        if removed > length:
            self._pass_over_all(vector)
            length = self.space.norm(vector)
        return length

    def _pass_over_all(self, vector: Tensor) -> float:
        """Length of the part that a pass over all locked and recent rows removes."""
        parts = (self.rows[: self.num_locked], self.rows[self.num_stored : self.num_used])
        return math.hypot(*(self._pass(vector, part) for part in parts))

    def _pass(self, vector: Tensor, part: Tensor) -> float:
        """Subtract from ``vector`` its part in the span of some rows, and return the length of that part."""
        shares = self.space.sum(part @ vector)
        vector.addmv_(part.T, shares, alpha=-1)
        return float(shares.double().norm())

    def lock(self, alphas: Array, betas: Array) -> None:
        """Rotate all rows but the last into locked and waiting Ritz vectors, and free the other rows."""
        inner = self.num_used - 1
        ritz, errors = self._ritz(alphas, betas)
        shares = self.coordinates[:inner] @ ritz
        held, order = (shares**2).sum(axis=0), np.argsort(errors, kind="stable")
        converged = (errors <= MAX_ERROR) & (held >= 1 - MAX_LOST)
        fresh = (shares[self.num_locked :] ** 2).sum(axis=0) > 0.5
        room = max(0, int(STORED_SHARE * (len(self.rows) - 2)) - self.num_locked)
        locked = [i for i in order if converged[i] and fresh[i]][:room]
        waiting = [i for i in order if not converged[i] and held[i] > 0.5][: room - len(locked)]
        rotation = np.linalg.qr(np.hstack((np.eye(inner)[:, : self.num_locked], shares[:, locked + waiting])))[0]
        self._rotate(rotation)
        self.coordinates = np.vstack((rotation.T @ self.coordinates[:inner], self.coordinates[-1:]))
        self.num_locked += len(locked)
        self.num_stored = rotation.shape[1]
        self.num_used = self.num_stored + 1
        self.generation += 1

    def _ritz(self, alphas: Array, betas: Array) -> tuple[Array, Array]:
        """Ritz vectors in the coordinates v_1 … v_j, and their residuals divided by the gap to the next Ritz value."""
        values, ritz = eigenpairs(alphas, betas)
        gap = np.minimum(np.diff(values, prepend=-np.inf), np.diff(values, append=np.inf))
        rounding = 64 * torch.finfo(self.rows.dtype).eps * np.abs(values).max()
        return ritz, betas[-1] * np.abs(ritz[-1]) / np.maximum(gap, rounding)

    def _rotate(self, rotation: Array) -> None:
        """Multiply the inner rows by ``rotationᵀ`` and move the last row behind them, a few columns at a time."""
        inner, kept = rotation.shape
        matrix = torch.from_numpy(np.ascontiguousarray(rotation.T)).to(self.rows.device, self.rows.dtype)
        width = max(1024, self.rows.shape[1] // (4 * len(self.rows)))
        for start in range(0, self.rows.shape[1], width):
            block = self.rows[:, start : start + width]
            rotated, last = matrix @ block[:inner], block[inner].clone()
            block[:kept], block[kept] = rotated, last
