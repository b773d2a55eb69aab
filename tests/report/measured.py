"""A small measured spectrum whose name and comments need escaping in HTML, and readers for what a section shows."""

import xml.etree.ElementTree as ET

from tests.spectrum.test_measurement import record

import eigencurve as ec
from eigencurve.planning.subject import Subject
from eigencurve.spectrum.groups import group
from eigencurve.spectrum.octaves import Octaves

SPECTRUM = ec.Spectrum([-0.2, -0.001, 0.02, 0.5, 8.0], [1, 3, 20, 6, 1], dim=310)
NAME = "net <b> & co"


def measured_subject(decay=1e-2):
    """A measured spectrum whose error bars are for the weight decay 1e-2."""
    octaves = group(ec.spectrum.prepare(SPECTRUM, 1e-2))
    shares = Octaves("share", octaves.index, octaves.lower, octaves.share, octaves.share / 10, 1e-2)
    known = record(made_by="<i>me</i>", octaves=shares)
    return Subject(NAME, SPECTRUM, decay, known, "ec.load_spectrum('s.npz')", "a < b")


def text_of(section):
    """The text of a section, without its markup."""
    root = ET.fromstring(f"<section>{''.join(section.blocks)}</section>")
    return " ".join(" ".join(root.itertext()).split())


def tables_of(section):
    """The rows of each table of a section, by its caption; a row is a list of cells."""
    root = ET.fromstring(f"<section>{''.join(section.blocks)}</section>")
    return {t[0].text: [["".join(cell.itertext()) for cell in row] for row in t.iter("tr")] for t in root.iter("table")}
