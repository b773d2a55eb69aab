import json
import sys

import numpy as np
import pytest
from tests.cli.running import LAW, invoke, refused, run

import eigencurve as ec
from eigencurve.cli.schedule import settings_from

COSINE = ("--kind", "cosine", "--steps", "60", "--lr", "0.1")


def test_schedules_are_written_exactly(here):
    run(
        "schedule",
        "small.txt",
        "--weight-decay",
        "1e-3",
        "--steps",
        "50",
        "--warmup",
        "5",
        "-o",
        "a.json",
        "-o",
        "a.csv",
        "--lr",
        "0.1",
    )
    f = ec.warmup(ec.eigencurve(ec.spectrum.prepare(ec.load_spectrum("small.txt"), 1e-3), 45, 0.1), 5)
    assert ec.schedule_from_dict(json.loads((here / "a.json").read_text())) == f
    rows = np.loadtxt(here / "a.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(rows, np.stack((np.arange(50), f.values()), axis=1))
    assert json.loads(run("schedule", "--load", "a.json", "--json").stdout) == f.to_dict()
    assert (
        json.loads(run("schedule", "--load", "-", "--json", input=(here / "a.json").read_text()).stdout) == f.to_dict()
    )


def test_without_matplotlib_figures_name_the_extra(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "eigencurve.figures.schedules", None)
    result = invoke("schedule", "--kind", "cosine", "--steps", "9", "--lr", "1", "-o", "f.png")
    assert result.exit_code == 1
    assert not (here / "f.png").exists()


def test_published_spectra_give_the_schedule_of_the_functions(data_path):
    path = data_path("spectra/resnet-18_cifar10.txt")
    words = ("schedule", str(path), "--weight-decay", "5e-4", "--epochs", "100", "--steps-per-epoch", "391", "--json")
    words = (*words, "--lr", "0.1")
    f = ec.eigencurve(ec.spectrum.prepare(ec.load_spectrum(path), 5e-4), 39_100, 0.1)
    assert json.loads(run(*words).stdout) == f.to_dict()


def test_a_file_is_overwritten_only_by_force(here):
    (here / "a.csv").write_text("mine")
    words = ("schedule", "--kind", "linear", "--steps", "3", "--lr", "0.1", "-o", "a.csv")
    assert invoke(*words).exit_code == 2
    assert (here / "a.csv").read_text() == "mine"
    run(*words, "--force")
    assert (here / "a.csv").read_text().startswith("step,lr\n0,0.1\n")


def test_figures_are_of_the_kind_that_their_name_says(here):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    run(
        "schedule",
        "--kind",
        "cosine",
        "--steps",
        "9",
        "--lr",
        "1",
        *(word for end in heads for word in ("-o", f"f.{end}")),
    )
    for end, head in heads.items():
        assert (here / f"f.{end}").read_bytes().startswith(head)


@pytest.mark.usefixtures("here")
def test_without_a_rate_half_the_largest_stable_one_is_used():
    limit = 2 / ec.load_spectrum("positive.txt").L
    found = run("schedule", "positive.txt", "--steps", "50", "--json")
    assert json.loads(found.stdout)["lr"] == pytest.approx(limit / 2)
    assert found.stderr.startswith(f"peak rate {limit / 2:.4g}: half the largest stable rate 2/L = {limit:.3g}")
    fast = run("schedule", "positive.txt", "--steps", "50", "--momentum", "0.9", "--json")
    assert json.loads(fast.stdout)["lr"] == pytest.approx(1.9 * limit / 2)


@pytest.mark.usefixtures("here")
def test_a_rate_above_the_limit_is_pointed_out_in_one_line():
    limit = 2 / ec.load_spectrum("positive.txt").L
    shown = run("schedule", "positive.txt", "--steps", "50", "--lr", str(20 * limit)).stdout.splitlines()[0]
    assert f"is 20 times the stability limit 2/L = {limit:.3g} of this spectrum" in shown
    below = run("schedule", "positive.txt", "--steps", "50", "--lr", "0.1").stdout.splitlines()[0]
    assert below == f"largest stable rate 2/L = {limit:.3g}"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("words", [("--kind", "cosine"), ("positive.txt", "--momentum", "1"), (*LAW, "--lr", "-1")])
def test_options_are_checked_before_files(words):
    assert "--force" not in refused("schedule", *words, "--steps", "50", "-o", "saved.json")


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (["power=2"], {"power": 2}),
        (["beta=1.5", "allocation=optimal"], {"beta": 1.5, "allocation": "optimal"}),
        (["three-phase=TRUE"], {"three_phase": True}),
        (["milestones=50%, 150"], {"milestones": (100, 150)}),
        (["milestones=5"], {"milestones": (5,)}),
        (["hold=1e2", "every=5%", "factor=2"], {"hold": 100, "every": 10, "factor": 2}),
    ],
)
def test_settings_are_read_as_people_type_them(words, settings):
    assert settings_from(words, total=200) == settings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--kind polynomial --power 2", "--kind polynomial --set power=2"),
        ("--kind wsd --decay-steps=20% --tail 1-sqrt", "--kind wsd --set decay_steps=20% --set tail=1-sqrt"),
        ("--kind one_cycle --three-phase", "--kind one_cycle --set three_phase=true"),
    ],
)
def test_old_options_of_a_kind_work_with_a_warning(old, new):
    common = ["--steps", "50", "--lr", "0.1", "--csv"]
    result = run("schedule", *old.split(), *common)
    assert result.stdout == run("schedule", *new.split(), *common).stdout
    assert all("will go in the next version: use --set" in line for line in result.stderr.splitlines())


