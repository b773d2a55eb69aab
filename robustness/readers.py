"""Damaged files: every reader either returns what was written, or raises the error that it documents."""

from __future__ import annotations

import io
import json
import pickle
import random
import resource
import tarfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from robustness.counts import Counts
from torch import nn

import eigencurve as ec
from eigencurve.forecast import load_run
from eigencurve.hessian import estimate_spectrum
from eigencurve.hessian.state_files import load_preconditioner
from eigencurve.runs.origin import origin_here
from eigencurve.runs.store import Outcome, Run, Store, StoreError
from eigencurve.studio.uploads import uploaded_source
from paper.data.download import extract_files
from paper.data.imagenet import CenterCrop, read_image
from paper.data.plain_pickle import load_plain
from paper.data.ptb import read_words
from paper.data.rows import read_libsvm
from paper.engine.exchange import read_runs, write_runs
from paper.training.checkpoint import TrainingCheckpoint

# What a damaged file may use in addition to what the process uses already.
MEMORY = 2 << 30
NUMBERS = (b"nan", b"inf", b"-1", b"0", b"1e999", b"1e-320", b"9" * 30, b"9" * 5000, b"null", b"true", b'"x"', b"[]")
MATRIX = np.diag(np.geomspace(1e-3, 3.0, 12))


