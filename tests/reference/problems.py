"""Random problems and schedules for hypothesis, and the pieces of a problem as plain lists."""

import numpy as np
from hypothesis import strategies as st

import eigencurve as ec


@st.composite
def spectra(draw, max_size=6, max_kappa=1e4):
    heights = draw(st.lists(st.floats(0, 1), min_size=1, max_size=max_size))
    weights = draw(st.lists(st.floats(1e-4, 1), min_size=len(heights), max_size=len(heights)))
    scale, kappa = draw(st.floats(0.01, 100)), draw(st.floats(1, max_kappa))
    return ec.Spectrum(scale * kappa ** np.array(heights), weights)


powers = st.one_of(st.sampled_from([0.25, 1.0, 4.0]), st.floats(0.01, 4.0))


@st.composite
def problems(draw, max_size=6, max_kappa=1e4, momentum=None, smallest=0.0, nesterov=False, power=None):
    s = draw(spectra(max_size, max_kappa))
    level = st.floats(max(smallest, 1e-6), 1e3) if smallest else st.one_of(st.just(0.0), st.floats(1e-6, 1e3))
    values = st.one_of(level, st.lists(level, min_size=len(s), max_size=len(s)))
    m = 0.0 if momentum is None else draw(momentum)
    p = 0.0 if power is None else draw(power)
    return ec.NoisyQuadratic(s, draw(values), draw(values), m, nesterov and draw(st.booleans()), p)


@st.composite
def schedules(draw, max_lr, max_steps=120):
    """Any rates in [0, max_lr], the first above 0."""
    T = draw(st.integers(1, max_steps))
    kinds = st.sampled_from(["free", "smooth", "flat"])
    kind = draw(kinds)
    if kind == "flat":
        return ec.step_decay(T, max_lr * draw(st.floats(1e-6, 1)), draw(st.integers(1, 5)), draw(st.floats(1, 9)))
    count = T if kind == "free" else min(T, 5)
    first = draw(st.floats(1e-6, 1))
    rest = draw(st.lists(st.floats(0, 1), min_size=count - 1, max_size=count - 1))
    knots = np.linspace(0, T - 1, count) if count > 1 else np.zeros(1)
    return ec.piecewise(T, knots, np.minimum(max_lr * np.array([first, *rest]), max_lr))


def pieces(q):
    """Eigenvalues, weights, noise and initial error as lists, for the transcriptions."""
    return q.spectrum.eigenvalues.tolist(), q.spectrum.weights.tolist(), q.noise.tolist(), q.initial_error.tolist()
