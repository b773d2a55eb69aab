import pytest
from tests.paper.images.examples import SPECTRUM

from paper.images.scales import LAPTOP_SCALE, PAPER_SCALE, base_settings, ema_grid, grids
from paper.training.settings import make_schedule


def test_the_papers():
    found = grids(PAPER_SCALE, "vgg16", 100, "own", "other")
    assert {name: len(grid) for name, grid in found.items()} == {
        "Inverse Time Decay": 15, "Step Decay": 5, "General Step Decay": 75, "Cosine Decay": 20, "Eigencurve": 25,
        "Elastic Step Decay": 10, "Numerically best": 5, "Eigencurve, reused": 25,
    }  # fmt: skip
    assert len(ema_grid(PAPER_SCALE, base_settings(PAPER_SCALE, "vgg16", 100))) == 25
    assert {s["beta"] for s in found["Eigencurve"]} == {1.000005}
    assert {s["beta"] for s in grids(PAPER_SCALE, "vgg16", 10, "own")["Eigencurve"]} == {2.0}
    assert {s["spectrum"] for s in found["Eigencurve, reused"]} == {"other"}
    assert {s["lr"] for s in found["Cosine Decay"]} == {1.0, 0.6, 0.3, 0.2, 0.1}
    assert {s["min_lr"] for s in found["Eigencurve"]} == {0.01, 0.001, 0.0001, 0.0, None}


@pytest.mark.parametrize("sizes", [LAPTOP_SCALE.images, LAPTOP_SCALE.few_images])
def test_a_laptop_has_whole_batches(sizes):
    assert sizes.train % LAPTOP_SCALE.batch_size == (sizes.train - sizes.validation) % LAPTOP_SCALE.batch_size == 0


def test_a_laptop_gives_every_schedule_the_same_number_of_tries():
    found = grids(LAPTOP_SCALE, "resnet18", 10, "own", "other")
    every = [*found.values(), ema_grid(LAPTOP_SCALE, base_settings(LAPTOP_SCALE, "resnet18", 10))]
    assert {len(grid) for grid in every} == {4}
    assert all(len({tuple(sorted(map(str, s.items()))) for s in grid}) == 4 for grid in every)


@pytest.mark.parametrize("scale", [PAPER_SCALE, LAPTOP_SCALE])
def test_every_setting_makes_a_schedule(scale):
    for grid in grids(scale, "resnet18", 10, "own", "own").values():
        for chosen in grid:
            if chosen["schedule"] != "best":
                schedule = make_schedule(chosen, 400, {"own": SPECTRUM})
                assert schedule.total_steps == 400
                assert schedule(0) == pytest.approx(chosen["lr"])
