"""Checkpoints of a Lanczos run: the state in a small file, written atomically, and the basis in an append-only file.

``run.npz`` holds α, β and the identity of the run, and ``run.npz.rows-N`` the rows of the basis as raw numbers. Each
row is written once, not at every save, so a save costs the same at step 10 and at step 1,000. The small file is
replaced only after its rows are on disk, so a process killed at any time leaves a state to resume from.

If several processes hold parts of the vectors, each has two such files of its own, ``run.npz.part-0-of-2`` and so on.
They save at the same steps and replace the small files together, see :mod:`eigencurve.hessian.shared_files`.

If ``run.npz`` is a link, the files are next to its target. Names that are too long are abbreviated, see
:func:`eigencurve._files.companion`.
"""

from __future__ import annotations

import errno
import io
import os
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from eigencurve import _check
from eigencurve._archives import ArchiveError, read_arrays
from eigencurve._arrays import Array, IntArray
from eigencurve._files import companion, companions, exclusive
from eigencurve.hessian.batches import tensor_bytes
from eigencurve.hessian.identity import Identity
from eigencurve.hessian.lanczos import LanczosRun, Recurrence
from eigencurve.hessian.shared_files import newest_common, next_path, replace_together, require_number_of_parts
from eigencurve.hessian.space import Space

FORMAT = "eigencurve.lanczos"
VERSION = 3
OLD_VERSIONS = (1, 2)
SECONDS_BETWEEN = 5.0
# Errors of a wrong path, in contrast to a disk that is full or fails.
WRONG_PATH = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG,
)  # fmt: skip
ROWS = r"\.rows-\d+-\d+"


