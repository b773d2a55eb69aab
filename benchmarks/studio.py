"""Speed of the studio, part by part and compared with exact recursion: ``python -m benchmarks.studio``.

The benchmark redraws the page for 5,000 eigenvalues, a million steps and four schedules, each at its best rate. The
exact recursion follows every eigenvalue through every step in compiled code; it is timed on a hundredth of the steps.
``--browser`` also measures the time from a key press on a slider to the new numbers on the page, in Chromium.
"""

import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.core import best_of, row

import eigencurve as ec
from eigencurve.figures.interactive import losses_chart, rates_chart, spectrum_chart
from eigencurve.planning.loss_view import loss_view, marks_for
from eigencurve.planning.spectrum_view import spectrum_view
from eigencurve.studio.source import Upload, subject_of
from eigencurve.studio.state import Settings, to_params
from eigencurve.studio.view import curves_view, problem_of
from eigencurve.theory import optimal
from eigencurve.theory.evaluators import BlockEvaluator

UPLOAD = Upload("5000.npz", ec.PowerLaw(1.5, 1e-8, 180.0).spectrum(5000))
SETTINGS = Settings(source="upload", epochs=1000, steps_per_epoch=1000)
PART = 100
# Peak rates that exact tuning would try for each schedule: a grid, then Brent's method.
NUM_RATES = 37 + 25


def parts():
    subject = subject_of(SETTINGS, UPLOAD)
    spectrum, curves, losses = views(subject)
    work = {
        "prepare the spectrum": lambda: subject_of(SETTINGS, UPLOAD).spectrum,
        "octaves and density": lambda: spectrum_view(subject),
        "schedules and intervals": lambda: curves_view(SETTINGS, subject),
        "losses at their best rates, and the bound": lambda: losses_of(subject, curves),
        "charts": lambda: charts(spectrum, curves, losses),
    }
    for name, function in work.items():
        print(f"{name:<58} {best_of(function) * 1e3:>12,.1f} ms")
    print(f"{'difference of the two resolutions':<58} {losses.error:>12.2%}")


def views(subject):
    curves = curves_view(SETTINGS, subject)
    return spectrum_view(subject), curves, losses_of(subject, curves)


def losses_of(subject, curves):
    return loss_view(*problem_of(SETTINGS, subject), SETTINGS.total_steps, curves.compared, SETTINGS.scale)


def charts(spectrum, curves, losses):
    return [
        spectrum_chart(spectrum),
        rates_chart(curves.schedules, 1000, SETTINGS.lr),
        losses_chart(losses, 1000, "linear"),
    ]


def whole(problem):
    ours = best_of(lambda: charts(*views(subject_of(SETTINGS, UPLOAD))))
    short = Settings(source="upload", epochs=1000, steps_per_epoch=1000 // PART)
    marks = marks_for(short.total_steps).tolist()
    schedule = ec.cosine(short.total_steps, 1 / problem.spectrum.L)
    naive = PART * len(SETTINGS.schedules) * best_of(lambda: problem.loss_curve(schedule, marks), repeat=1)
    row("one redraw, compared with losses step by step", ours, naive, "every step (a hundredth of them, scaled)")
    row("the same, also tuning the rates step by step", ours, naive * NUM_RATES, "every step and rate (scaled)")


def search(problem):
    spectrum, nodes = problem.spectrum, problem.nodes
    start = time.perf_counter()
    exact = problem.search_best(39_100, 2 / spectrum.L)
    naive = time.perf_counter() - start
    ours = best_of(lambda: optimal.search(BlockEvaluator(nodes), spectrum, 39_100, 2 / spectrum.L), repeat=2)
    loss = problem.expected_loss(optimal.search(BlockEvaluator(nodes), spectrum, 39_100, 2 / spectrum.L).schedule)
    row("best schedule, 39,100 steps", ours, naive, "search_best")
    print(f"{'  its loss divided by that of search_best':<58}{loss / exact.loss:>12.6f}")
    million = best_of(lambda: optimal.search(BlockEvaluator(nodes), spectrum, 10**6, 2 / spectrum.L), repeat=2)
    print(f"{'best schedule, 10^6 steps':<58}{million * 1e3:>12,.1f} ms")


def in_a_browser(moves=8):
    """Press the arrow keys on the noise slider, back and forth."""
    from selenium.webdriver.common.keys import Keys
    from tests.studio import browser

    with tempfile.TemporaryDirectory() as name, browser.served(Path(name)) as address:
        folder = Path(name)
        path = folder / UPLOAD.name
        ec.save_spectrum(UPLOAD.spectrum, path)
        with browser.window(address, folder, 1280, 900) as page:
            page.open(urlencode(to_params(SETTINGS)))
            page.until(lambda: page.all("input[type=file]"), "the file input")[0].send_keys(str(path))
            page.until(page.losses, "the losses")
            page.until(page.quiet, "the figures")
            times = [moved(page, Keys.ARROW_RIGHT if i % 2 == 0 else Keys.ARROW_LEFT) for i in range(moves)]
    times.sort()
    print(f"{'in the browser: key press to new numbers, median':<58}{times[len(times) // 2] * 1e3:>12,.1f} ms")
    print(f"{'  fastest and slowest':<58}{times[0] * 1e3:>12,.1f} ms {times[-1] * 1e3:>12,.1f} ms")


def moved(page, key):
    before = page.losses()
    start = time.perf_counter()
    page.press("noise", key)
    while (now := page.losses()) == before or not now:
        time.sleep(0.01)
    seconds = time.perf_counter() - start
    page.until(page.quiet, "the figures")
    return seconds


def main():
    parts()
    problem, _ = problem_of(SETTINGS, subject_of(SETTINGS, UPLOAD))
    whole(problem)
    search(problem)
    if "--browser" in sys.argv:
        in_a_browser()


if __name__ == "__main__":
    main()
