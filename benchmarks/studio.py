"""Speed of the studio: ``python -m benchmarks.studio``.

The benchmark computes all that the page shows for 5,000 eigenvalues and a million steps: the plan, which is kept until
a setting changes, and the curves and charts of each redraw. ``--browser`` also measures the time from a typed number
to the new plan on the page, in Chromium.
"""

import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.core import best_of, row

import eigencurve as ec
from eigencurve.figures.interactive import losses_chart, octaves_chart, schedules_chart
from eigencurve.planning.spectrum import quadratic_of
from eigencurve.spectrum.groups import group
from eigencurve.spectrum.source import SpectrumSource
from eigencurve.studio.losses import loss_curves

LAW = ec.PowerLaw(1.5, 1e-8, 180.0)
STEPS = 1_000_000
# Share of the steps on which the exact recursion is timed.
PART = 100


def measure():
    source = SpectrumSource("5000", LAW.spectrum(5000), 0.0)
    answer = ec.plan(source, total_steps=STEPS)
    print(f"{'the plan':<58} {best_of(lambda: ec.plan(source, total_steps=STEPS), repeat=1) * 1e3:>12,.1f} ms")
    print(f"{'expected losses along the run':<58} {best_of(lambda: loss_curves(answer, source)) * 1e3:>12,.1f} ms")
    print(f"{'charts':<58} {best_of(lambda: charts(answer, source)) * 1e3:>12,.1f} ms")
    problem, short = quadratic_of(source), ec.cosine(STEPS // PART, 1 / LAW.L)
    exact = PART * len(answer.table) * best_of(lambda: problem.loss_curve(short), repeat=1)
    ours = best_of(lambda: loss_curves(answer, source))
    row("losses, compared with every step", ours, exact, "every step (a hundredth of them, scaled)")


def charts(answer, source):
    curves = loss_curves(answer, source)
    return [
        octaves_chart(group(source.prepared, 2.0)),
        schedules_chart({row.label: row.schedule for row in answer.table.rows}),
        losses_chart(curves.marks, curves.losses, curves.bound),
    ]


def in_a_browser(moves=8):
    """Type numbers into the field of the noise, each of them new."""
    from tests.studio import browser

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with browser.served(folder) as address, browser.window(address, folder, 1280, 900) as page:
            page.open(urlencode({"total_steps": 39_100}))
            page.until(page.verdict, "the verdict")
            times = sorted(typed(page, 1000.0 + place) for place in range(moves))
    print(f"{'in the browser: typed number to new plan, median':<58}{times[len(times) // 2] * 1e3:>12,.1f} ms")


def typed(page, noise):
    before, start = page.table(), time.perf_counter()
    page.type("noise", f"{noise:g}")
    page.until(lambda: page.table() != before, "the new table")
    return time.perf_counter() - start


def main():
    measure()
    if "--browser" in sys.argv:
        in_a_browser()


if __name__ == "__main__":
    main()
