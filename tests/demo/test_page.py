import numpy as np
import pytest

import eigencurve as ec
from eigencurve.demo import run
from eigencurve.demo.page import SMOOTHED_OVER, demo_page, training_figure
from eigencurve.demo.race import RECOMMENDATION, Racer, Tuned
from eigencurve.demo.training import digits

STEPS = 60
CURVES = {name: np.random.default_rng(seed).random(STEPS) for seed, name in enumerate((RECOMMENDATION, "a <λ>"))}


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"EARLIER_STEPS": 20, "NUM_PROBED": 48, "NUM_SAMPLES": 1, "TOTAL_STEPS": STEPS}.items():
            patch.setattr(run, name, value)
        measured, _ = run.measure(digits(0), 0, progress=False)
        answer = run.ask(measured)
    tuned = {name: Tuned(ec.cosine(STEPS, 0.1), (0.1, 0.2), np.array([0.5, 0.7])) for name in (answer.name, "a <λ>")}
    racers = [
        Racer(name, ec.cosine(STEPS, 0.1), predicted, loss + np.array([-0.05, 0.05]), np.array([0.9, 0.95]), curve)
        for loss, predicted, (name, curve) in zip((0.25, 0.4), (0.4, np.inf), CURVES.items(), strict=True)
    ]
    return demo_page(measured, answer, tuned, racers, ["It was beaten.", "Why."])


def test_summary_has_the_plan_the_race_and_the_sentences(page):
    for part in ("condition number", "a <λ>", "0.2500 ± 0.0500", "diverges", "It was beaten.\n\nWhy."):
        assert part in page.summary
    assert "share per octave" not in page.summary


def test_the_html_has_everything_in_one_file(page):
    text = page.html.decode()
    assert text.count("<svg ") == 4
    for part in ("It was beaten.", "Based on:", "*0.5000", "steepest descent", "share per octave", "noise per octave"):
        assert part in text
    assert "a &lt;λ&gt;" in text
    assert "http" not in text


def test_values_have_the_plan_and_the_race(page):
    assert page.values["plan"]["verdict"]
    assert [row["predicted"] for row in page.values["race"]] == [0.4, None]
    assert page.values["race"][0]["losses"] == pytest.approx([0.2, 0.3])


def test_the_losses_are_shown_as_running_means():
    racers = [Racer(name, ec.cosine(STEPS, 0.1), 0.1, np.ones(2), np.ones(2), curve) for name, curve in CURVES.items()]
    (axes,) = training_figure(racers).axes
    shown = {line.get_label(): line.get_ydata() for line in axes.lines}
    for name, values in CURVES.items():
        expected = [values[i : i + SMOOTHED_OVER].mean() for i in range(STEPS - SMOOTHED_OVER + 1)]
        np.testing.assert_allclose(shown[name], expected)
