import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eigencurve as ec


@pytest.mark.parametrize(
    ("T", "pct_start", "anneal", "three_phase"),
    [
        *itertools.product((10, 37, 100), (0.25, 0.3, 0.45), ("cosine", "linear"), (False, True)),
        (40, 1.0, "cosine", False),
        (40, 0.0, "linear", False),
    ],
)
def test_agrees_with_pytorch(T, pct_start, anneal, three_phase):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.5, T, pct_start=pct_start, anneal_strategy=anneal[:3] if anneal == "cosine" else anneal,
        div_factor=20.0, final_div_factor=50.0, three_phase=three_phase, cycle_momentum=False,
    )  # fmt: skip
    seen = []
    for t in range(T):
        seen.append(theirs.get_last_lr()[0])
        optimizer.step()
        if t < T - 1:
            theirs.step()
    ours = ec.one_cycle(T, 0.5, pct_start, 20.0, 50.0, anneal, three_phase)
    assert_allclose(ours.values(), seen, rtol=1e-12)


def test_rises_to_the_peak_and_falls_to_nearly_zero():
    values = ec.one_cycle(1000, lr=0.1).values()
    assert values[0] == pytest.approx(0.1 / 25)
    assert values.argmax() == 299
    assert values.max() == pytest.approx(0.1)
    assert values[-1] == pytest.approx(0.1 / 25 / 1e4)


@pytest.mark.parametrize("T", range(1, 12))
@pytest.mark.parametrize("three_phase", [False, True])
def test_short_runs_are_finite(T, three_phase):
    """PyTorch divides by zero if the rise ends at the first step, as with 10 steps and pct_start=0.1."""
    values = ec.one_cycle(T, 0.1, pct_start=0.1, three_phase=three_phase).values()
    assert np.isfinite(values).all()
    assert (values > 0).all()
    assert (values <= 0.1).all()


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"pct_start": 30}, r"one_cycle: 'pct_start' must be <= 1, got 30.0"),
        ({"pct_start": -0.1}, r"'pct_start' must be >= 0, got -0.1. It is a fraction"),
        ({"pct_start": 0.6, "three_phase": True}, r"'pct_start' must be <= 0.5"),
        ({"div_factor": 0.5}, r"'div_factor' must be >= 1"),
        ({"final_div_factor": 0.0}, r"'final_div_factor' must be >= 1"),
        ({"anneal": "cos"}, r"'anneal' must be one of 'cosine', 'linear', got 'cos'"),
    ],
)
def test_refuses_bad_settings(settings, match):
    with pytest.raises(ValueError, match=match):
        ec.one_cycle(10, 0.1, **settings)
