"""Small data and a small scale for the tests of the noise study."""

from dataclasses import replace

import numpy as np
from tests.paper.data.cifar_files import write_cifar10

from paper.studies.noise_training import SMOKE

SUBJECTS = {subject.name: subject for subject in SMOKE.subjects}
IMAGES = SUBJECTS["vgg16_cifar10_narrow8"]
TEXT = replace(SUBJECTS["transformer_ptb_adamw"], divisor=20)
SCALE = replace(SMOKE, subjects=(IMAGES, TEXT), fewer=(IMAGES.name,), noisier=(IMAGES.name,))


def write_data(folder):
    write_cifar10(folder, per_batch=8)
    (folder / "ptb").mkdir()
    rng = np.random.default_rng(0)
    for name in ("valid", "test"):
        (folder / "ptb" / f"ptb.{name}.txt").write_bytes(rng.integers(97, 105, 3000).astype(np.uint8).tobytes())
    return folder
