import math

import pytest

from eigencurve.report.runs import panels_of
from eigencurve.runs.origin import Origin
from eigencurve.runs.store import Outcome, Run, Store


def add(store, experiment, settings, outcomes):
    runs = [Run(settings, seed) for seed in range(len(outcomes))]
    store.add(experiment, runs, outcomes, Origin({"python": "3"}, ""), seconds=1.0)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "runs.sqlite")
    for lr, gaps in {0.1: (3.0, 5.0), 0.2: (1.0, 2.0)}.items():
        curve = [(0.0, 8.0), (1.0, lr)]
        settings = {"schedule": "cosine", "epochs": 10, "lr": lr}
        add(store, "ridge", settings, [Outcome({"gap": gap}, curve) for gap in gaps])
    add(
        store,
        "ridge",
        {"schedule": "constant", "epochs": 10, "lr": 9.0},
        [Outcome({"gap": 0.5}), Outcome({}, (), True)],
    )
    add(
        store,
        "ridge",
        {"schedule": "constant", "epochs": 10, "lr": 0.3},
        [Outcome({"gap": 4.0}), Outcome({"gap": 4.0})],
    )
    add(store, "ridge", {"schedule": "cosine", "epochs": 2, "lr": 0.1}, [Outcome({}, (), True)])
    add(store, "images", {"size": 1, "lr": 0.1}, [Outcome({"accuracy": 0.9, "loss": 0.3})])
    add(store, "images", {"size": 2, "lr": 0.1}, [Outcome({"accuracy": 0.95, "loss": 0.4})])
    return store


def test_experiments_are_listed(store):
    assert store.experiments() == ["images", "ridge"]


def test_each_schedule_is_shown_at_its_best_settings(store):
    images, short, long = panels_of(store)
    assert (short.problem, long.problem) == ("epochs 2", "epochs 10")
    assert [(t.schedule, t.settings["lr"]) for t in long.trials] == [("cosine", 0.2), ("constant", 0.3)]
    assert long.num_settings == 4
    assert long.trials[0].text("gap") == "1.5 ± 0.71 (2)"
    times, mean = long.trials[0].curves[""]
    assert times.tolist() == [0.0, 1.0]
    assert mean.tolist() == [8.0, 0.2]
    assert short.trials[0].text("gap") == "diverged"
    assert short.trials[0].num_diverged == 1
    assert short.trials[0].curves == {}
    assert images.metrics == ("accuracy", "loss")


def test_settings_name_what_has_no_schedule(store):
    images = panels_of(store)[0]
    assert [trial.schedule for trial in images.trials] == ["lr 0.1, size 2", "lr 0.1, size 1"]
    assert (images.problem, images.common) == ("", {"lr": 0.1})


def test_networks_are_apart_and_show_what_differs_between_runs(tmp_path):
    """Runs as those on images: several curves, a validation and a test split, a diverged run with other metrics."""
    store = Store(tmp_path / "runs.sqlite")
    base = {"model": "vgg", "split": "test", "epochs": 2, "momentum": 0.9}
    curves = {"train_loss": [(1, 2.0), (2, 1.0)], "accuracy": [(2, 0.5)]}
    add(store, "images/x", {**base, "schedule": "cosine", "lr": 0.1}, [Outcome({"num_steps": 3.0}, diverged=True)])
    for lr, accuracy in ((0.2, 50.0), (0.3, 60.0)):
        settings = {**base, "schedule": "cosine", "lr": lr}
        add(store, "images/x", settings, [Outcome({"loss": lr, "accuracy": accuracy}, curves=curves)])
    add(store, "images/x", {**base, "model": "resnet", "schedule": "cosine", "lr": 0.1}, [Outcome({"loss": 1.0})])
    add(store, "spectra/x", base, [Outcome({"dim": 5.0}, [(-1.0, 0.1)])])
    resnet, vgg = panels_of(store)
    assert (resnet.problem, vgg.problem) == ("model resnet, split test, epochs 2", "model vgg, split test, epochs 2")
    assert vgg.metrics == ("accuracy", "loss")
    (best,) = vgg.trials
    assert vgg.own(best) == {"lr": 0.3}
    assert vgg.common == {"momentum": 0.9}
    assert vgg.num_settings == 3
    assert best.curves["train_loss"][1].tolist() == [2.0, 1.0]
    assert list(best.curves) == ["train_loss", "accuracy"]
    assert resnet.own(resnet.trials[0]) == {"momentum": 0.9, "lr": 0.1}


def test_a_run_whose_metric_is_not_finite_counts_as_diverged(tmp_path):
    store = Store(tmp_path / "nan.sqlite")
    for lr, gaps in {0.1: (3.0, 5.0), 0.2: (1.0, math.nan), 0.3: (math.inf, math.nan)}.items():
        settings = {"schedule": f"constant {lr}", "lr": lr}
        add(store, "ridge", settings, [Outcome({"gap": gap, "time": 2.0}) for gap in gaps])
    (panel,) = panels_of(store)
    assert [(t.schedule, t.text("gap"), t.text("time"), t.num_diverged) for t in panel.trials] == [
        ("constant 0.1", "4 ± 1.4 (2)", "2 ± 0 (2)", 0),
        ("constant 0.2", "1 (1)", "2 ± 0 (2)", 1),
        ("constant 0.3", "diverged", "2 ± 0 (2)", 2),
    ]
