"""The paired comparison through the command line, on a small folder of the real layout."""

import shutil

import pytest
from tests.paper.data.cifar_files import write_cifar10
from tests.paper.images.examples import SPECTRUM
from tests.paper.images.pages import made, run

from paper.images.paired import PUBLISHED, RATES, WITH_MOMENTUM, earlier_run_settings, paired_grids
from paper.images.scales import DESK_SCALE, PAPER_SCALE
from paper.training.schedules import make_schedule


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
