import pytest
from numpy.testing import assert_allclose

import eigencurve as ec
from eigencurve.planning.spectrum import quadratic_of
from eigencurve.spectrum.source import law_source, with_inputs, zoo_source
from eigencurve.studio.losses import loss_curves

SOURCES = {"zoo": zoo_source("resnet20_cifar10"), "law": with_inputs(law_source(1.5, 1e4), noise=100.0)}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(("momentum", "nesterov"), [(None, False), (0.9, True)])
def test_the_curves_are_those_of_the_exact_recursion(name, momentum, nesterov):
    source = SOURCES[name]
    plan = ec.plan(source, total_steps=500, momentum=momentum, nesterov=nesterov)
    problem = quadratic_of(source, momentum or 0.0, nesterov)
    curves = loss_curves(plan, source)
    assert (curves.marks[0], curves.marks[-1]) == (0, 500)
    for row in plan.table.rows:
        exact = problem.loss_curve(row.schedule, curves.marks.tolist())
        # One resolution of spectrum and time: enough for a figure.
        assert_allclose(curves.losses[row.label], exact.bias + exact.variance, rtol=0.02)
    assert (curves.bound is None) == (momentum is not None)
    if curves.bound is not None:
        assert all((curve >= 0.98 * curves.bound).all() for curve in curves.losses.values())
