import pytest
from tests.paper.language.texts import corpus, write_texts

from paper.engine.protocol import Trials
from paper.engine.request import Request, Workers
from paper.engine.winners import Winner
from paper.language.scales import PAPER_SCALE, SMOKE_SCALE, grids
from paper.language.tables import PUBLISHED_PERPLEXITIES, find_corpus, language_page, make
from paper.training.runs import TrainingRuns


def winners(scale, **tests):
    """The first setting of every grid, with made-up perplexities."""
    found = []
    for name, grid in grids(scale).items():
        values, diverged = tests.get(name.split()[0].lower(), ((90.0, 92.0), 0))
        trials = {metric: Trials(grid[0], values, diverged) for metric in ("train", "valid", "test")}
        found.append(Winner(name, grid[0], 95.25, len(grid), trials, {m: ([1.0], [90.0]) for m in trials}))
    return found


def lines(page):
    """The cells of the table's rows, by schedule."""
    rows = [line.strip("| ").split(" | ") for line in page.body.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows[2:]}


def test_our_perplexities_are_next_to_the_papers():
    page = language_page(corpus(), SMOKE_SCALE, winners(SMOKE_SCALE, elastic=((88.0, 88.0), 1)), (1, 2))
    found = lines(page)
    assert list(found) == list(PUBLISHED_PERPLEXITIES)
    for name, published in PUBLISHED_PERPLEXITIES.items():
        ours = "*88.0 ± 0.0" if name == "Elastic Step Decay" else "91.0 ± 1.4"
        assert found[name][:5] == [ours, ours, ours, *published]
        assert found[name][6] == f"95.2 (best of {len(grids(SMOKE_SCALE)[name])})"
    assert " per epoch" in found["Baseline"][5]
    assert "Best test perplexity: Elastic Step Decay (*88.0 ± 0.0)." in page.body
    assert page.values["rows"][4]["diverged"] == 1


def test_only_a_small_text_is_said_not_to_be_the_papers():
    small, full = (language_page(corpus(), scale, winners(scale), (1, 2)) for scale in (SMOKE_SCALE, PAPER_SCALE))
    assert "**This is not the paper's experiment**" in small.body
    assert "not the paper's" not in full.body
    assert "2 layers of 1,500 units, dropout 0.65" in full.body
    assert "400 words to learn from, 90 to choose settings, 110 to report on" in full.body


def test_the_smoke_table_is_made_once_and_then_from_the_store(tmp_path, monkeypatch):
    write_texts(tmp_path)
    request = Request(tmp_path / "runs.sqlite", Workers(1, "sequential"), data=tmp_path, scale="smoke")
    made = make(request)
    page = made.write(tmp_path / "out", "Made by `the command`.")[0].read_text()
    assert [row["schedule"] for row in made.values["rows"]] == list(grids(SMOKE_SCALE))
    for row in made.values["rows"]:
        assert len(row["trials"]["test"]) + row["diverged"] == SMOKE_SCALE.num_trials
        numbers = [Trials({}, tuple(row["trials"][name]), row["diverged"]).text(1) for name in ("valid", "test")]
        assert f"| {row['schedule']} | {' | '.join(numbers)} |" in page
    assert "Made by `the command`" in page
    assert (tmp_path / "out" / "language.png").read_bytes()[:4] == b"\x89PNG"
    assert list((tmp_path / "runs.checkpoints").iterdir()) == []
    monkeypatch.setattr(TrainingRuns, "run", None)
    assert make(request).values == made.values


def test_texts_must_be_somewhere(tmp_path, monkeypatch):
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    with pytest.raises(ValueError, match=r"paper: 'data' must be the folder that holds ptb/"):
        find_corpus(None, SMOKE_SCALE)
    with pytest.raises(FileNotFoundError, match=r"ptb\.train\.txt is missing"):
        find_corpus(write_texts(tmp_path), PAPER_SCALE)
    (tmp_path / "ptb").mkdir()
    write_texts(tmp_path / "ptb")
    monkeypatch.setenv("EIGENCURVE_DATA", str(tmp_path))
    assert len(find_corpus(None, SMOKE_SCALE).test) == 100
    with pytest.raises(ValueError, match=r"'scale' must be one of 'paper', 'laptop', 'smoke', got 'huge'"):
        make(Request(scale="huge"))
