import re

import numpy as np
import pytest

import eigencurve as ec

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.figures.schedules import rates_figure
from eigencurve.report.svg import inline_svg


def test_a_picture_is_the_same_each_time_and_keeps_to_its_name():
    pictures = [inline_svg(rates_figure({"f": ec.cosine(50, 0.1)}, "log"), "one", "what it shows") for _ in range(2)]
    assert pictures[0] == pictures[1]
    assert all(name.startswith("one-") for name in re.findall(r'\bid="([^"]+)"', pictures[0]))
    assert np.isfinite([float(n) for n in re.search(r'viewBox="([^"]+)"', pictures[0])[1].split()]).all()
