import pytest

from paper.language.experiment import schedule_of
from paper.language.scales import LAPTOP_SCALE, PAPER_SCALE, SCALES, grids


def test_the_papers_grids():
    # Table "Hyperparameter search for schedulers", last rates above the initial one left out.
    found = grids(PAPER_SCALE)
    assert {name: len(grid) for name, grid in found.items()} == {
        "Inverse Time Decay": 19, "General Step Decay": 15, "Baseline": 1, "Cosine Decay": 15, "Elastic Step Decay": 5,
    }  # fmt: skip
    assert {s["r"] for s in found["Elastic Step Decay"]} == {2**-1.0, 2**-0.5, 2 ** (-1 / 3), 2**-0.2, 2**-0.05}
    assert {s["lr"] for s in found["Cosine Decay"]} == {1.0, 0.1, 0.01, 0.001}
    common = {
        (s["batch_size"], s["unroll"], s["max_norm"], s["dropout"], s["divisor"]) for g in found.values() for s in g
    }
    assert common == {(20, 35, 10.0, 0.65, 1)}


def test_the_baseline_is_the_papers():
    (settings,) = grids(PAPER_SCALE)["Baseline"]
    schedule = schedule_of(settings, steps_per_epoch=1327)
    for epoch in range(1, 31):  # the paper counts from 1
        expected = 1.0 if epoch <= 14 else 1.15 ** -(epoch - 14)
        for step in ((epoch - 1) * 1327, epoch * 1327 - 1):
            assert schedule(step) == pytest.approx(expected, rel=1e-12)
    short = schedule_of(grids(LAPTOP_SCALE)["Baseline"][0], steps_per_epoch=94)
    assert short(5 * 94 - 1) == short(0) > short(5 * 94)
    assert short(940 - 1) == pytest.approx(short(0) * 1.15**-15, rel=1e-9)  # five divisions by 1.15³


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_every_try_has_a_schedule(scale):
    for name, grid in grids(scale).items():
        for settings in grid:
            schedule = schedule_of(settings, steps_per_epoch=40)
            assert schedule.total_steps == 40 * scale.epochs
            assert schedule(0) == settings["lr"], name
        assert len({str(settings) for settings in grid}) == len(grid)
    assert scale.full_grids or {len(grid) for grid in grids(scale).values()} == {4}
