import pytest
from tests.paper.language.texts import write_texts

from paper.engine.protocol import Trials
from paper.engine.request import Request, Workers
from paper.language.experiment import language_experiment
from paper.language.scales import PAPER_SCALE, SMOKE_SCALE, grids
from paper.language.tables import find_corpus, make


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
    monkeypatch.setattr(language_experiment, "run", None)
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