@pytest.mark.usefixtures("here")
def test_the_code_has_the_settings_of_the_command_line():
    sgd = ("--momentum", "0.9", "--nesterov", "--weight-decay", "5e-4", "--optimizer", "sgd", "--code", "torch")
    expected = "torch.optim.SGD(model.parameters(), lr=schedule.lr, momentum=0.9, nesterov=True, weight_decay=0.0005)"
    for source in ((), ("positive.txt",), ("constant.csv",)):
        assert expected in run("plan", *source, "--steps", "60", *sgd).stdout
    assert expected in run("schedule", *COSINE, *sgd).stdout
    assert expected in run("schedule", "--load", "saved.json", *sgd).stdout


@pytest.mark.usefixtures("here")
def test_a_schedule_alone_leaves_the_optimizer_to_the_reader():
    for words in (
        ("schedule", *COSINE),
        ("schedule", "--load", "saved.json"),
        ("plan", "constant.csv", "--steps", "60"),
    ):
        code = run(*words, "--code", "torch").stdout
        assert "# Defined by you: model, loss_fn, optimizer, batches" in code
        assert "weight_decay" not in code


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "phrases"),
    [
        (
            ("resnet20_cifar10", "--steps", "39100", "--lr", "0.1"),
            ("0.1 is 15 times the stability", "19 intervals"),
        ),
        (
            ("small.txt", "--weight-decay", "5e-4", "--steps", "500"),
            ("<1 % of the curvature", "Each interval"),
        ),
        ((*LAW, "--steps", "200", "--warmup", "50"), ("preceded by 50 steps of linear warmup; 200 steps in total",)),
        (COSINE, ("Cosine(total_steps=60", "lr / 2    reached: step 30 (50.0% of training)")),
        ((*COSINE, "-o", "w.json", "-o", "w.csv", "-o", "w.py"), ("wrote w.json", "wrote w.csv", "wrote w.py")),
        ((*COSINE, "--code", "torch", "-o", "w.py"), ("Cosine(total_steps=60", "wrote w.py")),
        (("--power-law", "1.5", "--kappa", "1e6", "--steps", "50", "--lr", "1e-3"), ("20,000 times shorter",)),
        (("--load", "saved.json", "--momentum", "0.9", "--code", "torch"), ("multiplies its effective rate by 10",)),
    ],
)
def test_it_prints_what_matters(words, phrases):
    result = run("schedule", *words)
    for phrase in phrases:
        assert phrase in result.stdout + result.stderr
