import numpy as np
import pytest
from tests.hessian.matrices import matrix_operator

import eigencurve as ec
from eigencurve.experiments.studies.demo_page import SMOOTHED_OVER, demo_page
from eigencurve.hessian.estimate import estimate_spectrum

LOSSES = {name: np.random.default_rng(seed).random(60) for seed, name in enumerate(("eigencurve", "cosine"))}


@pytest.fixture(scope="module")
def page():
    estimate = estimate_spectrum(matrix_operator(), 20, settle=None, weight_decay=1e-3, progress=False)
    schedules = {
        "eigencurve": ec.eigencurve(ec.prepare(estimate.spectrum, 1e-3), 60, 0.1),
        "cosine": ec.cosine(60, 0.1),
    }
    return demo_page(estimate, schedules, LOSSES, "about <λ>", "a | table")


def test_every_text_and_figure_is_in_the_markdown(page):
    for text in ("from 20 Hessian products", "```\nabout <λ>\n```", "```\na | table\n```"):
        assert text in page.body
    assert list(page.figures) == ["spectrum.png", "learning-rates.png", "training.png"]
    assert all(f"]({name})" in page.body for name in page.figures)


def test_the_html_has_everything_in_one_file(page):
    text = page.files["index.html"].decode()
    assert text.count("<svg ") == 3
    assert "about &lt;λ&gt;" in text
    assert "a | table" in text
    assert "http" not in text


def test_the_losses_are_shown_as_running_means(page):
    (axes,) = page.figures["training.png"].axes
    shown = {line.get_label(): line.get_ydata() for line in axes.lines}
    for name, values in LOSSES.items():
        expected = [values[i : i + SMOOTHED_OVER].mean() for i in range(60 - SMOOTHED_OVER + 1)]
        np.testing.assert_allclose(shown[name], expected)
