"""The files that the tests of the command line read."""

from pathlib import Path

from tests.planning.logged import write_logs
from tests.spectrum.test_measurement import record
from tests.spectrum.test_noise import noise
from tests.spectrum.test_start import START

import eigencurve as ec

SPECTRUM = "# dim 40\n-0.002 0.5\n0.001 20\n0.01 12\n0.2 6\n3.0 1.5\n"
POSITIVE = "0.001 20\n0.05 12\n0.7 6\n"
PROBLEM = """
import torch

def problem():
    x = torch.diag(torch.tensor([1.0, 2.0, 4.0, 8.0]))
    model = torch.nn.Linear(4, 1, bias=False)
    torch.nn.init.constant_(model.weight, 0.5)
    return model, torch.nn.MSELoss(), (x, torch.zeros(4, 1))

def broken():
    raise KeyError("labels")

def pair():
    return 1, 2

def endless():
    raise KeyboardInterrupt
"""


def prepare(folder: Path) -> None:
    """Write the files."""
    (folder / "small.txt").write_text(SPECTRUM)
    (folder / "positive.txt").write_text(POSITIVE)
    (folder / "damaged.json").write_text("{]")
    (folder / "measured.py").write_text(PROBLEM)
    head, *rows = write_logs(folder)[1].read_text().splitlines()
    (folder / "late.csv").write_text("\n".join([head, *rows[10:]]) + "\n")
    spectrum = ec.Spectrum([-0.1, 0.2, 3.0], [1, 6, 3], dim=10)
    ec.save_spectrum(spectrum, folder / "noisy.npz", record(error_between_probes=0.013), noise(), START)
    adam = record(preconditioner="AdamW", reason="num_steps", schedule_change=0.41)
    ec.save_spectrum(spectrum, folder / "adam.npz", adam, noise(), START)
    for name, steps in (("saved.json", 10), ("saved300.json", 300)):
        text = f'{{"kind": "cosine", "version": 1, "total_steps": {steps}, "lr": 0.1, "min_lr": 0.0}}\n'
        (folder / name).write_text(text)
