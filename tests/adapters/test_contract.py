"""In every framework, the optimizer uses exactly f(t) at step t."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.adapters.contract import FEW, SCHEDULES, drawn, driver_names, expected_when_skipping, load_driver

from eigencurve.schedules.kinds import KINDS

FRAMEWORKS = ("torch", "jax", "keras", "lightning", "transformers", "accelerate", "optax")
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "adapters.md"
# These runs are short on purpose, and some are extended late.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*but the trainer takes:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*the rate jumps:UserWarning"),
]
every_kind = pytest.mark.parametrize("kind", SCHEDULES)
few_kinds = pytest.mark.parametrize("kind", FEW)


@pytest.fixture(params=driver_names())
def driver(request):
    return load_driver(request.param)


def needs(driver, method):
    if method in driver.not_applicable:
        pytest.skip(f"{driver.name}: {driver.not_applicable[method]}")


def same(driver, seen, wanted):
    assert np.shape(seen) == np.shape(wanted)
    np.testing.assert_allclose(seen, wanted, rtol=driver.rtol, atol=0)


def case(driver, kind):
    """A length, a schedule of that length and a step within it, drawn for each driver and kind."""
    source = drawn(driver.name, kind)
    T = int(source.integers(8, 13))
    return T, SCHEDULES[kind](T), int(source.integers(1, T - 1))


def test_the_contract_covers_every_kind():
    def kinds(schedule):
        parts = [getattr(schedule, "schedule", None), *getattr(schedule, "schedules", ())]
        return {schedule.kind}.union(*(kinds(part) for part in parts if part is not None))

    assert set().union(*(kinds(make(12)) for make in SCHEDULES.values())) == set(KINDS)
    assert all(make(12).total_steps == 12 for make in SCHEDULES.values())


WITHOUT = """
import sys
for package in sys.argv[1:]:
    sys.modules[package] = None
import pytest
from tests.adapters.contract import driver_names, load_driver
for name in driver_names():
    try:
        load_driver(name)
        print(name, "loaded")
    except pytest.skip.Exception:
        print(name, "skipped")
"""


@pytest.mark.parametrize("missing", [("torch",), ("jax",), FRAMEWORKS], ids=["torch", "jax", "all"])
def test_a_driver_without_its_framework_is_skipped(missing):
    """In a process of its own, because frameworks remember what they did not find."""
    words = [sys.executable, "-c", WITHOUT, *missing]
    found = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    outcomes = dict(line.split() for line in found.stdout.splitlines())
    assert list(outcomes) == driver_names(), found.stderr
    assert missing != FRAMEWORKS or set(outcomes.values()) == {"skipped"}


@every_kind
def test_every_update_has_its_rate_from_the_first_to_beyond_the_last(driver, kind):
    T, schedule, _ = case(driver, kind)
    same(driver, driver.rates(schedule, T + 2), [schedule(t) for t in range(T + 2)])


@every_kind
def test_hurt_2_a_resumed_run_continues_with_the_next_rate(driver, kind):
    T, schedule, stop_at = case(driver, kind)
    needs(driver, "rates_resumed")
    same(driver, driver.rates_resumed(schedule, T, stop_at), [schedule(t) for t in range(T)])


@few_kinds
def test_hurt_5_first_and_last_step_of_a_short_run(driver, kind):
    schedule = SCHEDULES[kind](6)
    same(driver, driver.rates(schedule, 6), schedule.values().tolist())


@few_kinds
@pytest.mark.parametrize("accumulation", [2, 3])
def test_hurt_1_accumulation_advances_once_per_update(driver, kind, accumulation):
    T, schedule, _ = case(driver, kind)
    needs(driver, "rates_accumulating")
    same(driver, driver.rates_accumulating(schedule, T, accumulation), [schedule(t) for t in range(T)])


@few_kinds
def test_groups_keep_their_ratios(driver, kind):
    T, schedule, _ = case(driver, kind)
    needs(driver, "rates_groups")
    ratios = (1.0, 0.5, 4.0)
    same(driver, driver.rates_groups(schedule, T, ratios), np.outer(schedule.values(), ratios).tolist())


@few_kinds
def test_hurt_4_a_skipped_step_neither_warns_nor_derails(driver, kind):
    T, schedule, place = case(driver, kind)
    needs(driver, "rates_skipping")
    skipped = sorted({0, place})
    wanted = expected_when_skipping(driver, schedule, T, skipped)
    same(driver, driver.rates_skipping(schedule, T, skipped), wanted)


@few_kinds
def test_hurt_3_a_run_can_be_extended(driver, kind):
    T, schedule, at = case(driver, kind)
    needs(driver, "rates_extended")
    longer = SCHEDULES[kind](T + 5)
    wanted = [schedule(t) for t in range(at)] + [longer(t) for t in range(at, T + 5)]
    same(driver, driver.rates_extended(schedule, longer, T + 5, at), wanted)


@few_kinds
def test_hurt_7_the_curve_seen_before_the_run_is_the_one_that_was_run(driver, kind):
    T, schedule, _ = case(driver, kind)
    text, curve = schedule.preview(), schedule.values().tolist()
    same(driver, driver.rates(schedule, T), curve)
    assert schedule.preview() == text


def test_the_docs_have_a_row_for_the_driver(driver):
    row = next(line for line in DOCS.read_text().splitlines() if line.startswith(f"| {driver.name} |"))
    if "rates_skipping" not in driver.not_applicable:
        assert f"| {driver.skip} |" in row
    for reason in driver.not_applicable.values():
        assert reason in row
