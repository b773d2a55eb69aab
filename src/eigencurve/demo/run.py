"""The whole job on handwritten digits: train, measure, ask for a plan, and race its recommendation against others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from torch.nn import functional as F

import eigencurve as ec
from eigencurve._html import Markup, Section, code_block, page, paragraph
from eigencurve.adapters.range_test import RangeTest, range_test
from eigencurve.demo.race import (
    Racer,
    at_best_rates,
    at_rate,
    outcome_sentence,
    prediction_sentence,
    race,
    race_table,
)
from eigencurve.demo.training import (
    BATCH_SIZE,
    MOMENTUM,
    WEIGHT_DECAY,
    Digits,
    batches,
    digits,
    network,
    optimizer_of,
    train,
)
from eigencurve.hessian import (
    HessianOperator,
    NoiseEstimate,
    SpectrumEstimate,
    StartEstimate,
    estimate_noise,
    estimate_spectrum,
    estimate_start,
)

SEED = 0
# The earlier run, at whose end everything is measured, and the runs that are planned.
EARLIER_STEPS, EARLIER_LR, TOTAL_STEPS = 400, 0.1, 400
NUM_PROBED, NUM_SAMPLES = 400, 4
# Peak rates that every schedule is tuned over, a factor √2 apart, and the numbers of starts.
RATES = tuple(0.025 * 2 ** (k / 2) for k in range(15))
NUM_TUNED, NUM_RACED = 4, 20
RANGE_STEPS, RANGE_RATES = 100, (1e-4, 10.0)
RECOMMENDATION = "the recommendation"
TITLE = "From a network to its schedule"
INTRO = (
    "A small network is trained on handwritten digits. Its spectrum, its gradient noise and its start are measured, "
    "the plan recommends a schedule for the next run, and the recommendation races against the usual schedules, each "
    "at its own best rate."
)


@dataclass(frozen=True, eq=False)
class Measured:
    """The measurements at the end of the earlier run.

    Attributes:
        spectrum: Spectrum of the Hessian.
        noise: Gradient noise.
        start: Initial error of a run.
        rates: Range test.
        floor: Training loss of the earlier run at its end.
    """

    spectrum: SpectrumEstimate
    noise: NoiseEstimate
    start: StartEstimate
    rates: RangeTest
    floor: float

    def plan(self) -> ec.Plan:
        """The plan; its rates end where the loss of the range test falls fastest."""
        return ec.plan(
            self.spectrum, total_steps=TOTAL_STEPS, momentum=MOMENTUM, noise=self.noise, initial_error=self.start,
            max_lr=self.rates.steepest,
        )  # fmt: skip

    def predicted_loss(self, schedule: ec.Schedule) -> float:
        """Final training loss that the noisy quadratic predicts; infinite if it diverges."""
        spectrum = self.spectrum.spectrum
        quadratic = ec.NoisyQuadratic(ec.spectrum.prepare(spectrum, WEIGHT_DECAY), self.noise, self.start, MOMENTUM)
        try:
            return self.floor + (spectrum.dim or 1) * quadratic.expected_loss(schedule)
        except ec.DivergenceError:
            return np.inf


@dataclass(frozen=True, eq=False)
class DemoResult:
    """The plan and its race.

    Attributes:
        measured: The measurements.
        plan: The plan.
        racers: The race; the first is the recommendation.
    """

    measured: Measured
    plan: ec.Plan
    racers: Sequence[Racer]

    @property
    def sentences(self) -> tuple[str, str]:
        """The outcome of the race, and the accuracy of the prediction."""
        return outcome_sentence(self.racers), prediction_sentence(self.racers)

    @property
    def heading(self) -> str:
        """Heading of the table of the race."""
        starts = len(self.racers[0].losses)
        return f"The race ({starts} starts, mean ± standard error; each schedule at the best of {len(RATES)} rates)"

    def __str__(self) -> str:
        verdict = str(self.plan).split("\n\n", 1)[0]  # wrapped for a terminal
        parts = ["The plan:", verdict, f"{self.heading}:", race_table(self.racers), *self.sentences]
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, object]:
        """The plan and the race as plain values, for JSON."""
        rows = [
            {"name": racer.name, "peak_lr": racer.peak, "losses": racer.losses.tolist(),
             "predicted": racer.predicted if np.isfinite(racer.predicted) else None}
            for racer in self.racers
        ]  # fmt: skip
        return {"plan": self.plan.to_dict(), "race": rows}

    def to_html(self) -> str:
        """The race, the plan and the measurements as one self-contained HTML page."""
        race_blocks = [code_block(race_table(self.racers)), *map(paragraph, self.sentences)]
        details: Mapping[str, object] = {
            "Basis of the plan": self.plan,
            "Range test of the rate": self.measured.rates,
            "Spectrum": self.measured.spectrum.spectrum.describe(WEIGHT_DECAY),
            "Gradient noise": self.measured.noise,
            "Start": self.measured.start,
        }
        sections = [
            Section(self.heading, race_blocks),
            Section("The plan", [Markup(self.plan._repr_html_())]),
            *(Section(title, [code_block(str(part))]) for title, part in details.items()),
        ]
        return page(TITLE, sections, INTRO)


def run_demo(progress: bool = False) -> DemoResult:
    """Run the demo (about half a minute).

    Args:
        progress: Whether to show the steps and the time left on standard error.
    """
    with _one_thread():
        data = digits(SEED)
        _show(f"1. Training a small network on {len(data.train[0]):,} digits ...", progress)
        measured = measure(data, SEED, progress)
        _show("3. Asking for a plan ...", progress)
        plan = measured.plan()
        shapes = contestants(plan)
        runs = len(shapes) * (len(RATES) * NUM_TUNED + NUM_RACED) + NUM_RACED
        _show(f"4. Racing it: {runs} runs of {TOTAL_STEPS} steps from scratch ...", progress)
        seeds = range(SEED + 1, SEED + 1 + NUM_TUNED + NUM_RACED)
        with _steps_bar("training", (len(shapes) + 1) * TOTAL_STEPS, progress) as after_step:
            tuned = at_best_rates(data, shapes, RATES, seeds[:NUM_TUNED], after_step)
            schedules = {RECOMMENDATION: plan.schedule, **tuned}
            predicted = {name: measured.predicted_loss(schedule) for name, schedule in schedules.items()}
            racers = race(data, schedules, predicted, seeds[NUM_TUNED:], after_step)
    return DemoResult(measured, plan, racers)


def measure(data: Digits, seed: int, progress: bool) -> Measured:
    """Train a network, then measure its spectrum, its gradient noise, its start and the largest useful rate."""
    model, start = network(seed), network(seed)
    floor = train(model, data, ec.cosine(EARLIER_STEPS, EARLIER_LR), seed)
    _show("2. Measuring the spectrum, the gradient noise, the start and the range of rates ...", progress)
    operator = HessianOperator(model, F.cross_entropy, (data.train[0][:NUM_PROBED], data.train[1][:NUM_PROBED]))
    spectrum = estimate_spectrum(
        operator, seed=seed, weight_decay=WEIGHT_DECAY, total_steps=TOTAL_STEPS, progress=progress
    )
    noise = estimate_noise(operator, spectrum, BATCH_SIZE, num_samples=NUM_SAMPLES, seed=seed, progress=progress)
    initial_error = estimate_start(operator, (start, model), spectrum, progress=progress)
    low, high = RANGE_RATES
    rates = range_test(
        start, F.cross_entropy, batches(data.train, RANGE_STEPS, seed), optimizer_of(start, low), min_lr=low,
        max_lr=high, num_steps=RANGE_STEPS,
    )  # fmt: skip
    return Measured(spectrum, noise, initial_error, rates, floor)


def contestants(plan: ec.Plan) -> dict[str, ec.Schedule]:
    """The schedules of the plan and two older ones, all at the same peak rate."""
    lr = EARLIER_LR
    return {
        **{row.label: at_rate(row.schedule, lr) for row in plan.table.rows},
        "step decay": ec.step_decay(TOTAL_STEPS, lr),
        "inverse time": ec.inverse_time(TOTAL_STEPS, lr, lr / 100),
    }


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread inside the block: the network is too small for more, and every machine gives the same table."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _show(text: str, shown: bool) -> None:
    """Print a line about the next step on standard error."""
    if shown:
        Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def _steps_bar(title: str, total: int, shown: bool) -> Iterator[Callable[[], None]]:
    """A bar of training steps with the time left, on a terminal; call the function after each step."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not (shown and console.is_terminal)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
