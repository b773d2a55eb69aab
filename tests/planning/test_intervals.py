from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eigencurve as ec
from eigencurve.planning.intervals import intervals_of
from eigencurve.spectrum.source import law_source, zoo_source

T = 2000
SUBJECTS = {"zoo": zoo_source("resnet20_cifar10"), "power law": law_source(1.2, 1e4, 1e-3)}


@pytest.mark.parametrize("beta", [1.0, 1.000005, 1.01, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("allocation", ["sqrt", "optimal"])
@pytest.mark.parametrize("name", SUBJECTS)
def test_intervals_share_out_the_run(name, beta, allocation):
    subject = SUBJECTS[name]
    curve = ec.eigencurve(subject.prepared, T, 0.1, beta=beta, allocation=allocation)
    rows = intervals_of(curve, subject, beta)
    assert 2 <= len(rows) <= 40
    assert_allclose(sum(row.length for row in rows), T)
    assert rows[0].start == 0
    for earlier, later in pairwise(rows):
        assert_allclose(earlier.start + earlier.length, later.start)
        assert earlier.upper <= later.lower * (1 + 1e-9)
    assert rows[0].first_lr == curve(0)
    assert rows[-1].last_lr == curve(T - 1)
    if beta in (1.5, 2.0, 3.0) and allocation == "sqrt":
        groups = ec.spectrum.group(subject.prepared, beta)
        assert_allclose([row.lower for row in rows], groups.lower)
        assert_allclose([row.share for row in rows], groups.share)
        root = np.sqrt(groups.share)
        assert_allclose([row.length for row in rows], T * root / root.sum())
