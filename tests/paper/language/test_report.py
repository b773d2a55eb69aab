from tests.paper.language.texts import corpus

from paper.engine.protocol import Trials
from paper.engine.winners import Winner
from paper.language.report import PUBLISHED_PERPLEXITIES, language_page
from paper.language.scales import PAPER_SCALE, SMOKE_SCALE, grids


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
