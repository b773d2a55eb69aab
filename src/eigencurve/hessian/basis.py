"""The vectors that a Lanczos run stays orthogonal to, in the rows of one preallocated matrix."""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import eigh_tridiagonal
from torch import Tensor

from eigencurve._arrays import Array

# Of the rows that the last two steps do not need, the share that stored Ritz vectors may take; the rest are room
# for new steps before the next locking.
STORED_SHARE = 0.9
# A Ritz vector is locked once its residual is this part of the gap to the next value and no more than this part of
# its squared length lay in rows that are gone. Measured on a real spectrum: looser brings wrong nodes, stricter copies.
RIPE = 1e-2
MISSING = 1e-1
DOT_CHUNK = 1 << 20


class Basis:
    r"""Rows that span a part of the Krylov space of v_1 … v_j, the last row being v_j.

    Each row knows its float64 coordinates in v_1 … v_j. While all v's fit, the rows are those, and projecting off them
    is full re-orthogonalisation. When they are full, :meth:`lock` rotates them into three kinds:

    - locked: Ritz vectors that have converged. By Paige's theorem orthogonality is lost along these alone,

      .. math:: |y_i^\top v_{j+1}| \approx \frac{\varepsilon \|T\|}{\beta_j |s_{ji}|},

      so every later product is projected off them;
    - waiting: the Ritz vectors that come next, kept so that they can be locked when they converge, and not projected
      off before;
    - the last step, after which new ones fill up the free rows.

    The start vector is not projected and the run does not begin again: the steps so far *are* the first ones of
    the deflated run, so the tridiagonal goes on growing, holds the locked vectors' shares (u·v)² and the deflated
    measure together, and no product is spent twice.

    References: Paige, Linear Algebra Appl. 34 (1980); Parlett and Scott, Math. Comp. 33 (1979); Wu and Simon, SIAM J.
    Matrix Anal. Appl. 22 (2000).
    """

    def __init__(self, num_rows: int, dim: int, dtype: torch.dtype, device: torch.device) -> None:
        self.rows = torch.empty((num_rows, dim), dtype=dtype, device=device)
        self.coordinates: Array = np.zeros((0, 0))
        self.num_used = 0
        self.num_locked = self.num_stored = 0
        self.generation = 0

    @property
    def last(self) -> Tensor:
        """v_j."""
        return self.rows[self.num_used - 1]

    @property
    def is_full(self) -> bool:
        """Whether the next vector has no row."""
        return self.num_used == len(self.rows)

    def append(self, vector: Tensor, scale: float) -> None:
        """Add the next Lanczos vector, ``vector / scale``."""
        torch.div(vector, scale, out=self.rows[self.num_used])
        height, width = self.coordinates.shape
        grown = np.zeros((height + 1, width + 1))
        grown[:-1, :-1] = self.coordinates
        grown[-1, -1] = 1.0
        self.coordinates = grown
        self.num_used += 1

    def project_off(self, vector: Tensor) -> None:
        """Make ``vector`` orthogonal to the locked and the recent rows: two passes of Gram-Schmidt, in place."""
        for _ in range(2):
            for part in (self.rows[: self.num_locked], self.rows[self.num_stored : self.num_used]):
                vector.addmv_(part.T, part @ vector, alpha=-1)

    def lock(self, alphas: Array, betas: Array) -> None:
        """Rotate all rows but the last to the locked, newly locked and next best Ritz vectors; free the others."""
        inner = self.num_used - 1
        ritz, errors = self._ritz(alphas, betas)
        shares = self.coordinates[:inner] @ ritz
        held, order = (shares**2).sum(axis=0), np.argsort(errors, kind="stable")
        ripe = (errors <= RIPE) & (held >= 1 - MISSING)
        fresh = (shares[self.num_locked :] ** 2).sum(axis=0) > 0.5
        room = max(0, int(STORED_SHARE * (len(self.rows) - 2)) - self.num_locked)
        locked = [i for i in order if ripe[i] and fresh[i]][:room]
        waiting = [i for i in order if not ripe[i] and held[i] > 0.5][: room - len(locked)]
        turn = np.linalg.qr(np.hstack((np.eye(inner)[:, : self.num_locked], shares[:, locked + waiting])))[0]
        self._rotate(turn)
        self.coordinates = np.vstack((turn.T @ self.coordinates[:inner], self.coordinates[-1:]))
        self.num_locked += len(locked)
        self.num_stored = turn.shape[1]
        self.num_used = self.num_stored + 1
        self.generation += 1

    def _ritz(self, alphas: Array, betas: Array) -> tuple[Array, Array]:
        """The Ritz vectors in v_1 … v_j, and the error of each: its residual over the gap to the next value."""
        values, ritz = eigh_tridiagonal(alphas, betas[:-1])
        gap = np.minimum(np.diff(values, prepend=-np.inf), np.diff(values, append=np.inf))
        rounding = 64 * torch.finfo(self.rows.dtype).eps * np.abs(values).max()
        return ritz, betas[-1] * np.abs(ritz[-1]) / np.maximum(gap, rounding)

    def _rotate(self, turn: Array) -> None:
        """Replace the inner rows by ``turnᵀ`` times them and put the last row after; a few columns at a time."""
        inner, kept = turn.shape
        matrix = torch.from_numpy(np.ascontiguousarray(turn.T)).to(self.rows.device, self.rows.dtype)
        width = max(1024, self.rows.shape[1] // (4 * len(self.rows)))
        for start in range(0, self.rows.shape[1], width):
            block = self.rows[:, start : start + width]
            turned, last = matrix @ block[:inner], block[inner].clone()
            block[:kept], block[kept] = turned, last


def dot(a: Tensor, b: Tensor) -> float:
    """a·b with float64 products and sums, a chunk at a time."""
    total = torch.zeros((), dtype=torch.float64, device=a.device)
    for x, y in zip(a.split(DOT_CHUNK), b.split(DOT_CHUNK), strict=True):  # type: ignore[no-untyped-call]
        total += torch.dot(x.double(), y.double())
    return float(total)
