"""Small folders in the layouts of CIFAR-10 and CIFAR-100, written opcode by opcode as Python 2 wrote them."""

import struct
from pathlib import Path

import numpy as np


def text(value):
    return b"U" + bytes([len(value)]) + value.encode()


def integers(values):
    return b"](" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"e"


def array(values):
    empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    shape = b"".join(b"J" + struct.pack("<i", size) for size in values.shape) + b"\x86"
    return empty + b"(K\x01" + shape + dtype + b"\x89T" + struct.pack("<i", values.nbytes) + values.tobytes() + b"tb"


def mapping(fields):
    return b"\x80\x02}(" + b"".join(text(key) + value for key, value in fields.items()) + b"u."


def batch(pixels, labels, key):
    return mapping({"batch_label": text("a batch"), key: integers(labels), "data": array(pixels), "filenames": b"]"})


def pixels_and_labels(num, num_classes, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (num, 3072), dtype=np.uint8), rng.integers(0, num_classes, num).tolist()


def write_cifar10(folder: Path, per_batch: int = 4) -> Path:
    target = folder / "cifar-10-batches-py"
    target.mkdir(parents=True)
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    for seed, name in enumerate(names):
        (target / name).write_bytes(batch(*pixels_and_labels(per_batch, 10, seed), "labels"))
    (target / "batches.meta").write_bytes(mapping({"num_cases_per_batch": b"J" + struct.pack("<i", per_batch)}))
    return target


def write_cifar100(folder: Path) -> Path:
    target = folder / "cifar-100-python"
    target.mkdir(parents=True)
    for seed, (name, num) in enumerate((("train", 12), ("test", 5))):
        (target / name).write_bytes(batch(*pixels_and_labels(num, 100, seed), "fine_labels"))
    (target / "meta").write_bytes(mapping({"fine_label_names": b"]"}))
    return target
