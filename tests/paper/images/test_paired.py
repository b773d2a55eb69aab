import shutil

import pytest
from tests.paper.data.cifar_files import write_cifar10
from tests.paper.images.examples import SPECTRUM
from tests.paper.images.pages import made, run

from paper.engine.protocol import Trials
from paper.engine.winners import Missing, Winner
from paper.images.paired import PUBLISHED, RATES, WITH_MOMENTUM, PairedTable, earlier_run_settings, paired_grids
from paper.images.scales import DESK_SCALE, PAPER_SCALE
from paper.training.settings import make_schedule

CURVES = {"loss": ([1.0], [2.0]), "accuracy": ([1.0], [50.0])}
PAPER = {"Cosine Decay": ("1.4", "84.00 ± 0.10"), "Eigencurve": ("1.3", "85.50"), "Step Decay": ("1.8", "74.00")}


def winner(name, *accuracies, lr=0.3):
    seeds = tuple(range(len(accuracies)))
    settings = {"lr": lr}
    trials = {"accuracy": Trials(settings, accuracies, 0, seeds), "loss": Trials(settings, accuracies, 0, seeds)}
    return Winner(name, settings, 50.0, 3, trials, CURVES)


def table(*winners, missing=(), published=PAPER, momentum=0.0):
    return PairedTable("A net", 10, momentum, (0.1, 0.3, 1.0), winners, missing, published)


COSINE = winner("Cosine Decay", 80.0, 82.0, 81.0)


def test_differences_are_shown_seed_by_seed():
    found = table(COSINE, winner("WSD", 80.6, 82.7, 81.5))
    text = "\n\n".join(found.paragraphs())
    assert "| WSD | +0.60 ± 0.06 | +0.35 … +0.85 | higher | +0.60, +0.70, +0.50 | 3 |" in text
    # Each row's own accuracy varies by 1 from seed to seed, but the differences by 0.1 only.
    assert "standard deviation of 0.10 per seed" in text
    assert "from 3 seeds on" in text
    assert found.heading == "A net, 10 epochs"
    assert table(momentum=0.9).heading == "A net, 10 epochs, momentum 0.9"


@pytest.mark.parametrize(
    ("accuracies", "said"),
    [
        ((81.4, 83.6, 82.5), "Eigencurve is above Cosine Decay in test accuracy: +1.50 percentage points"),
        ((81.4, 83.6, 82.5), "This agrees with the paper's +1.50 in sign and in size."),
        ((80.2, 82.2, 81.21), "This agrees with the paper's +1.50 in sign but not in size."),
        ((79.0, 81.0, 80.01), "This contradicts the paper, which prints +1.50."),
        ((79.0, 84.0, 81.0), "do not show a difference; the paper's +1.50 is compatible with them."),
        ((79.9, 82.2, 81.0), "do not show a difference; the paper's +1.50 is not compatible with them."),
    ],
)
def test_the_verdict_follows_from_the_numbers(accuracies, said):
    last = table(COSINE, winner("Eigencurve", *accuracies)).paragraphs()[-1]
    assert last.startswith("**Verdict on the paper's claim.** Eigencurve is")
    assert said in last


def test_the_verdict_compares_with_step_decay_too():
    found = table(COSINE, winner("Eigencurve", 80.1, 82.0, 81.0), winner("Step Decay", 70.0, 71.0, 70.5))
    assert "Eigencurve is above Step Decay in test accuracy: +10.53 percentage points" in found.paragraphs()[-1]
    without = table(COSINE, winner("Eigencurve", 80.1, 82.0, 81.0), published={}).paragraphs()[-1]
    assert "the paper's +" not in without
    assert "not resolved from Cosine Decay" in without


def test_the_verdict_names_schedules_that_the_paper_lacks():
    ours = winner("Eigencurve", 80.1, 82.0, 81.0)
    ahead, behind = winner("WSD", 81.1, 83.2, 82.0), winner("Linear Decay", 80.0, 81.0, 80.5)
    last = table(COSINE, ours, ahead, behind).paragraphs()[-1]
    assert last.endswith("table does not have are above Eigencurve: WSD by 1.07 (+0.78 … +1.35).")
    assert "above Eigencurve" not in table(COSINE, ours, behind).paragraphs()[-1]
    assert "above Eigencurve" not in table(COSINE, ours, ahead, published={}).paragraphs()[-1]


