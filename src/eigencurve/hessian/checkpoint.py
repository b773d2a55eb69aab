"""Checkpoints of a Lanczos run: the state in a small file, written atomically, and the basis in an append-only file.

``run.npz`` holds α, β and the identity of the run, and ``run.npz.rows-N`` the rows of the basis as raw numbers. Each
row is written once, not at every save, so a save costs the same at step 10 and at step 1,000. The small file is
replaced only after its rows are on disk, so a process killed at any time leaves a state to resume from.

If several processes hold parts of the vectors, each has two such files of its own, ``run.npz.part-0-of-2`` and so on.
They save at the same steps and replace the small files together, see :mod:`eigencurve.hessian.shared_files`.

The files are next to the file that ``run.npz`` points to if it is a link, and they stay there if the folder of the
process changes. Names that are too long are abbreviated, see :func:`eigencurve._files.companion`.
"""

from __future__ import annotations

import errno
import io
import os
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from eigencurve import _check
from eigencurve._archives import ArchiveError, read_arrays
from eigencurve._arrays import Array
from eigencurve._files import companion, companions, exclusive
from eigencurve.hessian.batches import tensor_bytes
from eigencurve.hessian.identity import NUM_PROJECTIONS, Identity
from eigencurve.hessian.lanczos import LanczosRun, Recurrence
from eigencurve.hessian.shared_files import newest_common, next_path, replace_together, require_number_of_parts
from eigencurve.hessian.space import Space

FORMAT = "eigencurve.lanczos"
VERSION = 3
SECONDS_BETWEEN = 5.0
# What makes a path wrong, in contrast to a disk that is full or fails.
WRONG_PATH = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG,
)  # fmt: skip
ROWS = r"\.rows-\d+-\d+"
# The fields of the small file and their numbers of axes; the texts are not numbers. Files of version 0.1 have no
# function.
TEXTS = ("format", "fingerprint", "function", "part_names", "part_hashes", "number_names")
AXES = {
    "format": 0, "version": 0, "seed": 0, "num_steps": 0, "num_rows": 0, "lengths": 1, "exact": 1, "distinct": 1,
    "done_alphas": 1, "done_betas": 1, "alphas": 1, "betas": 1, "now_exact": 0, "coordinates": 2, "num_used": 0,
    "num_locked": 0, "num_stored": 0, "generation": 0, "sums": 1, "num_unused": 0,
}  # fmt: skip
# The fields of the identity, in files of this version and in those of versions 1 and 2.
IDENTITY_AXES = {"part_names": 1, "part_hashes": 1, "number_names": 1, "numbers": 2}
OLD_AXES = {"fingerprint": 0}
OLD_VERSIONS = (1, 2)
NO_NUMBERS = np.zeros((0, 1 + NUM_PROJECTIONS))
SAME_PARTS = (
    "The parameters, the data and the settings are the same, so the loss function, a buffer or the code of the model "
    "has changed."
)


