"""The whole job on handwritten digits: train, measure, ask for a plan, and race its recommendation against others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

import eigencurve as ec
from eigencurve.adapters.range_test import range_test
from eigencurve.demo.page import DemoPage, Measured, demo_page
from eigencurve.demo.progress import show_status, steps_bar
from eigencurve.demo.race import (
    RECOMMENDATION,
    at_rate,
    nearest_rate,
    outcome_sentence,
    prediction_sentence,
    race,
    rate_sentence,
    same_rate_sentence,
    tune_all,
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
from eigencurve.hessian import HessianOperator, estimate_noise, estimate_spectrum, estimate_start
from eigencurve.planning.result import Plan
from eigencurve.schedules.base import Schedule
from eigencurve.theory.recursion import DivergenceError

SEED = 0
# The earlier run, at whose end everything is measured, and the runs that are planned.
EARLIER_STEPS, EARLIER_LR, TOTAL_STEPS = 400, 0.1, 400
NUM_PROBED, NUM_SAMPLES = 400, 4
# Peak rates that every schedule is tuned over, a factor √2 apart, and the numbers of starts.
RATES = tuple(0.025 * 2 ** (k / 2) for k in range(15))
NUM_TUNED, NUM_RACED = 4, 20
RANGE_STEPS, RANGE_RATES = 100, (1e-4, 10.0)


@dataclass(frozen=True, eq=False)
class Model:
    """The noisy quadratic of the network, which predicts losses.

    Attributes:
        quadratic: The noisy quadratic.
        dim: Number of parameters.
        floor: Training loss at the end of the earlier run, where the quadratic is measured.
    """

    quadratic: ec.NoisyQuadratic
    dim: int
    floor: float

    def loss(self, schedule: Schedule) -> float:
        """Predicted final training loss; infinite if the model diverges."""
        try:
            return self.floor + self.dim * self.quadratic.expected_loss(schedule)
        except DivergenceError:
            return np.inf


def run_demo(progress: bool = False) -> DemoPage:
    """Run the demo (about half a minute).

    Args:
        progress: Whether to say on standard error what happens, with the time left.
    """
    with _one_thread():
        data = digits(SEED)
        show_status(f"1. Training a small network on {len(data.train[0]):,} digits ...", progress)
        measured, model = measure(data, SEED, progress)
        show_status("3. Asking for a plan ...", progress)
        answer = ask(measured)
        return _race(data, measured, model, answer, progress)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread inside the block: the network is too small for more, and every machine gives the same table."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _race(data: Digits, measured: Measured, model: Model, answer: Plan, progress: bool) -> DemoPage:
    shapes = contestants(answer)
    runs = len(shapes) * (len(RATES) * NUM_TUNED + NUM_RACED) + NUM_RACED
    show_status(f"4. Racing it: {runs} runs of {TOTAL_STEPS} steps from scratch ...", progress)
    seeds = range(SEED + 1, SEED + 1 + NUM_TUNED + NUM_RACED)
    with steps_bar("training", (len(shapes) + 1) * TOTAL_STEPS, progress) as after_step:
        tuned = tune_all(data, shapes, RATES, seeds[:NUM_TUNED], after_step)
        schedules = {RECOMMENDATION: answer.schedule, **{name: found.schedule for name, found in tuned.items()}}
        predicted = {name: model.loss(schedule) for name, schedule in schedules.items()}
        racers = race(data, schedules, predicted, seeds[NUM_TUNED:], after_step)
    rate = nearest_rate(RATES, answer.lr)
    same_rate = {name: model.loss(at_rate(shape, rate)) for name, shape in shapes.items()}
    sentences = [
        outcome_sentence(racers),
        prediction_sentence(racers),
        same_rate_sentence(answer.label, tuned, rate, same_rate),
        rate_sentence(answer.label, tuned[answer.label], answer.lr, model.quadratic.stable_rate),
    ]
    return demo_page(measured, answer, tuned, racers, sentences)


def measure(data: Digits, seed: int, progress: bool) -> tuple[Measured, Model]:
    """Train a network, then measure its spectrum, its gradient noise, its start and the largest useful rate."""
    model, start = network(seed), network(seed)
    floor = train(model, data, ec.cosine(EARLIER_STEPS, EARLIER_LR), seed)
    show_status("2. Measuring the spectrum, the gradient noise, the start and the range of rates ...", progress)
    operator = HessianOperator(model, F.cross_entropy, (data.train[0][:NUM_PROBED], data.train[1][:NUM_PROBED]))
    spectrum = estimate_spectrum(
        operator, seed=seed, weight_decay=WEIGHT_DECAY, total_steps=TOTAL_STEPS, progress=progress
    )
    noise = estimate_noise(operator, spectrum, BATCH_SIZE, num_samples=NUM_SAMPLES, seed=seed, progress=progress)
    error = estimate_start(operator, (start, model), spectrum, progress=progress)
    low, high = RANGE_RATES
    rates = range_test(
        start, F.cross_entropy, batches(data.train, RANGE_STEPS, seed), optimizer_of(start, low), min_lr=low,
        max_lr=high, num_steps=RANGE_STEPS,
    )  # fmt: skip
    quadratic = ec.NoisyQuadratic(ec.spectrum.prepare(spectrum.spectrum, WEIGHT_DECAY), noise, error, MOMENTUM)
    return Measured(spectrum, noise, error, rates), Model(quadratic, operator.dim, floor)


def ask(measured: Measured) -> Plan:
    """The plan from the measurements; its rates end where the loss of the range test falls fastest."""
    return ec.plan(
        measured.spectrum, total_steps=TOTAL_STEPS, momentum=MOMENTUM, noise=measured.noise,
        initial_error=measured.start, max_lr=measured.rates.steepest,
    )  # fmt: skip


def contestants(answer: Plan) -> dict[str, Schedule]:
    """The schedules of the plan and two older ones, all at the same peak rate."""
    lr = EARLIER_LR
    return {
        **{row.label: at_rate(row.schedule, lr) for row in answer.table.rows},
        "step decay": ec.step_decay(TOTAL_STEPS, lr),
        "inverse time": ec.inverse_time(TOTAL_STEPS, lr, lr / 100),
    }