def test_what_is_missing_is_said_first():
    missing = [Missing("WSD", 2, 3), Missing("Linear Decay", 0, 1)]
    parts = table(COSINE, missing=missing).paragraphs()
    assert parts[0].startswith(
        "**Not finished:** WSD (2 of the runs to choose a rate and 3 trials); Linear Decay (1 trial)."
    )
    assert table(missing=missing).paragraphs() == parts[:1]  # no winner, so nothing else


def test_winners_at_the_edge_of_the_rates_are_named():
    text = "\n".join(table(COSINE, winner("WSD", 80.6, 82.7, lr=1.0)).paragraphs())
    assert "Winners at the edge of the rates tried: WSD (1)." in text
    assert "No winner has the smallest or the largest rate tried." in "\n".join(table(COSINE).paragraphs())


def test_every_schedule_tries_the_same_rates():
    grids = paired_grids(DESK_SCALE, 10, "own", with_published=True)
    assert len(grids) == 9
    assert {tuple(s["lr"] for s in grid) for grid in grids.values()} == {RATES}
    for grid in grids.values():
        for settings in grid:
            schedule = make_schedule(settings, 2_000, {"own": SPECTRUM, PUBLISHED: SPECTRUM})
            assert schedule(0) == pytest.approx(settings["lr"])
            assert schedule(1_999) < 0.5 * settings["lr"]


def test_momentum_scales_the_rates():
    grids = paired_grids(DESK_SCALE, 10, "own", with_published=True, momentum=0.9)
    assert tuple(grids) == WITH_MOMENTUM
    assert [s["lr"] for s in grids["WSD"]] == pytest.approx([0.1 * rate for rate in RATES])
    assert {s["momentum"] for grid in grids.values() for s in grid} == {0.9}


def test_the_published_spectrum_may_be_missing():
    assert len(paired_grids(PAPER_SCALE, 10, "own", with_published=False)) == 8


def test_the_earlier_run_is_a_run_of_the_table():
    (cosine,) = [s for s in paired_grids(DESK_SCALE, 10, "", False)["Cosine Decay"] if s["lr"] == RATES[0]]
    earlier = earlier_run_settings(DESK_SCALE, 10, 2_000)
    assert {**cosine, "split": "test"}.items() <= earlier.items()
    assert earlier["schedule_steps"] == 2_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cifar")
    write_cifar10(path, per_batch=12)
    return path


def test_the_page(folder, monkeypatch):
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    page, values = made(folder, "cifar10-paired")
    first, second = values["sections"].values()
    assert len(first) == 9
    assert len(second) == 5
    assert [rows[-1]["schedule"] for rows in (first, second)] == ["Recommendation"] * 2
    assert all(len(row["trials"]["accuracy"]) == 2 for row in (*first, *second))
    assert "Not finished" not in page
    assert page.count("**Verdict on the paper's claim.**") == 2


def test_a_page_of_what_is_finished(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    made(folder, "cifar10-paired")
    shutil.copy(folder / "s.sqlite", tmp_path / "s.sqlite")
    words = ("--data", str(folder), "--store", str(tmp_path / "s.sqlite"), "--part", "finished")
    (folder / "spectra").mkdir()
    try:
        text = "\n".join(f"{v} {w}" for v, w in zip(SPECTRUM.eigenvalues, SPECTRUM.weights, strict=True))
        (folder / "spectra" / "resnet-18_cifar10.txt").write_text(text)
        result = run("cifar10-paired", *words)
    finally:
        shutil.rmtree(folder / "spectra")
    assert result.exit_code == 0, result.output
    missing = "Eigencurve, published spectrum (2 of the runs to choose a rate and 2 trials)"
    assert f"**Not finished:** {missing}." in result.stdout


def test_nothing_is_finished_yet(folder, tmp_path):
    words = ("--data", str(folder), "--store", str(tmp_path / "new.sqlite"), "--part", "finished")
    result = run("cifar10-paired", *words)
    assert result.exit_code == 2
    assert "Its spectrum is not measured yet" in result.stderr
