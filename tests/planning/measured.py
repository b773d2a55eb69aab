"""A small measured spectrum whose name and comments need escaping in HTML."""

from tests.spectrum.test_measurement import record

import eigencurve as ec
from eigencurve.spectrum.groups import group
from eigencurve.spectrum.octaves import Octaves
from eigencurve.spectrum.source import SpectrumSource

SPECTRUM = ec.Spectrum([-0.2, -0.001, 0.02, 0.5, 8.0], [1, 3, 20, 6, 1], dim=310)
NAME = "net <b> & co"


def measured_source(decay=1e-2):
    """A measured spectrum whose error bars are for the weight decay 1e-2."""
    octaves = group(ec.spectrum.prepare(SPECTRUM, 1e-2))
    shares = Octaves("share", octaves.index, octaves.lower, octaves.share, octaves.share / 10, 1e-2)
    measurement = record(made_by="<i>me</i>", octaves=shares)
    return SpectrumSource(NAME, SPECTRUM, decay, measurement, about="a < b")
