import pytest

from paper.forecasts import study
from paper.forecasts.splits import score


def test_a_study_covers_every_split(found, splits):
    assert [outcome.split.name for outcome in found.outcomes] == [split.name for split in splits]
    models = [split.name for split in splits if not split.transfer]
    assert list(found.fewer) == list(found.exponents) == models
    assert [one.split.name for one in found.improvements] == models
    for outcome in found.outcomes[:4]:
        # All runs, in another order.
        whole = found.fewer[outcome.split.name]["constant", "cosine", "decay"]
        assert whole.final_error == pytest.approx(score(outcome.runs).final_error, rel=0.05)
        assert tuple(found.exponents[outcome.split.name]) == study.EXPONENTS


def test_progress_is_shown(curves, splits, monkeypatch, terminal):
    monkeypatch.setattr(study, "splits_of", lambda _: splits[4:5])
    assert study.measure(curves, progress=True).improvements == ()
    assert "1/1" in terminal()