class CheckpointError(OSError):
    """The checkpoint cannot be written now: no space, no permission, or its folder was removed."""


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A state read from disk: the finished runs, and the state of the unfinished one.

    Attributes:
        finished: Finished runs.
        num_steps, num_rows: Steps and rows of the memory plan.
        num_unused: Number of parameters that the runs leave out.
        alphas, betas, exact: Tridiagonal of the unfinished run.
        basis: Attributes of its :class:`eigencurve.hessian.basis.Basis`, by name.
        sums: Checksum of each of its rows.
    """

    finished: list[LanczosRun]
    num_steps: int
    num_rows: int
    num_unused: int
    alphas: Array
    betas: Array
    exact: bool
    basis: dict[str, Any]
    sums: list[int]

    @property
    def progress(self) -> tuple[int, int]:
        """Number of finished runs, and of steps of the unfinished one."""
        return len(self.finished), len(self.alphas)


def saved_steps(path: str | os.PathLike[str]) -> int:
    """The number of steps in a checkpoint, of all runs; 0 if the file does not exist or cannot be read."""
    try:
        fields = read_arrays(Path(path).read_bytes())
        return int(fields["lengths"].sum()) + len(fields["alphas"])
    except (OSError, ArchiveError, KeyError, TypeError):
        return 0


@contextmanager
def reserved(path: str | os.PathLike[str] | None, function: str, is_main_process: bool) -> Iterator[None]:
    """Keep the checkpoint for this process until the block ends.

    Raises:
        ValueError: If another process uses the checkpoint now, or if no file can have this path.
        CheckpointError: If the lock cannot be written for another reason, such as a full disk.
    """
    if path is None or not is_main_process:
        yield
        return
    if os.path.isdir(path):
        _check.refuse(function, "checkpoint", "the path of a file", f"{path}, a folder", "Add a file name.")
    with ExitStack() as stack:
        try:
            with suppress(FileNotFoundError):
                os.stat(path)
            stack.enter_context(exclusive(Path(path)))
        except BlockingIOError:
            remedy = "Wait until it has ended, or pass another path."
            _check.refuse(function, "checkpoint", "used by one process at a time", f"{path}, in use by another", remedy)
        except (OSError, RuntimeError) as error:  # RuntimeError: links that point to each other
            reason, remedy = getattr(error, "strerror", None) or str(error), "Pass another path."
            if getattr(error, "errno", errno.ELOOP) not in WRONG_PATH:
                raise CheckpointError(f"{function}: the checkpoint {path} cannot be saved: {reason}.") from error
            _check.refuse(function, "checkpoint", "a file that can be written", f"{reason}: {path}", remedy)
        yield


class CheckpointFile:
    """The checkpoint of one call of ``estimate_spectrum``, or of another function that runs Lanczos.

    Args:
        path: Path of the small file. The file with the rows is next to it.
        identity: Identity of the run.
        space: The vectors of the run. If several processes hold them, all must call each method at the same step.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Identity, space: Space) -> None:
        self._whole = Path(path).resolve()
        self.path, self.identity, self.space = space.own_path(self._whole), identity, space
        self._sums: list[int] = []
        self._saved_as: tuple[int, int] | None = None
        self._next_save = time.monotonic() + SECONDS_BETWEEN
        self._is_old = False

    def load(self) -> SavedRun | None:
        """Read the state on disk; None if there is no file yet.

        Raises:
            ValueError: If the file is truncated or damaged, or belongs to another model, loss, data set or seed. The
                file is not changed.

        Warns:
            UserWarning: The file is of an earlier release, which did not record the loss and the product.
        """
        require_number_of_parts(self._whole, self.path, self._refuse)
        paths = (self.path, next_path(self.path)) if self.space.is_shared else (self.path,)
        states = {state.progress: state for state in (self._state(path) for path in paths if path.exists())}
        newest = newest_common(self.space, self.path, states, self._refuse)
        if newest is not None and self._is_old:
            warnings.warn(
                f"{self.identity.function}: the checkpoint {self.path.name} is of an earlier release, which recorded "
                "the parameters and the data, but not the loss function, the buffers, the frozen weights and the code "
                "of the model. If any of these may have changed, move the file away and start again.",
                stacklevel=2,
            )
        return newest

    def _state(self, path: Path) -> SavedRun:
        with self._complete():
            fields = read_arrays(path.read_bytes())
            kind, version = str(fields["format"]), int(fields["version"])
        if kind != FORMAT or version not in (*OLD_VERSIONS, VERSION):
            self._refuse(f"of format {FORMAT!r}, version {VERSION}", f"{kind!r}, version {version}")
        self._is_old = version in OLD_VERSIONS
        with self._complete():
            saved = _saved_run(fields, version)
            difference = self.identity.difference(fields, self._is_old)
        if difference is not None:
            self._refuse(*difference)
        return saved

    @contextmanager
    def _complete(self) -> Iterator[None]:
        """Refuse a file that cannot be read, or has a field that is missing or wrong."""
        try:
            yield
        except (OSError, LookupError, TypeError, ValueError) as error:
            self._refuse("a complete checkpoint", " ".join(str(error).split()))

    def restore(self, saved: SavedRun, run: Recurrence) -> None:
        """Restore the unfinished run of ``saved`` into a new ``run``."""
        run.alphas, run.betas = saved.alphas.tolist(), saved.betas.tolist()
        run.exact, run.num_unused = saved.exact, saved.num_unused
        for name, value in saved.basis.items():
            setattr(run.basis, name, value)
        self._sums, self._saved_as = list(saved.sums), (len(saved.finished), run.basis.generation)
        self._read_rows(run)
        run.reopen()

    def save_if_due(self, finished: list[LanczosRun], run: Recurrence) -> None:
        """Save if the last save is more than a few seconds old."""
        if any(self.space.gather(time.monotonic() >= self._next_save)):
            self.save(finished, run)

    def save(self, finished: list[LanczosRun], run: Recurrence) -> None:
        """Write the new rows, then the small file, then delete files of rows that are no longer used.

        Raises:
            CheckpointError: If a file cannot be written. The last save is complete.
        """
        try:
            self._write_rows(len(finished), run)
            buffer = io.BytesIO()
            np.savez(buffer, **self._fields(finished, run))
            replace_together(self.space, self.path, buffer.getvalue())
            current = self._rows_path(len(finished), run.basis.generation)
            for other, _ in companions(self.path, ROWS):
                if other != current:
                    other.unlink(missing_ok=True)
        except OSError as error:
            reason = error.strerror or str(error)
            remedy = "Make room and let the folder be written, or pass another path."
            text = f"{self.identity.function}: the checkpoint {self.path} cannot be saved: {reason}. {remedy}"
            raise CheckpointError(text) from error
        self._next_save = time.monotonic() + SECONDS_BETWEEN

    def _fields(self, finished: list[LanczosRun], run: Recurrence) -> dict[str, Any]:
        basis, nothing = run.basis, np.zeros(0)
        return {
            "format": np.str_(FORMAT), "version": np.int64(VERSION), **self.identity.fields(),
            "num_steps": np.int64(run.plan.num_products), "num_rows": np.int64(run.plan.num_rows),
            "lengths": np.array([len(done.alphas) for done in finished], dtype=np.int64),
            "exact": np.array([done.exact for done in finished], dtype=np.int64),
            "distinct": np.array([done.num_distinct for done in finished], dtype=np.int64),
            "done_alphas": np.concatenate([nothing, *(done.alphas for done in finished)]),
            "done_betas": np.concatenate([nothing, *(done.betas for done in finished)]),
            "alphas": np.array(run.alphas), "betas": np.array(run.betas), "now_exact": np.int64(run.exact),
            "coordinates": basis.coordinates, "num_used": np.int64(basis.num_used),
            "num_locked": np.int64(basis.num_locked), "num_stored": np.int64(basis.num_stored),
            "generation": np.int64(basis.generation), "sums": np.array(self._sums, dtype=np.int64),
            "num_unused": np.int64(run.num_unused),
        }  # fmt: skip

    def _refuse(self, constraint: str, got: str, cause: str = "") -> NoReturn:
        remedy = f"{cause}The file {self.path.name} is unchanged: move it away, or pass another path."
        _check.refuse(self.identity.function, "checkpoint", constraint, got, remedy)

    def _rows_path(self, probe: int, generation: int) -> Path:
        return companion(self.path, f".rows-{probe}-{generation}")

    def _write_rows(self, probe: int, run: Recurrence) -> None:
        basis, now = run.basis, (probe, run.basis.generation)
        if now != self._saved_as:
            self._sums = []
        with open(self._rows_path(*now), "r+b" if self._sums else "wb") as file:
            file.seek(len(self._sums) * run.plan.vector_bytes)
            for row in basis.rows[len(self._sums) : basis.num_used]:
                content = tensor_bytes(row)
                file.write(content)
                self._sums.append(zlib.crc32(content))
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        self._saved_as = now

    def _read_rows(self, run: Recurrence) -> None:
        basis, size = run.basis, run.plan.vector_bytes
        numpy_type = torch.empty((), dtype=basis.rows.dtype).numpy().dtype
        try:
            with open(self._rows_path(*self._saved_as or (0, 0)), "rb") as file:
                for place in range(basis.num_used):
                    content = bytearray(file.read(size))
                    if len(content) != size or zlib.crc32(content) != self._sums[place]:
                        self._refuse("complete, with its rows", f"a damaged row {place} of {basis.num_used}")
                    basis.rows[place] = torch.from_numpy(np.frombuffer(content, dtype=numpy_type))
        except OSError as error:
            self._refuse("complete, with its rows", str(error))


