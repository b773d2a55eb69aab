"""Made-up results of the noise study."""

import numpy as np
from tests.paper.studies.noise_files import IMAGES
from tests.spectrum.test_noise import noise

import eigencurve as ec
from eigencurve.spectrum.files import SpectrumFile
from eigencurve.spectrum.octaves import Octaves
from eigencurve.spectrum.start import StartEstimate
from paper.studies.noise_measuring import Measured, Studied, fewer_examples, noisier_examples, usual
from paper.studies.noise_training import END, MOMENTS

WEIGHTS = {"start": (4, 1), "a tenth": (3, 1), "a half": (2, 1), "end": (1, 1)}


def measured(moment, **changes):
    spectrum = ec.Spectrum([-0.1, 0.2, 3.0], [1, *WEIGHTS[moment]], dim=10)
    one = np.ones(1)
    start = StartEstimate(
        octaves=Octaves(
            "level", np.zeros(1, dtype=np.int64), 0.1 * one, one, one, 5e-4, {"num_eigenvalues": 10 * one, "mass": one}
        ),
        loss=0.5, source="displacement", num_products=3, seconds=0.1,
    )  # fmt: skip
    metrics = {"accuracy": 0.5, "test_loss": 1.0} if moment != "start" else {}
    file = SpectrumFile(spectrum, None, noise(**changes), start if moment == END else None)
    return Measured(MOMENTS.index(moment), metrics, file)


def studied(**changes):
    found = {usual(IMAGES, moment): measured(moment, **changes) for moment in MOMENTS}
    found[usual(IMAGES, END, probe=1)] = measured("a half")
    found |= {fewer_examples(IMAGES): measured("a tenth"), noisier_examples(IMAGES): measured(END)}
    return Studied(IMAGES, 50, found)