@dataclass(frozen=True)
class Reader:
    """A reader, a file that it accepts, and the errors that it documents.

    Attributes:
        name: Name of the file.
        make: Writes the file.
        read: Reads it.
        errors: Documented errors.
        checked: Whether the file has checksums, so that a wrong value must never be returned.
    """

    name: str
    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    errors: tuple[type[Exception], ...] = (ValueError,)
    checked: bool = False


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four faults: flipped bits, lost, repeated or foreign bytes, odd numbers."""
    found = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(found) + 1)
        stop = min(len(found), start + rng.choice((1, 2, 8, 64, 600)))
        match rng.randrange(7):
            case 0 if found:
                found[start - 1] ^= 1 << rng.randrange(8)
            case 1:
                del found[start:stop]
            case 2:
                found[start:start] = found[start:stop]
            case 3:
                found[start:stop] = rng.randbytes(stop - start)
            case 4:
                del found[start:]
            case 5:
                found[start:stop] = rng.choice(NUMBERS)
            case _:
                found[start:start] = rng.choice(NUMBERS)
    return bytes(found)


def attack(folder: Path, each: int, seed: int) -> list[Counts]:
    """Read ``each`` damaged versions of every kind of file."""
    _limit_memory()
    found = []
    for reader in readers():
        counts = Counts(f"damaged {reader.name}")
        path = folder / reader.name
        reader.make(path)
        content, rng = path.read_bytes(), random.Random(f"{seed}:{reader.name}")
        expected = _read(reader, path)
        for _ in range(each):
            _forget(path)
            path.write_bytes(damaged(content, rng))
            _try(reader, path, expected, counts)
        _forget(path)
        found.append(counts)
    return found


def _try(reader: Reader, path: Path, expected: str, counts: Counts) -> None:
    counts.cases += 1
    try:
        value = _read(reader, path)
    except reader.errors as error:
        if len(str(error)) > 2000:
            counts.faults[f"a message of {len(str(error))} characters"] += 1
        else:
            counts.survived += 1
    except Exception as error:
        counts.faults[f"{type(error).__name__}: {str(error)[:100]}"] += 1
    else:
        if reader.checked and value != expected:
            counts.wrong_values += 1
        else:
            counts.survived += 1


def _read(reader: Reader, path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _shown(reader.read(path))


def _shown(value: Any) -> str:
    """A value as text, with all digits of its arrays."""
    match value:
        case np.ndarray() | torch.Tensor():
            return repr(np.asarray(value).tolist())
        case dict():
            return repr({key: _shown(item) for key, item in value.items()})
        case list() | tuple():
            return repr([_shown(item) for item in value])
        case ec.Spectrum():
            return _shown([value.eigenvalues, value.weights, value.dim])
    return repr(value)


def _forget(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def readers() -> list[Reader]:
    """Every reader of the package."""
    suffixes = (".npz", ".json", ".txt")
    return [
        *(Reader(f"spectrum{end}", _save_spectrum, ec.load_spectrum, checked=end == ".npz") for end in suffixes),
        *(Reader(f"upload{end}", _save_spectrum, _upload) for end in suffixes),
        Reader("schedule.json", _save_schedule, _load_schedule, (ValueError, TypeError)),
        Reader("log.csv", _save_csv, load_run),
        Reader("log.json", _save_lines, load_run),
        Reader(
            "data_batch.pickle", _save_pickle, lambda path: load_plain(path.read_bytes()), (pickle.UnpicklingError,)
        ),
        Reader("a4a.libsvm", _save_libsvm, lambda path: read_libsvm(path).values),
        Reader("image.png", _save_image, lambda path: read_image(path, CenterCrop(8), 0)),
        Reader("image.jpeg", _save_image, lambda path: read_image(path, CenterCrop(8), 0)),
        Reader("words.txt", lambda path: path.write_bytes(b"a b <unk> c\n" * 9) and None, read_words),
        Reader("archive.tar.gz", _save_tar, lambda path: extract_files(path, path.parent, ["out/member"])),
        Reader("adam.pt", _save_adam, _load_adam),
        Reader("training.pt", _save_training, lambda path: TrainingCheckpoint(path, "x").load(), checked=True),
        Reader("estimate.checkpoint", _estimate, _estimate, checked=True),
        Reader("store.sqlite", _save_store, _load_store, (ValueError, StoreError), checked=True),
        Reader("runs.jsonl", _save_runs, read_runs, checked=True),
    ]


def _save_spectrum(path: Path) -> None:
    ec.save_spectrum(ec.Spectrum(np.geomspace(1e-4, 50.0, 20), np.ones(20), dim=400), path)


def _upload(path: Path) -> ec.Spectrum:
    return uploaded_source(path.name, path.read_bytes(), 1e-3).spectrum


def _save_schedule(path: Path) -> None:
    inner = ec.warmup(ec.piecewise(90, [0, 20, 89], [0.1, 0.05, 0.01]), 10)
    path.write_text(json.dumps(ec.schedules.join([inner, ec.cosine(50, 0.01)]).to_dict()))


def _load_schedule(path: Path) -> Any:
    return ec.schedule_from_dict(json.loads(path.read_bytes()))(0)


def _save_csv(path: Path) -> None:
    path.write_text("step,lr,loss\n" + "".join(f"{k},{0.1 / (1 + k)},{2 / (1 + k)}\n" for k in range(0, 300, 10)))


def _save_lines(path: Path) -> None:
    entries = [{"step": k, "lr": 0.1 / (1 + k), "loss": 2 / (1 + k)} for k in range(0, 300, 10)]
    path.write_text("\n".join(map(json.dumps, entries)))


def _save_pickle(path: Path) -> None:
    fields = {b"labels": [1, 2, 3], b"data": np.arange(30, dtype=np.uint8).reshape(3, 10), b"batch_label": b"one"}
    path.write_bytes(pickle.dumps(fields, protocol=2))


def _save_libsvm(path: Path) -> None:
    path.write_text("".join(f"{(-1) ** k} {k + 1}:1 {k + 5}:0.25\n" for k in range(30)))


def _save_image(path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, path.suffix[1:])
    path.write_bytes(buffer.getvalue())


def _save_tar(path: Path) -> None:
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("out/member")
        member.size = 1000
        tar.addfile(member, io.BytesIO(bytes(range(250)) * 4))


def _net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(5, 3)


def _save_adam(path: Path) -> None:
    model = _net()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 5)).sum().backward()
    optimizer.step()
    torch.save(optimizer.state_dict(), path)


def _load_adam(path: Path) -> Any:
    model = _net()
    found = load_preconditioner(path, model, dict(model.named_parameters()), "adam")
    return [state["exp_avg_sq"] for state in found.state.values()]


def _save_training(path: Path) -> None:
    TrainingCheckpoint(path, "x").save({"step": 3, "model": _net().state_dict(), "history": {"loss": [0.5, 0.25]}})


def _estimate(path: Path) -> ec.Spectrum:
    return estimate_spectrum(MATRIX, 8, settle=None, checkpoint=path, progress=False).spectrum


def _save_store(path: Path) -> None:
    store = Store(path)
    for seed in range(30):
        run, outcome = Run({"lr": 0.1, "epochs": seed % 3}, seed), Outcome({"loss": 1 / (1 + seed)}, [(1.0, 0.5)])
        store.add("soak", [run], [outcome], origin_here(), 1.0)
    path.write_bytes(path.read_bytes())


def _save_runs(path: Path) -> None:
    store = path.with_name("runs.sqlite")
    _save_store(store)
    write_runs(Store(store), path)
    _forget(store)


def _load_store(path: Path) -> str:
    """All runs, of which a damaged index may hide some."""
    found = Store(path).outcomes("soak", [Run({"lr": 0.1, "epochs": seed % 3}, seed) for seed in range(30)])
    correct = [Outcome({"loss": 1 / (1 + seed)}, [(1.0, 0.5)]) for seed in range(30)]
    return "right" if all(one in (None, other) for one, other in zip(found, correct, strict=True)) else "wrong"