def _saved_run(fields: Mapping[str, Any], version: int) -> SavedRun:
    """The state in the fields of a file.

    Raises:
        LookupError, TypeError, ValueError: A field is missing, or of another kind or length.
    """

    def numbers(name: str) -> Array:
        return np.asarray(fields[name], dtype=np.float64)

    def counts(name: str) -> IntArray:
        return np.asarray(fields[name], dtype=np.int64)

    lengths, exact, distinct = counts("lengths"), counts("exact"), counts("distinct")
    done_alphas, done_betas = numbers("done_alphas"), numbers("done_betas")
    finished = [
        LanczosRun(done_alphas[end - n : end], done_betas[end - n : end], bool(e), int(k))
        for n, end, e, k in zip(lengths, np.cumsum(lengths), exact, distinct, strict=True)
    ]
    basis = {name: int(fields[name]) for name in ("num_used", "num_locked", "num_stored", "generation")}
    alphas, betas, coordinates, sums = numbers("alphas"), numbers("betas"), numbers("coordinates"), counts("sums")
    num_rows, used = int(fields["num_rows"]), basis["num_used"]
    if not (
        len(done_alphas) == len(done_betas) == lengths.sum()
        and len(alphas) == len(betas)
        and coordinates.ndim == 2
        and len(coordinates) == len(sums) == used <= num_rows
    ):
        raise ValueError("fields that do not fit together")
    num_unused = int(fields["num_unused"]) if version > 1 else 0  # runs of version 1 leave no parameters out
    return SavedRun(
        finished, int(fields["num_steps"]), num_rows, num_unused, alphas, betas, bool(int(fields["now_exact"])),
        {**basis, "coordinates": coordinates}, sums.tolist(),
    )  # fmt: skip
