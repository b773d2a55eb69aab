import pytest
from tests.paper.ridge.problems import ROWS

from paper.engine.request import Request, Workers
from paper.ridge import tables
from paper.ridge.experiment import EPOCHS, RidgeExperiment, grids
from paper.ridge.tables import PUBLISHED_EPOCHS, PUBLISHED_GAPS, make


@pytest.fixture(autouse=True)
def short_grids(monkeypatch):
    monkeypatch.setattr(tables, "grids", lambda epochs: {name: grid[:2] for name, grid in grids(epochs).items()})


def request(folder, name):
    (folder / name).write_text(ROWS)
    return Request(folder / "s.sqlite", Workers(1, "sequential"), data=folder / name, epochs=(1,))


def test_the_page_has_its_table_and_figures(tmp_path):
    page = make(request(tmp_path, "rows"))
    assert page.title == "Ridge regression on rows"
    assert "n = 40 rows" in page.body
    assert "\n\n## 1 epoch\n\n" in page.body
    assert "Best on fresh seeds: " in page.body
    assert page.body.count("| Eigencurve") == 4
    assert PUBLISHED_GAPS["Constant"][0] not in page.body
    assert "## Reshuffled and independent rows" in page.body
    assert list(page.figures) == ["ridge_spectrum.png", "ridge_curves.png"]
    assert [row["schedule"] for row in page.values["tables"]["1"]] == [*grids(1), "Numerically best"]


def test_the_page_of_a4a_shows_the_published_gaps_and_is_made_again_from_the_store(tmp_path, monkeypatch):
    wanted = request(tmp_path, "a4a")
    page = make(wanted)
    for name, gaps in PUBLISHED_GAPS.items():
        (line,) = (line for line in page.body.splitlines() if line.startswith(f"| {name} |"))
        assert f"| {gaps[0]} |" in line
    monkeypatch.setattr(RidgeExperiment, "run", None)
    assert make(wanted).values == page.values


def test_the_published_budgets_are_the_default_ones():
    assert EPOCHS == PUBLISHED_EPOCHS
    assert all(len(gaps) == len(PUBLISHED_EPOCHS) for gaps in PUBLISHED_GAPS.values())
    assert PUBLISHED_GAPS.keys() <= grids(1).keys()
