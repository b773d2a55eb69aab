"""Small texts for the tests of the transformer experiment."""

import numpy as np

from paper.byte_text.scales import SMOKE_SCALE, base_settings
from paper.data.ptb import ByteText, read_bytes


def write_texts(folder, num=1_200):
    """Texts in which each byte narrows down the next."""
    for seed, name in enumerate(("ptb.valid.txt", "ptb.test.txt")):
        steps = np.random.default_rng(seed).choice([1, 1, 1, 2], num)
        (folder / name).write_bytes(bytes((97 + np.cumsum(steps) % 13).tolist()))
    return folder


def small_text(folder, num=1_200):
    write_texts(folder, num)
    return ByteText(read_bytes(folder / "ptb.valid.txt"), read_bytes(folder / "ptb.test.txt"), "letters")


def settings(**changes):
    usual = {"epochs": 3, "steps_per_epoch": 4, "schedule": "cosine", "lr": 0.01, "min_lr": 0.0}
    return base_settings(SMOKE_SCALE) | usual | changes
