import json

import pytest
from tests.cli.running import run
from tests.planning.logged import CONSTANT, COSINE, LR, RISE, log_text
from typer.testing import CliRunner

import eigencurve as ec
from eigencurve.cli import app
from eigencurve.forecast import fit_runs, load_run

LOGS = ("constant.csv", "cosine.csv")


def failed(*words):
    result = CliRunner().invoke(app, ["fit", *words])
    assert result.exit_code == 2
    assert result.stdout == ""
    return result.stderr


def test_the_numbers_are_the_librarys(here):
    words = ("--epochs", "2", "--steps-per-epoch", "500", "--last-step", "1500", "--json", "-o", "best.json")
    found = json.loads(run("fit", *LOGS, *words).stdout)
    forecast = fit_runs([load_run(here / name, last_step=1500) for name in LOGS])
    assert (found["total_steps"], found["max_lr"], found["warmup_steps"]) == (1000, LR, 66)
    best = forecast.best_schedule(1000)
    assert found["best"]["loss"] == pytest.approx(best.loss)
    assert ec.schedule_from_dict(found["best"]["schedule"]) == best.schedule
    assert json.loads((here / "best.json").read_text()) == found["best"]["schedule"]
    row = next(row for row in found["rows"] if row["name"] == "linear_0")
    end = forecast.predict(ec.warmup(ec.linear(934, LR), 66))
    assert (row["loss"], row["low"], row["high"]) == pytest.approx((end.loss[-1], end.low[-1], end.high[-1]))
    assert found["doubts"] == list(forecast.warnings)
    assert found["next_run"]["reason"] == forecast.next_run(1000).reason


def test_the_report_is_written_and_can_be_printed(here):
    result = run("fit", *LOGS, "--report", "page.html")
    assert "Best schedule" in result.stdout
    assert "wrote page.html" in result.stderr
    page = (here / "page.html").read_text()
    assert "Which schedule to use" in page
    assert page.startswith("<!doctype html>")
    printed = run("fit", *LOGS, "--report", "-").stdout
    assert printed.startswith("<!doctype html>")
    assert printed.rstrip().endswith("</html>")


def test_several_runs_of_one_file(here):
    rows = [text.splitlines()[1:] for text in (log_text(CONSTANT), log_text(COSINE))]
    joined = [f"{one},{other.partition(',')[2]}" for one, other in zip(*rows, strict=True)]
    head = "step,a - lr,a - val_loss,b - lr,b - val_loss"
    (here / "export.csv").write_text("\n".join([head, *joined]) + "\n")
    found = json.loads(run("fit", "export.csv", "--run", "a", "--run", "b", "--json").stdout)
    assert [each["name"] for each in found["runs"]] == ["a", "b"]
    assert [each["warmup_steps"] for each in found["runs"]] == [RISE, RISE]


def test_errors_name_the_options_and_nothing_is_written(here):
    head, *rows = log_text(COSINE).splitlines()
    (here / "two.csv").write_text("\n".join([f"{head},test_loss", *(f"{row},1.0" for row in rows)]) + "\n")
    (here / "back.csv").write_text("\n".join([head, *rows, *rows[50:]]) + "\n")
    before = sorted(here.iterdir())
    outputs = ("-o", "best.json", "--report", "page.html")
    assert "Pass --loss with the name of one" in failed("two.csv", *outputs)
    assert "set --resumed" in failed("back.csv", *outputs)
    assert "--lr-column" in failed("cosine.csv", "--lr-column", "rate", *outputs)
    assert sorted(here.iterdir()) == before
    assert "back: 100 losses" in run("fit", "back.csv", "--resumed").stdout
