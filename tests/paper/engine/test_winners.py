import pytest
from tests.paper.engine.toy import Toy

from eigencurve.runs.store import Outcome, Run
from paper.engine.protocol import execute, trials_of
from paper.engine.request import Request, Workers
from paper.engine.winners import (
    GridSearch,
    Missing,
    ReportedMetrics,
    mean_curve,
    settings_text,
)

SEVERAL = [Outcome({"a": 1.0}, curves={"loss": ((1.0, 2.0), (2.0, 4.0))}),
           Outcome({"a": 3.0}, curves={"loss": ((1.0, 4.0), (2.0, 6.0))}),
           Outcome({}, diverged=True, curves={"loss": ()})]  # fmt: skip


def test_winners_come_with_their_trials(tmp_path):
    request = Request(tmp_path / "s.sqlite", Workers(1, "sequential"))
    grids = {"searched": [{"x": x} for x in (0, 2)], "single": [{"x": 1}]}
    toy = Toy(str(tmp_path / "log"))
    searched, single = GridSearch(toy, grids, (10,), (20, 21), request, ReportedMetrics(("score",), {})).winners()
    assert (searched.settings, searched.num_tried) == ({"x": 2}, 2)
    assert searched.chosen == pytest.approx(1.010)
    assert searched.chosen_text(3) == "1.010 (best of 2)"
    assert (single.chosen, single.chosen_text(3)) == (None, "–")
    assert searched.to_dict()["trials"]["score"] == pytest.approx([1.020, 1.021])
    assert searched.to_dict()["diverged"] == 0


def test_a_search_that_is_not_finished(tmp_path):
    request = Request(tmp_path / "s.sqlite", Workers(1, "sequential"))
    grids = {"done": [{"x": x} for x in (0, 2)], "half": [{"x": 2}, {"x": 1}], "none": [{"x": 5}, {"x": 6}]}
    toy = Toy(str(tmp_path / "log"))
    rest = ((10,), (20, 21), request, ReportedMetrics(("score",), {}))
    GridSearch(toy, {"done": grids["done"]}, *rest).winners()
    execute(toy, [Run({"x": 1}, 10), Run({"x": 5}, 10)], request.store, request.workers)
    ran = (tmp_path / "log").read_text()
    winners, missing = GridSearch(toy, grids, *rest, final=lambda settings: {**settings}).finished()
    assert missing == [Missing("none", 1, 2)]
    assert [(winner.schedule, winner.settings) for winner in winners] == [("done", {"x": 2}), ("half", {"x": 2})]
    assert winners[0].trials["score"].seeds == (20, 21)
    assert winners == GridSearch(toy, {name: grids[name] for name in ("done", "half")}, *rest).winners()
    other = GridSearch(toy, {"half": grids["half"]}, (10,), (20, 22), *rest[2:]).finished()
    assert other[1] == [Missing("half", 0, 1)]
    assert other[0][0].trials["score"].seeds == (20,)
    assert (tmp_path / "log").read_text() == ran


def test_diverged_runs_are_counted_and_enter_no_mean():
    found = trials_of({}, dict(zip((3, 5, 8), SEVERAL, strict=True)), "a")
    assert found.values == (1.0, 3.0)
    assert found.seeds == (3, 5)
    assert found.num_diverged == 1
    assert mean_curve(SEVERAL, "loss", factor=10.0) == ([1.0, 2.0], [30.0, 50.0])
    assert mean_curve(SEVERAL[2:], "loss") == ([], [])


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"lr": 0.3, "min_lr": None}, "lr 0.3, last rate free"),
        ({"lr": 0.1, "intervals": "log T", "factor": 2.0}, "lr 0.1, log T intervals, factor 2"),
        ({"lr": 0.1, "r": 2**-0.5}, "lr 0.1, r 0.707"),
        ({"lr": 0.1, "ema_decay": 0.95, "alpha": 2.0}, "lr 0.1, α 0.95"),
    ],
)
def test_searched_settings_in_words(settings, text):
    assert settings_text(settings) == text
