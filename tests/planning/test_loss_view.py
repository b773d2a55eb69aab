"""The quick losses against the library's exact ones."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eigencurve as ec
from eigencurve.planning.labels import BEST
from eigencurve.planning.loss_view import PROMISED, loss_view, marks_for
from eigencurve.spectrum.source import law_source, zoo_source
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.optimal import search
from eigencurve.theory.tuning import rescaled

T = 2000
ZOO, LAW = zoo_source("resnet20_cifar10"), law_source(1.2, 1e4, 1e-3)


def six_schedules(subject, lr, total_steps=T):
    return {
        "eigencurve": ec.eigencurve(subject.prepared, total_steps, lr),
        "cosine": ec.cosine(total_steps, lr),
        "step_decay": ec.step_decay(total_steps, lr),
        "elastic_step": ec.elastic_step(total_steps, lr),
        "exponential": ec.exponential(total_steps, lr, lr / 1000),
        "wsd": ec.wsd(total_steps, lr, max(1, total_steps // 5)),
    }


def view_of(subject, noise, scale="best", lr=0.1, **more):
    q = ec.NoisyQuadratic(subject.spectrum, noise, 1.0)
    schedules = {**six_schedules(subject, lr), **more}
    return q, schedules, loss_view(q, 2 / q.spectrum.L, T, schedules, scale)


@pytest.mark.parametrize("subject", [ZOO, LAW], ids=["zoo", "power law"])
@pytest.mark.parametrize("scale", ["best", "theory", "given"])
@pytest.mark.parametrize("noise", [0.0, 1.0, 1e4])
def test_losses_are_the_librarys(subject, scale, noise):
    """Exact recursion on all eigenvalues, step by step, for every schedule and mark."""
    lr = 1e-3 if subject is ZOO else 0.15  # below 2/L
    q, schedules, view = view_of(subject, noise, scale, lr)
    stable = 2 / q.spectrum.L
    assert_allclose(view.bound[-1], q.lower_bound(T, stable), rtol=1e-12)
    for row in view.rows:
        schedule = schedules[row.name]
        exact = q.loss_curve(rescaled(schedule, row.peak / schedule.values().max()), view.marks.tolist()).loss
        assert_allclose(row.curve, exact, rtol=PROMISED)
        assert_allclose(row.loss, exact[-1], rtol=PROMISED)
        assert_allclose(row.bias + row.variance, row.loss, rtol=1e-12)
        assert_allclose(row.ratio, row.loss / view.bound[-1])
        assert np.abs(row.curve / exact - 1).max() <= max(view.error, 1e-4)
        if scale != "best":
            assert_allclose(row.peak, lr if scale == "given" else stable / 2)
    assert view.error <= PROMISED


@pytest.mark.parametrize(("momentum", "nesterov"), [(0.5, False), (0.9, False), (0.9, True)])
@pytest.mark.parametrize("scale", ["best", "theory"])
def test_losses_with_momentum_are_the_librarys(scale, momentum, nesterov):
    q = ec.NoisyQuadratic(LAW.spectrum, 1e3, 1.0, momentum, nesterov)
    schedules = six_schedules(LAW, 0.1)
    view = loss_view(q, q.stable_rate, T, schedules, scale)
    assert view.bound is None
    assert view.error <= PROMISED
    for row in view.rows:
        schedule = schedules[row.name]
        exact = q.loss_curve(rescaled(schedule, row.peak / schedule.values().max()), view.marks.tolist()).loss
        assert_allclose(row.curve, exact, rtol=PROMISED)
        assert row.ratio is None


@pytest.mark.parametrize("noise", [1.0, 1e4])
def test_best_rates_are_the_librarys(noise):
    q, schedules, view = view_of(LAW, noise)
    tuned = q.compare(schedules, tune_lr=True)
    for row in view.rows:
        assert_allclose(row.loss, tuned[row.name].loss, rtol=PROMISED)
    assert [row.loss for row in view.rows] == sorted(row.loss for row in view.rows)


def test_the_bound_along_the_run_is_the_librarys():
    q, _, view = view_of(LAW, 1e4)
    assert view.bound[0] == pytest.approx(0.5, rel=1e-15)
    for mark, bound in zip(view.marks[1:].tolist(), view.bound[1:], strict=True):
        assert_allclose(bound, q.lower_bound(mark, 2 / q.spectrum.L), rtol=1e-12)


def test_rates_beyond_the_quadratics_limit_diverge():
    q = ec.NoisyQuadratic(ZOO.spectrum, 1e4, 1.0)
    schedules = {name: f for name, f in six_schedules(ZOO, 0.1).items() if name in ("eigencurve", "cosine")}
    view = loss_view(q, 0.1, T, schedules, "given")
    assert all(row.diverges for row in view.rows)
    assert np.isfinite(view.bound).all()


def test_the_numerically_best_schedule_keeps_its_rates():
    q = ec.NoisyQuadratic(LAW.spectrum, 1e4, 1.0)
    best = search(BlockEvaluator(q.nodes), q.spectrum, T, 2 / q.spectrum.L).schedule
    _, _, view = view_of(LAW, 1e4, "theory", **{BEST: best})
    assert view.rows[0].name == BEST
    assert_allclose(view.rows[0].peak, best.values().max())
    assert_allclose(view.rows[0].loss, q.expected_loss(best), rtol=1e-3)


@pytest.mark.parametrize("total", [1, 2, 5, 60, 1000, 10**7])
def test_marks(total):
    marks = marks_for(total)
    assert marks[0] == 0
    assert marks[-1] == total
    assert (np.diff(marks) > 0).all()
    assert len(marks) <= 61


def test_a_run_of_one_step():
    q = ec.NoisyQuadratic(LAW.spectrum, 1e4, 1.0)
    view = loss_view(q, 2 / q.spectrum.L, 1, six_schedules(LAW, 0.1, 1), "best")
    assert len(view.rows) == 6
    assert all(math.isfinite(row.loss) for row in view.rows)


def test_a_million_steps_on_a_published_spectrum(data_path):
    """Exact at three times, on every eigenvalue."""
    spectrum = ec.spectrum.prepare(ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt")), 5e-4)
    q = ec.NoisyQuadratic(spectrum, 1e4, 1.0)
    schedules = {"eigencurve": ec.eigencurve(spectrum, 10**6, 0.1), "step_decay": ec.step_decay(10**6, 0.1)}
    view = loss_view(q, 2 / spectrum.L, 10**6, schedules, "best")
    assert view.error <= PROMISED
    rows = {row.name: row for row in view.rows}
    assert_allclose(
        rows["step_decay"].loss, q.expected_loss(ec.step_decay(10**6, rows["step_decay"].peak)), rtol=PROMISED
    )
    marks = view.marks[view.marks < 3000]
    f = ec.eigencurve(spectrum, 10**6, rows["eigencurve"].peak)
    assert_allclose(rows["eigencurve"].curve[: len(marks)], q.loss_curve(f, marks.tolist()).loss, rtol=PROMISED)