class CheckpointError(OSError):
    """The checkpoint cannot be written now: no space, no permission, or its folder was removed."""


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A state read from disk: finished probes, fields of the unfinished probe, and the planned steps and rows."""

    finished: list[LanczosRun]
    fields: dict[str, Any]
    num_steps: int
    num_rows: int

    @property
    def num_unused(self) -> int:
        """Number of parameters that the probes leave out."""
        return int(self.fields["num_unused"])

    @property
    def progress(self) -> tuple[int, int]:
        """Number of finished probes, and of steps of the unfinished one."""
        return len(self.finished), len(self.fields["alphas"])


def saved_steps(path: str | os.PathLike[str]) -> int:
    """The number of steps in a checkpoint, of all probes; 0 if the file does not exist or cannot be read."""
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
            reason = getattr(error, "strerror", None) or str(error)
            if getattr(error, "errno", errno.ELOOP) not in WRONG_PATH:
                raise CheckpointError(f"{function}: the checkpoint {path} cannot be saved: {reason}.") from error
            remedy = "Pass another path."
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
        self._given = Path(path).absolute()
        self._sums: list[int] = []
        self._saved_as: tuple[int, int] | None = None
        self._next_save = time.monotonic() + SECONDS_BETWEEN

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
        chosen = newest_common(self.space, self.path, states, self._refuse)
        if chosen is not None and "fingerprint" in chosen.fields:
            warnings.warn(
                f"{self.identity.function}: the checkpoint {self.path.name} is of an earlier release, which recorded "
                "the parameters and the data, but not the loss function, the buffers, the frozen weights and the code "
                "of the model. If any of these may have changed, move the file away and start again.",
                stacklevel=2,
            )
        return chosen

    def _state(self, path: Path) -> SavedRun:
        fields = self._read(path)
        if not _fits_together(fields):
            self._refuse("a complete checkpoint", "fields that do not fit together")
        self._require_same(fields)
        lengths, exact = fields["lengths"], fields["exact"]
        ends = np.cumsum(lengths)
        finished = [
            LanczosRun(fields["done_alphas"][end - n : end], fields["done_betas"][end - n : end], bool(e), int(k))
            for n, end, e, k in zip(lengths, ends, exact, fields["distinct"], strict=True)
        ]
        return SavedRun(finished, fields, int(fields["num_steps"]), int(fields["num_rows"]))

    def restore(self, saved: SavedRun, run: Recurrence) -> None:
        """Restore the unfinished probe of ``saved`` into a new ``run``."""
        fields, basis = saved.fields, run.basis
        run.alphas, run.betas = fields["alphas"].tolist(), fields["betas"].tolist()
        run.exact, run.num_unused = bool(fields["now_exact"]), saved.num_unused
        basis.coordinates = fields["coordinates"]
        basis.num_used, basis.num_locked = int(fields["num_used"]), int(fields["num_locked"])
        basis.num_stored, basis.generation = int(fields["num_stored"]), int(fields["generation"])
        self._sums, self._saved_as = fields["sums"].tolist(), (len(saved.finished), basis.generation)
        self._read_rows(len(saved.finished), run)
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
            self._save(finished, run)
        except OSError as error:
            reason = error.strerror or str(error)
            remedy = "Make room and let the folder be written, or pass another path."
            text = f"{self.identity.function}: the checkpoint {self.path} cannot be saved: {reason}. {remedy}"
            raise CheckpointError(text) from error
        self._next_save = time.monotonic() + SECONDS_BETWEEN

    def _save(self, finished: list[LanczosRun], run: Recurrence) -> None:
        self._write_rows(len(finished), run)
        buffer = io.BytesIO()
        np.savez(buffer, **self._fields(finished, run))
        replace_together(self.space, self.path, buffer.getvalue())
        current = self._rows_path(len(finished), run.basis.generation)
        for other, _ in companions(self.path, ROWS):
            if other != current:
                other.unlink(missing_ok=True)

    def _fields(self, finished: list[LanczosRun], run: Recurrence) -> dict[str, Any]:
        basis = run.basis
        joined: Array = np.concatenate([np.zeros(0), *(done.alphas for done in finished)])
        return {
            "format": np.str_(FORMAT), "version": np.int64(VERSION), "seed": np.int64(self.identity.seed),
            "function": np.str_(self.identity.function),
            "part_names": np.array([*self.identity.parts], dtype=np.str_),
            "part_hashes": np.array([*self.identity.parts.values()], dtype=np.str_),
            "number_names": np.array([*self.identity.numbers], dtype=np.str_),
            "numbers": np.array([*self.identity.numbers.values()]),
            "num_steps": np.int64(run.plan.num_products), "num_rows": np.int64(run.plan.num_rows),
            "lengths": np.array([len(done.alphas) for done in finished], dtype=np.int64),
            "exact": np.array([done.exact for done in finished], dtype=np.int64),
            "distinct": np.array([done.num_distinct for done in finished], dtype=np.int64),
            "done_alphas": joined, "done_betas": np.concatenate([np.zeros(0), *(done.betas for done in finished)]),
            "alphas": np.array(run.alphas), "betas": np.array(run.betas), "now_exact": np.int64(run.exact),
            "coordinates": basis.coordinates, "num_used": np.int64(basis.num_used),
            "num_locked": np.int64(basis.num_locked), "num_stored": np.int64(basis.num_stored),
            "generation": np.int64(basis.generation), "sums": np.array(self._sums, dtype=np.int64),
            "num_unused": np.int64(run.num_unused),
        }  # fmt: skip

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            fields = read_arrays(path.read_bytes())
        except (ArchiveError, OSError) as error:
            self._refuse("a complete checkpoint", str(error))
        if np.array_equal(fields.get("version", 0), 1):  # its probes leave no parameters out
            fields |= {"num_unused": np.array(0)}
        is_old = any(np.array_equal(fields.get("version", 0), old) for old in OLD_VERSIONS)
        for name, axes in {**AXES, **(OLD_AXES if is_old else IDENTITY_AXES)}.items():
            field = fields.get(name)
            if field is None or field.ndim != axes or (field.dtype.kind == "U") != (name in TEXTS):
                self._refuse("a complete checkpoint", f"one without a valid {name!r}")
        kind, version = str(fields["format"]), int(fields["version"])
        if kind != FORMAT or version not in (*OLD_VERSIONS, VERSION):
            self._refuse(f"of format {FORMAT!r}, version {VERSION}", f"{kind!r}, version {version}")
        return fields

    def _require_same(self, fields: dict[str, Any]) -> None:
        function = str(fields.get("function", "estimate_spectrum"))  # files of version 0.1 have no function
        if function != self.identity.function:
            self._refuse(f"of {self.identity.function}", f"a checkpoint of {function}")
        if int(fields["seed"]) != self.identity.seed:
            self._refuse(f"of seed {self.identity.seed}", f"a checkpoint of seed {int(fields['seed'])}")
        if "fingerprint" in fields:
            if str(fields["fingerprint"]) != self.identity.fingerprint():
                self._refuse("of this model, these parameters and this data", "a checkpoint of another problem")
            return
        self._require_same_problem(fields)

    def _require_same_problem(self, fields: dict[str, Any]) -> None:
        names, hashes = fields["part_names"].tolist(), fields["part_hashes"].tolist()
        numbers = dict(zip(fields["number_names"].tolist(), fields["numbers"], strict=True))
        parts = self.identity.different_parts(dict(zip(names, hashes, strict=True)))
        changed = [*parts, *self.identity.different_numbers(numbers)]
        if changed:
            remedy = "" if parts else f"{SAME_PARTS} "
            self._refuse("of this problem", f"a checkpoint of another problem: different {', '.join(changed)}", remedy)

    def _refuse(self, constraint: str, got: str, cause: str = "") -> NoReturn:
        remedy = f"{cause}The file {self.path.name} is unchanged: move it away, or pass another path."
        _check.refuse(self.identity.function, "checkpoint", constraint, got, remedy)

    def _rows_path(self, probe: int, generation: int) -> Path:
        return companion(self.path, _rows_ending(probe, generation))

    def _saved_rows(self, probe: int, generation: int) -> Path:
        """Path of the rows on disk; earlier releases wrote them next to a link instead of next to its target."""
        path = self._rows_path(probe, generation)
        linked = companion(self.space.own_path(self._given), _rows_ending(probe, generation))
        return linked if linked.exists() and not path.exists() else path

    def _write_rows(self, probe: int, run: Recurrence) -> None:
        basis, now = run.basis, (probe, run.basis.generation)
        if now != self._saved_as:
            self._sums = []
        path, size = self._rows_path(*now), run.plan.vector_bytes
        with open(path, "r+b" if self._sums else "wb") as file:
            file.seek(len(self._sums) * size)
            for row in basis.rows[len(self._sums) : basis.num_used]:
                content = tensor_bytes(row)
                file.write(content)
                self._sums.append(zlib.crc32(content))
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        self._saved_as = now

    def _read_rows(self, probe: int, run: Recurrence) -> None:
        basis, size = run.basis, run.plan.vector_bytes
        numpy_type = torch.empty((), dtype=basis.rows.dtype).numpy().dtype
        path = self._saved_rows(probe, basis.generation)
        try:
            with open(path, "rb") as file:
                for place in range(basis.num_used):
                    content = bytearray(file.read(size))
                    if len(content) != size or zlib.crc32(content) != self._sums[place]:
                        self._refuse("complete, with its rows", f"a damaged row {place} of {basis.num_used}")
                    basis.rows[place] = torch.from_numpy(np.frombuffer(content, dtype=numpy_type))
        except OSError as error:
            self._refuse("complete, with its rows", str(error))
        if path != self._rows_path(probe, basis.generation):
            self._sums = []  # the next save writes all rows to their own place


def _rows_ending(probe: int, generation: int) -> str:
    return f".rows-{probe}-{generation}"


def _fits_together(fields: dict[str, Any]) -> bool:
    """Whether the lengths of the arrays are those that the counts announce."""
    used, done = int(fields["num_used"]), int(fields["lengths"].sum())
    each = len(fields["lengths"])
    return (
        len(fields["exact"]) == len(fields["distinct"]) == each
        and len(fields.get("part_names", ())) == len(fields.get("part_hashes", ()))
        and fields.get("numbers", NO_NUMBERS).shape == (len(fields.get("number_names", ())), NO_NUMBERS.shape[1])
        and len(fields["done_alphas"]) == len(fields["done_betas"]) == done
        and len(fields["alphas"]) == len(fields["betas"])
        and len(fields["coordinates"]) == used <= int(fields["num_rows"])
        and len(fields["sums"]) == used
    )
