import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import eigencurve as ec
from eigencurve._threads import on_one_blas_thread
from eigencurve.forecast import LoggedRun, fit_runs
from eigencurve.spectrum.quadrature import sharpen
from eigencurve.theory import optimal


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_the_limit_holds_within_the_call_only():
    assert blas_threads() == {2}
    assert on_one_blas_thread(blas_threads)() == {1}
    assert blas_threads() == {2}


def test_the_limit_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError):
        on_one_blas_thread(lambda: 1 / 0)()
    assert blas_threads() == {2}


def recorded(monkeypatch, name, module=np.linalg):
    """Number of threads at each call of a function."""
    seen, call = set(), getattr(module, name)

    def record(*args, **known):
        seen.update(blas_threads())
        return call(*args, **known)

    monkeypatch.setattr(module, name, record)
    return seen


def test_sharpening_uses_one_thread(monkeypatch):
    seen = recorded(monkeypatch, "solve")
    rng = np.random.default_rng(0)
    sharpen(1 + rng.random(20), 0.3 + 0.1 * rng.random(20), 5e-4)
    assert seen == {1}


def test_fitting_uses_one_thread(monkeypatch):
    seen = recorded(monkeypatch, "inv")
    steps = np.arange(1, 401)
    rates = {"constant": np.full(400, 1e-3), "linear": 1e-3 * (1 - steps / 401)}
    fit_runs([LoggedRun(steps, 2 + 3 * np.cumsum(rate / 1e-3) ** -0.5, rate) for rate in rates.values()])
    assert seen == {1}


def test_the_search_for_the_best_schedule_uses_one_thread(monkeypatch):
    seen = recorded(monkeypatch, "minimize", optimal)
    ec.NoisyQuadratic(ec.Spectrum([0.1, 1.0, 2.0], [3, 2, 1]), 1.0, 1.0).search_best(9, 0.5)
    assert seen == {1}
