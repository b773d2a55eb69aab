import pytest
from tests.experiments.images.examples import SPECTRUM

from eigencurve.experiments.bytes.experiment import schedule_of
from eigencurve.experiments.bytes.scales import DESK_SCALE, FIRST, REST, earlier_run_settings, grids, scale_named


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
    for name in ("Elastic Step", "Eigencurve"):
        for settings in grids(DESK_SCALE, REST, "own")[name]:
            assert schedule_of(settings, {"own": SPECTRUM}).total_steps == 2_000


def test_the_earlier_run_is_a_run_of_the_first_part():
    assert grids(DESK_SCALE, FIRST)["Cosine to 0"][0].items() <= earlier_run_settings(DESK_SCALE).items()


def test_unknown_scales_are_refused():
    with pytest.raises(ValueError, match=r"'scale' must be 'desk' or 'smoke', got 'paper'.*pass --scale desk"):
        scale_named("paper")
