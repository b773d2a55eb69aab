import dataclasses
import json

import numpy as np
import pytest
from tests.planning import logged
from tests.planning.logged import COSINE, LR, RISE, STEPS, log_text, runs, write_logs

from eigencurve import linear, schedule_from_dict, warmup
from eigencurve.forecast import fit_runs
from eigencurve.planning import forecasts
from eigencurve.planning.forecasts import BEST_FOUND, LogSettings, forecast_view, read_runs, usual_runs


@pytest.fixture(scope="module")
def view():
    return forecast_view(runs(), best=True)


@pytest.mark.parametrize(("total_steps", "rise"), [(1000, 100), (1000, 0), (2, 0), (5, 4), (10, 9)])
def test_usual_schedules_have_the_length_the_warmup_and_the_peak(total_steps, rise):
    schedules = usual_runs(total_steps, 0.1, rise)
    assert len(schedules) == 7
    for schedule in schedules.values():
        assert schedule.total_steps == total_steps
        assert schedule.values().max() == pytest.approx(0.1)
        assert (np.diff(schedule.values()[: rise + 1]) > 0).all()


def test_the_tails_are_parts_of_the_whole_run():
    schedules = usual_runs(1000, 1.0, 100)
    for name, begin in (("WSD, last 10 %", 900), ("WSD, last 20 %", 800), ("WSD, last 40 %", 600)):
        rates = schedules[name].values()
        assert rates[begin] == 1.0
        assert rates[begin + 2] < 1.0
    assert schedules["cosine to 10 %"].values()[-1] == pytest.approx(0.1, rel=0.01)


def test_the_defaults_are_those_of_the_logs(view):
    assert (view.total_steps, view.peak_lr, view.warmup_steps) == (STEPS, LR, RISE)
    assert {row.name for row in view.table.rows} == {*usual_runs(STEPS, LR, RISE), BEST_FOUND}
    exact = logged.losses_of(COSINE, [STEPS])[0]
    assert view.table["cosine to 0"].loss == pytest.approx(exact, abs=0.02)


def test_shorter_runs_have_shorter_warmups():
    view = forecast_view(runs(), total_steps=STEPS // 2, max_lr=LR / 2)
    assert view.warmup_steps == RISE // 2
    assert view.best is None
    assert all(row.schedule.total_steps == STEPS // 2 for row in view.table.rows)
    assert all(row.schedule.values().max() == pytest.approx(LR / 2) for row in view.table.rows)


@pytest.mark.parametrize(("settings", "match"), [({"total_steps": 1}, "'steps' must be"), ({"max_lr": 0}, "'max_lr'")])
def test_wrong_settings(settings, match):
    with pytest.raises(ValueError, match=match):
        forecast_view(runs(), **settings)


def test_a_schedule_of_your_own_joins_the_table(view):
    own = warmup(linear(STEPS - RISE, LR / 2), RISE)
    more = forecasts.with_schedule(view, "mine", own)
    assert len(more.table.rows) == len(view.table.rows) + 1
    assert more.table["mine"].loss == pytest.approx(view.forecast.predict(own).loss[-1])
    assert more.table["constant"] == view.table["constant"]


def test_curves_and_ranges(view):
    curves = forecasts.fitted_curves(view.forecast, view.runs)
    assert [curve.name for curve in curves] == ["constant", "cosine"]
    for curve, run in zip(curves, view.runs, strict=True):
        assert curve.steps[0] >= RISE
        assert curve.losses[-1] == run.losses[-1]
        assert np.abs(curve.fitted - curve.losses)[len(curve.steps) // 5 :].max() < 0.03
    low, high = forecasts.loss_range([(curve.steps, curve.losses) for curve in curves])
    assert low < min(curve.losses.min() for curve in curves) < high < curves[0].losses[0]
    shown = forecasts.predictions(view, ["constant", "no such schedule"])
    assert list(shown) == ["constant"]
    low, high = forecasts.band_range(shown)
    assert low < shown["constant"].low[-1] < shown["constant"].high[-1] < high


def test_sentences(view):
    first, second = forecasts.best_lines(view)
    assert first.startswith(f"It ends at a loss of {view.best.loss:.4f} (")
    assert f"more than {view.best.gap:.4f} below" in second
    assert forecasts.best_lines(dataclasses.replace(view, best=None)) == []
    expected = "constant: 50 losses (val_loss) to step 2,000, peak rate 0.01, warmup 100 steps"
    assert forecasts.run_line(view.runs[0]) == expected
    assert view.next_run.reason in forecasts.next_run_line(view.next_run)


def test_a_constant_run_says_that_the_best_schedule_is_an_assumption():
    view = forecast_view(runs()[:1], best=True)
    assert "Do not use it" in forecasts.best_lines(view)[-1]
    assert forecasts.doubt_lines(view)[0].startswith("No logged run lowers its rate")
    assert forecasts.doubt_lines(view)[-1] == forecasts.BEYOND


def test_no_doubt_is_said_too(view):
    rows = tuple(dataclasses.replace(row, beyond=()) for row in view.table.rows)
    calm = dataclasses.replace(view, table=dataclasses.replace(view.table, rows=rows))
    assert view.forecast.warnings == ()
    assert forecasts.doubt_lines(calm) == ["Nothing beyond the intervals above."]


def test_fields_are_plain_and_hold_the_schedule(view):
    fields = json.loads(json.dumps(forecasts.forecast_fields(view, ["careful"])))
    assert fields["warnings"] == ["careful"]
    assert [row["name"] for row in fields["rows"]] == [row.name for row in view.table.rows]
    assert schedule_from_dict(fields["best"]["schedule"]) == view.best.schedule
    assert fields["runs"][1]["num_losses"] == 50
    assert "best" not in forecasts.forecast_fields(dataclasses.replace(view, best=None))


def test_logs_are_read_with_their_warnings_and_distinct_names(tmp_path):
    write_logs(tmp_path)
    head, *rows = log_text(COSINE).splitlines()
    late = tmp_path / "late.csv"
    late.write_text("\n".join([head, *rows[10:]]) + "\n")
    loaded = read_runs([tmp_path / "cosine.csv", tmp_path / "cosine.csv", late], LogSettings())
    assert [run.name for run in loaded.runs] == ["cosine", "cosine (2)", "late"]
    assert len(loaded.warnings) == 1
    assert "no learning rate is logged before step 200" in loaded.warnings[0]
    assert "pass --warmup_steps" in read_runs([late], LogSettings(), name_of=lambda name: f"--{name}").warnings[0]
    assert read_runs([late], LogSettings(warmup_steps=RISE)).warnings == ()
    short = read_runs([tmp_path / "cosine.csv"], LogSettings(last_step=1000)).runs[0]
    assert short.steps[-1] == 1000


def test_several_runs_of_one_file(tmp_path):
    texts = [log_text(schedule).splitlines()[1:] for schedule in (logged.CONSTANT, COSINE)]
    head = "step,a - lr,a - val_loss,b - lr,b - val_loss"
    rows = [f"{one},{other.partition(',')[2]}" for one, other in zip(*texts, strict=True)]
    path = tmp_path / "export.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    loaded = read_runs([path], LogSettings(), ["a", "b"])
    assert [run.name for run in loaded.runs] == ["a", "b"]
    assert fit_runs(loaded.runs).names == ("a", "b")
    with pytest.raises(ValueError, match="'c'"):
        read_runs([path], LogSettings(), ["c"])
