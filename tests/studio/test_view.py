"""The page's numbers against the library's own."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eigencurve as ec
from eigencurve.spectrum.zoo import zoo_spectrum
from eigencurve.studio.source import Upload, subject_of
from eigencurve.studio.state import KINDS, Settings
from eigencurve.studio.view import BEST, PROMISED, marks_for, problem_of, recipe_of, redraw
from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.optimal import search

ZOO = Settings(epochs=20, steps_per_epoch=100)
LAW = Settings(source="power_law", alpha=1.2, kappa=1e4, weight_decay=1e-3, epochs=20, steps_per_epoch=100)
SIX = ("eigencurve", "cosine", "step_decay", "elastic_step", "exponential", "wsd")


def view_of(settings, best=None):
    return redraw(settings, subject_of(settings), best)


@pytest.mark.parametrize("settings", [ZOO, LAW], ids=["zoo", "power law"])
@pytest.mark.parametrize("scale", ["best", "theory", "given"])
@pytest.mark.parametrize("noise", [0.0, 1.0, 1e4])
def test_losses_are_the_librarys(settings, scale, noise):
    """Exact recursion on all eigenvalues, step by step, for every schedule and time on the page."""
    lr = 1e-3 if settings is ZOO else 0.15  # below 2/L
    settings = dataclasses.replace(settings, scale=scale, noise=noise, lr=lr, schedules=SIX)
    view = view_of(settings)
    q = ec.NoisyQuadratic(subject_of(settings).spectrum, noise, 1.0)
    stable = 2 / q.spectrum.L
    assert_allclose(view.losses.bound[-1], q.lower_bound(settings.total_steps, stable), rtol=1e-12)
    for row in view.losses.rows:
        schedule = view.curves.schedules[row.name]
        shown = ec.piecewise(2000, np.arange(2000.0), schedule.values() * (row.peak / schedule.values().max()))
        exact = q.loss_curve(shown, view.losses.marks.tolist()).loss
        assert_allclose(row.curve, exact, rtol=PROMISED)
        assert_allclose(row.loss, exact[-1], rtol=PROMISED)
        assert_allclose(row.bias + row.variance, row.loss, rtol=1e-12)
        assert_allclose(row.ratio, row.loss / view.losses.bound[-1])
        assert np.abs(row.curve / exact - 1).max() <= max(view.losses.error, 1e-4)
        if scale != "best":
            assert_allclose(row.peak, lr if scale == "given" else stable / 2)
    assert view.losses.error <= PROMISED


@pytest.mark.parametrize("noise", [1.0, 1e4])
def test_best_rates_are_the_librarys(noise):
    settings = dataclasses.replace(LAW, noise=noise, schedules=SIX)
    view = view_of(settings)
    q = ec.NoisyQuadratic(subject_of(settings).spectrum, noise, 1.0)
    tuned = q.compare(view.curves.schedules, tune_lr=True)
    for row in view.losses.rows:
        assert_allclose(row.loss, tuned[row.name].loss, rtol=PROMISED)
    assert [row.loss for row in view.losses.rows] == sorted(row.loss for row in view.losses.rows)


def test_the_bound_along_the_run_is_the_librarys():
    view = view_of(LAW)
    q = ec.NoisyQuadratic(subject_of(LAW).spectrum, LAW.noise, 1.0)
    assert view.losses.bound[0] == 0.5
    for mark, bound in zip(view.losses.marks[1:].tolist(), view.losses.bound[1:], strict=True):
        assert_allclose(bound, q.lower_bound(mark, 2 / q.spectrum.L), rtol=1e-12)


def test_rates_beyond_the_quadratics_limit_diverge():
    view = view_of(dataclasses.replace(ZOO, scale="given", lr=0.1))
    assert all(row.diverges for row in view.losses.rows)
    assert view.losses.max_lr == 0.1
    assert np.isfinite(view.losses.bound).all()


def test_a_search_is_shown_beside_the_others():
    problem, max_lr = problem_of(LAW, subject_of(LAW))
    best = search(BlockEvaluator(problem.nodes), problem.spectrum, LAW.total_steps, max_lr)
    view = view_of(LAW, best)
    row = next(row for row in view.losses.rows if row.name == BEST)
    assert row is view.losses.rows[0]
    assert_allclose(row.loss, problem.expected_loss(best.schedule), rtol=1e-3)
    assert_allclose(
        view.curves.schedules[BEST].values(), best.schedule.values() * (LAW.lr / best.schedule.values().max())
    )


def test_the_octaves_are_the_librarys():
    view = view_of(ZOO).spectrum
    raw, prepared = zoo_spectrum(ZOO.zoo), ec.prepare(zoo_spectrum(ZOO.zoo), ZOO.weight_decay)
    groups = ec.group(prepared)
    assert_allclose((view.positive + view.negative)[groups.index], groups.share, rtol=1e-9)
    assert_allclose(view.lower[groups.index], groups.lower)
    assert_allclose(view.positive.sum() + view.negative.sum(), 1.0)
    assert_allclose(view.negative.sum(), raw.weights[raw.eigenvalues < 0].sum())
    assert view.negative.sum() == pytest.approx(view.fraction_negative)
    assert (view.positive >= 0).all()
    described = raw.describe(ZOO.weight_decay)
    assert (view.mu, view.L, view.kappa) == (described.mu, described.L, described.kappa)
    assert (view.extra_term, view.num_nodes, view.dim) == (described.extra_term, len(raw), raw.dim)


def test_a_power_law_has_no_negative_part():
    view = view_of(LAW).spectrum
    assert (view.negative == 0).all()
    law = ec.PowerLaw(LAW.alpha, LAW.weight_decay, LAW.weight_decay * LAW.kappa)
    assert_allclose(view.positive, ec.group(law).share)


def test_the_density_is_a_share_per_octave():
    view = view_of(LAW).spectrum
    octaves = np.log2(view.curve)
    assert_allclose(np.trapezoid(view.density, octaves), 1.0, rtol=0.01)


@pytest.mark.parametrize("beta", [1.0, 1.000005, 1.01, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("allocation", ["sqrt", "optimal"])
@pytest.mark.parametrize("settings", [ZOO, LAW], ids=["zoo", "power law"])
def test_intervals_share_out_the_run(settings, beta, allocation):
    settings = dataclasses.replace(settings, beta=beta, allocation=allocation)
    view = view_of(settings)
    rows, curve = view.curves.intervals, view.curves.schedules["eigencurve"]
    assert 2 <= len(rows) <= 40
    assert_allclose(sum(row.length for row in rows), settings.total_steps)
    assert rows[0].start == 0
    for earlier, later in pairwise(rows):
        assert_allclose(earlier.start + earlier.length, later.start)
        assert earlier.upper <= later.lower * (1 + 1e-9)
    assert rows[0].first_lr == curve(0)
    assert rows[-1].last_lr == curve(settings.total_steps - 1)
    if beta in (1.5, 2.0, 3.0) and allocation == "sqrt":
        groups = ec.group(subject_of(settings).prepared, beta)
        assert_allclose([row.lower for row in rows], groups.lower)
        assert_allclose([row.share for row in rows], groups.share)
        root = np.sqrt(groups.share)
        assert_allclose([row.length for row in rows], settings.total_steps * root / root.sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("min_lr", [None, 0.0, 0.001])
def test_every_kind_can_be_drawn(kind, min_lr):
    settings = dataclasses.replace(LAW, schedules=(kind,), min_lr=min_lr)
    view = view_of(settings)
    schedule = view.curves.schedules[kind]
    assert schedule.total_steps == settings.total_steps
    assert schedule.kind == kind or kind == "wsd"
    assert schedule(0) == pytest.approx(settings.lr)
    # straight lines between the drawn points are the curve: to 1 % of the first rate
    drawn = np.interp(np.arange(schedule.total_steps), view.curves.steps[kind], view.curves.rates[kind])
    assert_allclose(drawn, schedule.values(), atol=0.01 * settings.lr)
    assert view.curves.steps[kind][0] == 0
    assert view.curves.steps[kind][-1] == schedule.total_steps - 1
    if min_lr and kind in ("eigencurve", "exponential", "inverse_time"):
        assert schedule(schedule.total_steps - 1) == pytest.approx(min_lr)


def test_the_code_makes_the_same_schedule():
    for settings in (ZOO, LAW):
        for kind in KINDS:
            recipe = recipe_of(kind, settings, subject_of(settings))
            names = {"ec": ec, "zoo_spectrum": zoo_spectrum}
            exec("\n".join(recipe.statements()), names)
            assert names["schedule"] == recipe.schedule


def test_an_upload_is_read_from_its_file_in_the_code():
    settings = dataclasses.replace(ZOO, source="upload")
    subject = subject_of(settings, Upload('my "best".npz', zoo_spectrum("resnet20_cifar10")))
    lines = recipe_of("eigencurve", settings, subject).statements()
    assert r'ec.load_spectrum("my \"best\".npz")' in lines[0]


@pytest.mark.parametrize("total", [1, 2, 5, 60, 1000, 10**7])
def test_marks(total):
    marks = marks_for(total)
    assert marks[0] == 0
    assert marks[-1] == total
    assert (np.diff(marks) > 0).all()
    assert len(marks) <= 61


def test_a_run_of_one_step():
    view = view_of(dataclasses.replace(LAW, epochs=1, steps_per_epoch=1, schedules=KINDS[:6]))
    assert len(view.losses.rows) == 6
    assert all(math.isfinite(row.loss) for row in view.losses.rows)


def test_two_eigenvalues_and_equal_ones():
    settings = dataclasses.replace(ZOO, source="upload", weight_decay=0.0)
    view = redraw(settings, subject_of(settings, Upload("a.txt", ec.Spectrum([1.0, 3.0], [1, 1]))))
    assert view.spectrum.lower.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="kappa > 1"):
        redraw(settings, subject_of(settings, Upload("a.txt", ec.Spectrum([1.0, 1.0], [1, 1]))))


def test_a_million_steps_on_a_published_spectrum(data_path):
    """Exact at three times, on every eigenvalue."""
    spectrum = ec.load_spectrum(data_path("spectra/resnet-18_cifar10.txt"))
    settings = Settings(source="upload", epochs=1000, steps_per_epoch=1000, schedules=("eigencurve", "step_decay"))
    subject = subject_of(settings, Upload("a.txt", spectrum))
    view = redraw(settings, subject)
    assert view.losses.error <= PROMISED
    q, _ = problem_of(settings, subject)
    row = next(row for row in view.losses.rows if row.name == "step_decay")
    f = ec.step_decay(10**6, row.peak)
    assert_allclose(row.loss, q.expected_loss(f), rtol=PROMISED)
    eigencurve = next(row for row in view.losses.rows if row.name == "eigencurve")
    marks = view.losses.marks[view.losses.marks < 3000]
    f = ec.eigencurve(subject.spectrum, 10**6, eigencurve.peak)
    assert_allclose(eigencurve.curve[: len(marks)], q.loss_curve(f, marks.tolist()).loss, rtol=PROMISED)
