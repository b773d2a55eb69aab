import pytest
from tests.paper.images.examples import SPECTRUM

from eigencurve import cosine, warmup
from paper.byte_text.experiment import schedule_of
from paper.byte_text.scales import (
    DESK_SCALE,
    FIRST,
    REST,
    earlier_run_settings,
    grids,
    recommended_grid,
)
from paper.training.settings import points_of


def test_the_desk_has_2000_steps_and_the_two_parts_share_no_schedule():
    assert DESK_SCALE.total_steps == 2_000
    first, rest = grids(DESK_SCALE, FIRST), grids(DESK_SCALE, REST, "own")
    assert len(first) == 7
    assert len(rest) == 5
    assert not set(first) & set(rest)
    for grid in (*first.values(), *rest.values()):
        assert tuple(settings["lr"] for settings in grid) == DESK_SCALE.rates


@pytest.mark.parametrize(("name", "last"), [("Cosine to 10%", 0.1), ("Cosine to 0", 0.0), ("Constant", 1.0)])
def test_schedules_warm_up_and_end_where_they_say(name, last):
    for settings in grids(DESK_SCALE, FIRST)[name]:
        schedule = schedule_of(settings, {})
        assert schedule.total_steps == 2_000
        assert schedule(100) == pytest.approx(settings["lr"])
        assert schedule(0) < 0.02 * settings["lr"]
        assert schedule(1_999) == pytest.approx(last * settings["lr"], abs=1e-3 * settings["lr"])


@pytest.mark.parametrize("share", [0.1, 0.2, 0.4])
def test_wsd_decays_at_the_end(share):
    settings = grids(DESK_SCALE, FIRST)[f"WSD, linear {share:.0%}"][0]
    schedule, stable = schedule_of(settings, {}), round(2_000 * (1 - share))
    assert schedule(stable - 1) == settings["lr"]
    assert schedule(stable + 1) < settings["lr"]


def test_the_held_back_schedules_can_be_made():
    for grid in grids(DESK_SCALE, REST, "own").values():
        for settings in grid:
            assert schedule_of(settings, {"own": SPECTRUM}).total_steps == 2_000
    square_root = schedule_of(grids(DESK_SCALE, REST, "own")["WSD, 1-sqrt 20%"][0], {})
    assert square_root(1_700) == pytest.approx(0.003 * 0.5, rel=0.01)  # 1 - √(1/4)


def test_the_recommendation_has_its_own_warmup():
    points = {rate: points_of(warmup(cosine(1_900, 1.0), 100)) for rate in DESK_SCALE.rates}
    for settings in recommended_grid(DESK_SCALE, points):
        schedule = schedule_of(settings, {})
        assert schedule(0) == pytest.approx(settings["lr"] / 101, rel=0.01)
        assert schedule.values().max() == pytest.approx(settings["lr"], rel=0.01)


def test_the_earlier_run_is_a_run_of_the_first_part():
    assert grids(DESK_SCALE, FIRST)["Cosine to 0"][0].items() <= earlier_run_settings(DESK_SCALE).items()
